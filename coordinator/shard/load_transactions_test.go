package shard_test

import (
	"testing"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// TestLoadResolvesEndedTransactions restarts with offsets pending of three transactions
// of which one is open, one was committed and of one nothing is known: only the first
// stays pending, also after another restart.
func TestLoadResolvesEndedTransactions(t *testing.T) {
	log, cfg := shardtest.NewLog(), config()
	r := load(t, log, cfg)
	for i, id := range []string{"open", "committed", "unknown"} {
		r.send("commit", "g", &group.TxnCommit{Txn: group.Transaction{ID: id, Number: 1}, Generation: -1, Topics: []group.CommitTopic{
			{Name: "t", Partitions: []group.CommitPartition{{Partition: int32(i), Offset: 5, LeaderEpoch: -1}}},
		}})
	}
	r.turns()
	cfg.Transactions = func(id string, txn group.Transaction) group.Outcome {
		switch {
		case id == "g" && txn.ID == "open":
			return group.TransactionOpen
		case id == "g" && txn.ID == "committed":
			return group.TransactionCommitted
		}
		return group.TransactionAborted
	}
	for _, when := range []string{"after the restart", "after another one"} {
		r = load(t, log, cfg)
		a := r.send("fetch", "g", &group.Fetch{RequireStable: true, Topics: []group.FetchTopic{{Name: "t", Partitions: []int32{0, 1, 2}}}})
		r.turns()
		if a.code(t) != group.None {
			t.Fatalf("fetch: code %d", a.code(t))
		}
		got := a.reply.Body.(*group.FetchReply).Topics[0].Partitions
		if got[0].Code != group.UnstableOffsetCommit || got[1].Offset != 5 || got[2].Code != group.None || got[2].Offset != -1 {
			t.Errorf("%s: %+v", when, got)
		}
	}
}
