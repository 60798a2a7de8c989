package txn

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rollcall-mq/rollcall/coordinator"
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/store"
	"github.com/rollcall-mq/rollcall/store/groups"
	"github.com/rollcall-mq/rollcall/store/topics"
)

// world is both coordinators over a data directory in memory.
type world struct {
	t     testing.TB
	fs    *vfs.MemFS
	store *store.Store
	log   *topics.Log
	// router and txns run until stop.
	router *coordinator.Router
	txns   *Coordinator
	stop   context.CancelFunc
	ended  sync.WaitGroup
	// now is what the clock of transactions says.
	now time.Time
}

const shards = 2

func newWorld(t testing.TB) *world {
	w := &world{t: t, fs: vfs.NewCrashableMem(), now: time.UnixMilli(1_800_000_000_000)}
	w.up()
	t.Cleanup(func() { w.down() })
	return w
}

func testConfig() Config {
	return Config{TimeoutMaxMs: 900_000, IDExpiration: 7 * 24 * time.Hour, AbortInterval: time.Hour, ExpireInterval: time.Hour}
}

func (w *world) up() {
	w.t.Helper()
	must := func(err error) {
		if err != nil {
			w.t.Fatal(err)
		}
	}
	var err error
	w.store, err = store.Open(store.Options{Dir: "data", FS: w.fs, Shards: shards, Version: "test"})
	must(err)
	changes, err := groups.Open(w.store.Groups(), shards)
	must(err)
	clock := func() time.Time { return w.now }
	w.log, err = topics.Open(topics.Options{DB: w.store.Topics().Pebble, Committer: w.store.Topics().Committer, Now: clock})
	must(err)
	w.router = coordinator.NewRouter(shard.Config{
		Group:        group.Config{MaxSize: 10, MaxMetadata: 100, OffsetsRetention: 1 << 40, PendingMax: 10},
		Transactions: func(id string, t group.Transaction) group.Outcome { return w.txns.Outcome(id, t) },
	}, shards, changes)
	w.txns, err = New(testConfig(), w.log, w.router, clock)
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	w.ended.Go(func() { _ = w.router.Run(ctx, nil) })
	w.ended.Go(func() { w.txns.Run(ctx) })
	for ready := false; !ready; {
		ready, _ = w.router.Ready()
	}
}

func (w *world) down() {
	w.t.Helper()
	w.stop()
	w.ended.Wait()
	if err := w.store.Close(); err != nil {
		w.t.Error(err)
	}
	w.log.Close()
}

// crash goes on with what a power failure leaves: all that was synced, and of the
// rest as much as the percentage says.
func (w *world) crash(unsynced int, rng *rand.Rand) {
	w.t.Helper()
	clone := w.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: rng})
	w.restart(clone)
}

func (w *world) restart(fs *vfs.MemFS) {
	w.t.Helper()
	w.down()
	w.fs = fs
	w.up()
}

// wait calls f, which calls its argument once, and waits for that.
func wait[T any](f func(done func(T))) T {
	c := make(chan T, 1)
	f(func(v T) { c <- v })
	return <-c
}

func (w *world) create(name string, partitions int32) *topics.Topic {
	w.t.Helper()
	return wait(func(done func(*topics.Topic)) {
		w.log.Create(topics.NewTopic{Name: name, Partitions: partitions}, func(t *topics.Topic, r *topics.Refusal, err error) {
			if r != nil || err != nil {
				w.t.Errorf("create %s: %v, %v", name, r, err)
			}
			done(t)
		})
	})
}

// outcome is an answer that has a producer.
type outcome struct {
	p    Producer
	code int16
}

func (w *world) init(id string, expected Producer) outcome {
	return wait(func(done func(outcome)) {
		w.txns.Init(id, 60_000, expected, func(p Producer, code int16) { done(outcome{p, code}) })
	})
}

func (w *world) end(id string, p Producer, commit, v2 bool) outcome {
	return wait(func(done func(outcome)) {
		w.txns.End(id, p, commit, v2, func(p Producer, code int16) { done(outcome{p, code}) })
	})
}

// produce appends one record of a transaction and returns the code.
func (w *world) produce(id string, p Producer, sequence int32, topic string, partition int32) topics.Code {
	a := []topics.Append{{Partition: w.log.Topic(topic).Partition(partition), Records: transactional(p, sequence)}}
	wait(func(done func(bool)) { w.txns.Append(id, Implicit, a, func() { done(true) }) })
	if a[0].Refusal != nil {
		return a[0].Refusal.Code
	}
	return topics.None
}

// sink hands a reply on.
type sink func(group.Reply)

func (s sink) Reply(r group.Reply) { s(r) }

// commit stages an offset of partition 0 of a topic.
func (w *world) commit(id string, p Producer, groupID, topic string, offset int64) group.Code {
	ev := &group.TxnCommit{Generation: -1, Topics: []group.CommitTopic{{Name: topic, ID: group.TopicID(w.log.Topic(topic).ID),
		Partitions: []group.CommitPartition{{Offset: offset, LeaderEpoch: -1}}}}}
	return wait(func(done func(group.Reply)) {
		w.txns.CommitOffsets(context.Background(), id, p, groupID, Implicit, ev, sink(done))
	}).Code
}

// committed is what a group has committed for partition 0 of a topic, -1 without it,
// when nothing is pending any more.
func (w *world) committed(groupID, topic string) int64 {
	w.t.Helper()
	for {
		ev := &group.Fetch{RequireStable: true, Topics: []group.FetchTopic{{Name: topic, ID: group.TopicID(w.log.Topic(topic).ID), Partitions: []int32{0}}}}
		r := wait(func(done func(group.Reply)) { w.router.Submit(context.Background(), groupID, ev, sink(done)) })
		if r.Code != group.None {
			w.t.Fatalf("fetch of %s: %d", groupID, r.Code)
		}
		p := r.Body.(*group.FetchReply).Topics[0].Partitions[0]
		if p.Code == group.None {
			return p.Offset
		}
	}
}

// records counts the records of a partition that a reader of committed ones gets.
func (w *world) records(topic string, partition int32) (n int) {
	w.t.Helper()
	p := w.log.Topic(topic).Partition(partition)
	b, err := p.Read(nil, 0, p.Stable(), 1<<30, true)
	if err != nil {
		w.t.Fatal(err)
	}
	aborted, err := p.Aborted(0, p.Stable())
	if err != nil {
		w.t.Fatal(err)
	}
	skip := map[int64]bool{}
	for be := binary.BigEndian; len(b) > 0; b = b[12+be.Uint32(b[8:]):] {
		offset, id := int64(be.Uint64(b)), int64(be.Uint64(b[43:]))
		for _, a := range aborted {
			if a.First == offset {
				skip[a.ProducerID] = true
			}
		}
		switch control := be.Uint16(b[21:])&0x20 != 0; {
		case control:
			skip[id] = false
		case !skip[id]:
			n++
		}
	}
	return n
}

// transactional is a batch of one record.
func transactional(p Producer, sequence int32) []byte {
	b := make([]byte, topics.HeaderSize, topics.HeaderSize+8)
	be := binary.BigEndian
	b[16], b[22] = 2, 0x10
	be.PutUint64(b[27:], 1_800_000_000_000)
	be.PutUint64(b[35:], 1_800_000_000_000)
	be.PutUint64(b[43:], uint64(p.ID))
	be.PutUint16(b[51:], uint16(p.Epoch))
	be.PutUint32(b[53:], uint32(sequence))
	be.PutUint32(b[57:], 1)
	b = append(b, 7<<1, 0, 0, 0, 1, 1<<1, 'v', 0)
	be.PutUint32(b[8:], uint32(len(b)-12))
	be.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}
