package coordinator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// moment is what a group's offsets were at a time.
type moment struct {
	at      group.Time
	offsets map[int32]int64
}

func offsetsOf(topics []group.FetchedTopic) map[int32]int64 {
	all := map[int32]int64{}
	for _, t := range topics {
		for _, p := range t.Partitions {
			all[p.Partition] = p.Offset
		}
	}
	return all
}

// TestOffsetsAsOf commits and deletes at random for three hours, of which the history
// keeps one, and then looks back at every minute of them.
func TestOffsetsAsOf(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 0))
		r, ended := started(t, shard.Config{Group: group.Config{OffsetsRetention: 1 << 40}}, 2, shardtest.NewLog())
		ctx, cancel := context.WithCancel(t.Context())
		trimmed := make(chan struct{})
		go func() {
			defer close(trimmed)
			r.TrimHistory(ctx, History{Retention: time.Hour, Bytes: 1 << 30}, func(n uint32, err error) { t.Errorf("shard %d: %v", n, err) })
		}()
		began := group.Time(time.Now().UnixMilli())
		moments, now := map[string][]moment{}, map[string]map[int32]int64{}
		for i := range 3 * 60 {
			id, p := fmt.Sprint("g", random.IntN(3)), random.Int32N(4)
			if now[id] == nil {
				now[id] = map[int32]int64{}
			}
			if random.IntN(4) == 0 && len(now[id]) > 0 {
				delete(now[id], p)
				ask(r, id, &group.DeleteOffsets{Topics: []group.DeleteOffsetsTopic{{Name: "t", Partitions: []int32{p}}}})
			} else {
				now[id][p] = int64(i)
				c := commit(int64(i))
				c.Topics[0].Partitions[0].Partition = p
				ask(r, id, c)
			}
			moments[id] = append(moments[id], moment{group.Time(time.Now().UnixMilli()), maps.Clone(now[id])})
			time.Sleep(time.Minute)
		}
		lookBack(t, r, began, moments)
		cancel()
		<-trimmed
		stop(t, r, ended)
	})
}

// lookBack compares what the router says of every half minute with what was.
func lookBack(t *testing.T, r *Router, began group.Time, moments map[string][]moment) {
	t.Helper()
	end := group.Time(time.Now().UnixMilli())
	for id, of := range moments {
		known := 0
		for at := began - 1; at <= end; at += 30_000 {
			want := map[int32]int64{}
			for _, m := range of {
				if m.at <= at {
					want = m.offsets
				}
			}
			got, err := r.OffsetsAsOf(t.Context(), id, at)
			var before *BeforeHistoryError
			if errors.As(err, &before) && at < before.Begins && before.Begins < end-50*60_000 {
				continue
			}
			if err != nil || !maps.Equal(offsetsOf(got), want) {
				t.Fatalf("%s at %d: %v, %v, want %v", id, at-began, offsetsOf(got), err, want)
			}
			known++
		}
		if known < 2*45 || known > 2*65 {
			t.Errorf("%s: %d half minutes are known, want about those of an hour", id, known)
		}
	}
}

// TestChanges has the changes of one group, with who made them, and none of another
// that shares its shard.
func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, ended := started(t, shard.Config{Group: group.Config{OffsetsRetention: 1 << 40}}, 1, shardtest.NewLog())
		for i := range 10 {
			c := commit(int64(i))
			c.Client = group.Client{ID: fmt.Sprint("client-", i), Host: "/10.0.0.1", Principal: "User:a"}
			ask(r, fmt.Sprint("g", i%2), c)
		}
		n := 0
		if err := r.Changes(t.Context(), "g1", func(seq uint64, rec *group.Record) error {
			i := 2*n + 1
			if seq != uint64(i) || rec.By.ClientID != fmt.Sprint("client-", i) || rec.By.Host != "/10.0.0.1" ||
				rec.Offsets[0].Partitions[0].Offset != int64(i) {
				t.Errorf("change %d: seq %d, %+v", n, seq, rec)
			}
			n++
			return nil
		}); err != nil || n != 5 {
			t.Errorf("%d changes, %v", n, err)
		}
		stop(t, r, ended)
	})
}
