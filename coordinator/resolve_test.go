package coordinator

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// resolve ends a transaction and returns what is left.
func resolve(t *testing.T, r *Router, ids []string, txn group.Transaction, commit bool) ([]string, group.Code) {
	type result struct {
		left []string
		code group.Code
	}
	done := make(chan result, 2)
	Resolve(t.Context(), r, ids, txn, commit, func(left []string, code group.Code) { done <- result{left, code} })
	got := <-done
	if synctest.Wait(); len(done) > 0 {
		t.Error("done is called twice")
	}
	return got.left, got.code
}

// TestResolve ends a transaction in groups of many shards, one of which is not here at
// first: those that are left are told, and telling all again harms nobody.
func TestResolve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := shardtest.NewLog()
		r, ended := started(t, shard.Config{}, 8, log)
		txn := group.Transaction{ID: "a", Number: 1}
		var ids []string
		for i := range 20 {
			id := fmt.Sprintf("group-%d", i)
			ids = append(ids, id)
			ev := &group.TxnCommit{Txn: txn, Generation: -1, Topics: commit(5).Topics}
			if got := ask(r, id, ev).Code; got != group.None {
				t.Fatalf("%s: code %d", id, got)
			}
		}
		lost := ShardFor(ids[0], 8)
		if err := r.Lose(t.Context(), lost); err != nil {
			t.Fatal(err)
		}
		var away []string
		for _, id := range ids {
			if ShardFor(id, 8) == lost {
				away = append(away, id)
			}
		}
		if left, code := resolve(t, r, ids, txn, true); !slices.Equal(left, away) || code != group.NotCoordinator {
			t.Errorf("left %q, code %d, want %q, %d", left, code, away, group.NotCoordinator)
		}
		r.Own(t.Context(), lost)
		synctest.Wait()
		for range 2 {
			if left, code := resolve(t, r, ids, txn, true); len(left) > 0 || code != group.None {
				t.Errorf("left %q, code %d", left, code)
			}
		}
		for _, id := range ids {
			ev := fetch()
			ev.RequireStable = true
			if got := ask(r, id, ev).Body.(*group.FetchReply).Topics[0].Partitions[0]; got.Offset != 5 {
				t.Errorf("%s: %+v", id, got)
			}
		}
		if left, code := resolve(t, r, nil, txn, true); len(left) > 0 || code != group.None {
			t.Errorf("no groups: left %q, code %d", left, code)
		}
		stop(t, r, ended)
	})
}
