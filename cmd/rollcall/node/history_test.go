package node

import (
	"context"
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/store"
	"github.com/rollcall-mq/rollcall/store/groups"
)

// sink gets one reply.
type sink chan group.Reply

func (s sink) Reply(r group.Reply) { s <- r }

// historyTopics is how many topics the commits of TestTrimmedHistory go to in turn.
const historyTopics = 7

// onDisk is one shard over a real store.
type onDisk struct {
	*testing.T
	store *store.Store
	log   *groups.Log
	shard *shard.Shard
}

func openOnDisk(t *testing.T, fs vfs.FS) *onDisk {
	st, err := store.Open(store.Options{Dir: "data", FS: fs, Shards: 1, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	log, err := groups.Open(st.Groups(), 1)
	if err != nil {
		t.Fatal(err)
	}
	s := shard.New(shard.Config{
		Group:           group.Config{MaxMetadata: 4096, MaxSize: 10, OffsetsRetention: 1 << 40},
		CheckpointBytes: 1,
	}, 0, log)
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Run(context.Background()) }() // Stop tells what it would return
	return &onDisk{T: t, store: st, log: log, shard: s}
}

func (d *onDisk) close() {
	if err := d.shard.Stop(d.Context()); err != nil {
		d.Error(err)
	}
	if err := d.store.Close(); err != nil {
		d.Error(err)
	}
}

func (d *onDisk) ask(ev group.Event) group.Reply {
	reply := make(sink, 1)
	d.shard.Submit(d.Context(), "g", ev, reply)
	return <-reply
}

// commit makes commit number i, which is record i.
func (d *onDisk) commit(i int) {
	got := d.ask(&group.Commit{Generation: -1, Retention: -1, Topics: []group.CommitTopic{
		{Name: fmt.Sprint("t", i%historyTopics), Partitions: []group.CommitPartition{{Offset: int64(i), LeaderEpoch: -1}}},
	}})
	if got.Code != group.None {
		d.Fatal(got.Code)
	}
}

// trim cuts a piece and looks at the base.
func (d *onDisk) trim(keep shard.Keep) {
	d.Helper()
	if _, _, err := d.shard.Trim(d.Context(), keep); err != nil {
		d.Fatal(err)
	}
	d.checkBase()
}

// TestTrimmedHistory puts the runtime over the real store: while commits come, the
// history is trimmed piece by piece. The base is what was committed before it ends,
// also after a restart, and nothing is lost.
func TestTrimmedHistory(t *testing.T) {
	fs := vfs.NewMem()
	const commits = 600
	d := openOnDisk(t, fs)
	for i := range commits {
		d.commit(i)
		if i%100 == 99 {
			for range 20 { // two batches each, one straight after the other
				d.trim(shard.Keep{Excess: 100})
			}
		}
	}
	first, _, _ := d.log.Bounds(0)
	if first < 100 {
		t.Errorf("the log begins at %d, want 100 at least", first)
	}
	d.close()

	d = openOnDisk(t, fs)
	if again, _, _ := d.log.Bounds(0); again != first {
		t.Errorf("the log begins at %d after the restart, at %d before", again, first)
	}
	d.checkBase()
	wantOffsets(t, d.ask(&group.Fetch{All: true}), commits)
	d.trim(shard.Keep{Since: math.MaxInt64})
	if first, size, _ := d.log.Bounds(0); first != commits || size != 0 {
		t.Errorf("trimmed wholly, the log begins at %d with %d bytes", first, size)
	}
	d.close()

	d = openOnDisk(t, fs) // with no log at all
	d.checkBase()
	wantOffsets(t, d.ask(&group.Fetch{All: true}), commits)
	d.commit(commits)
	wantOffsets(t, d.ask(&group.Fetch{All: true}), commits+1)
	d.close()
}

// checkBase fails unless the base is what the commits before its end have made, and
// the log begins where it ends.
func (d *onDisk) checkBase() {
	d.Helper()
	m := group.New(&group.Env{}, "g")
	upto, err := d.log.BaseRows(d.Context(), 0, nil, m.ApplyRow)
	if err != nil {
		d.Fatal(err)
	}
	if first, _, _ := d.log.Bounds(0); first != upto {
		d.Fatalf("the log begins at %d, the base ends at %d", first, upto)
	}
	out := m.Step(0, &group.Fetch{Head: group.Head{Req: 1}, All: true})
	wantOffsets(d.T, out.Replies[0], int(upto))
}

// wantOffsets fails unless a fetch shows the first n commits, the last of each topic.
func wantOffsets(t *testing.T, r group.Reply, n int) {
	t.Helper()
	got, want := map[string]int64{}, map[string]int64{}
	body, ok := r.Body.(*group.FetchReply)
	if !ok {
		t.Fatalf("code %d", r.Code)
	}
	for _, topic := range body.Topics {
		got[topic.Name] = topic.Partitions[0].Offset
	}
	for i := range n {
		want[fmt.Sprint("t", i%historyTopics)] = int64(i)
	}
	if !maps.Equal(got, want) {
		t.Fatalf("after %d commits: %v, want %v", n, got, want)
	}
}
