package topics

import (
	"encoding/binary"
	"hash/crc32"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/rollcall-mq/rollcall/store"
)

// testTime is the time of the tests' clock when they begin.
const testTime = 1_800_000_000_000

// env is a log on a file system in memory.
type env struct {
	t     testing.TB
	fs    *vfs.MemFS
	db    *pebble.DB
	c     *store.Committer
	log   *Log
	nowMs int64
	opts  Options
	// inject comes between Pebble and fs.
	inject errorfs.Injector
}

func newEnv(t testing.TB) *env {
	e := &env{t: t, fs: vfs.NewCrashableMem(), nowMs: testTime}
	e.open()
	t.Cleanup(func() {
		if e.db != nil {
			e.close()
		}
	})
	return e
}

// gate holds back the syncs of write-ahead logs while it is shut.
type gate struct{ mu sync.Mutex }

func (g *gate) shut() { g.mu.Lock() }
func (g *gate) open() { g.mu.Unlock() }

func (g *gate) MaybeError(op errorfs.Op) error {
	if op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo {
		g.mu.Lock()
		defer g.mu.Unlock()
	}
	return nil
}

func (g *gate) String() string { return "gate" }

func newGatedEnv(t testing.TB) (*env, *gate) {
	g := new(gate)
	e := &env{t: t, fs: vfs.NewCrashableMem(), nowMs: testTime, inject: g}
	e.open()
	t.Cleanup(e.close)
	return e, g
}

func (e *env) open() {
	e.t.Helper()
	var fs vfs.FS = e.fs
	if e.inject != nil {
		fs = errorfs.Wrap(fs, e.inject)
	}
	db, err := pebble.Open("topics", &pebble.Options{FS: fs, Logger: quiet{e.t}})
	if err != nil {
		e.t.Fatal(err)
	}
	e.db, e.c = db, store.NewCommitter(db, store.CommitterOptions{})
	o := e.opts
	o.DB, o.Committer = e.db, e.c
	o.Now = func() time.Time { return time.UnixMilli(e.nowMs) }
	if e.log, err = Open(o); err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) close() {
	e.t.Helper()
	if err := e.c.Close(); err != nil {
		e.t.Error(err)
	}
	e.log.Close()
	if err := e.db.Close(); err != nil {
		e.t.Error(err)
	}
	e.db = nil
}

// quiet keeps Pebble's messages for failing tests.
type quiet struct{ t testing.TB }

func (quiet) Infof(string, ...any)           {}
func (q quiet) Errorf(f string, args ...any) { q.t.Logf(f, args...) }
func (q quiet) Fatalf(f string, args ...any) { panic("pebble failed") }

// await runs f, which calls the function that it is given once, and waits for that.
func await(f func(done func())) {
	c := make(chan struct{})
	f(func() { close(c) })
	<-c
}

func (e *env) create(name string, partitions int32, configs ...Config) *Topic {
	e.t.Helper()
	t, r := e.tryCreate(NewTopic{Name: name, Partitions: partitions, Configs: configs})
	if r != nil {
		e.t.Fatalf("create %s: %+v", name, r)
	}
	return t
}

func (e *env) tryCreate(n NewTopic) (t *Topic, r *Refusal) {
	e.t.Helper()
	await(func(done func()) {
		e.log.Create(n, func(topic *Topic, refusal *Refusal, err error) {
			if err != nil {
				e.t.Error(err)
			}
			t, r = topic, refusal
			done()
		})
	})
	return t, r
}

// append appends one batch and waits for it.
func (e *env) append(p *Partition, records []byte) *Append {
	e.t.Helper()
	a := []Append{{Partition: p, Records: records, Zstd: true}}
	await(func(done func()) { e.log.Append(a, done) })
	return &a[0]
}

func (e *env) mustAppend(p *Partition, records []byte) *Append {
	e.t.Helper()
	a := e.append(p, records)
	if a.Refusal != nil {
		e.t.Fatalf("append: %+v", a.Refusal)
	}
	return a
}

// testRecord is a record of a test's batch.
type testRecord struct {
	timestamp  int64
	key, value []byte
}

// testBatch describes a record batch; fields that are zero have usual values.
type testBatch struct {
	records    []testRecord
	codec      int16
	attributes int16 // besides the codec
	producer   int64 // 0 for none
	epoch      int16
	sequence   int32
	compress   func([]byte) []byte
}

// values is a batch of records with these values at the test's time.
func values(vs ...string) testBatch {
	var b testBatch
	for _, v := range vs {
		b.records = append(b.records, testRecord{timestamp: testTime, value: []byte(v)})
	}
	return b
}

func appendBytes(dst, b []byte) []byte {
	if b == nil {
		return binary.AppendVarint(dst, -1)
	}
	return append(binary.AppendVarint(dst, int64(len(b))), b...)
}

// encode returns the batch as a producer would send it.
func (b testBatch) encode() []byte {
	base, largest := b.records[0].timestamp, b.records[0].timestamp
	var body []byte
	for i, r := range b.records {
		largest = max(largest, r.timestamp)
		rec := []byte{0}
		rec = binary.AppendVarint(rec, r.timestamp-base)
		rec = binary.AppendVarint(rec, int64(i))
		rec = appendBytes(rec, r.key)
		rec = appendBytes(rec, r.value)
		rec = binary.AppendVarint(rec, 0)
		body = append(binary.AppendVarint(body, int64(len(rec))), rec...)
	}
	if b.compress != nil {
		body = b.compress(body)
	}
	h := make([]byte, HeaderSize)
	be := binary.BigEndian
	be.PutUint32(h[posLeaderEpoch:], ^uint32(0))
	h[posMagic] = magic2
	be.PutUint16(h[posAttributes:], uint16(b.attributes|b.codec))
	be.PutUint32(h[posLastOffsetDelta:], uint32(len(b.records)-1))
	be.PutUint64(h[posBaseTimestamp:], uint64(base))
	be.PutUint64(h[posMaxTimestamp:], uint64(largest))
	producer, epoch, sequence := b.producer, b.epoch, b.sequence
	if producer == 0 {
		producer, epoch, sequence = -1, -1, -1
	}
	be.PutUint64(h[posProducerID:], uint64(producer))
	be.PutUint16(h[posProducerEpoch:], uint16(epoch))
	be.PutUint32(h[posBaseSequence:], uint32(sequence))
	be.PutUint32(h[posCount:], uint32(len(b.records)))
	return seal(append(h, body...))
}

// seal makes the length and the checksum of a batch fit.
func seal(b []byte) []byte {
	binary.BigEndian.PutUint32(b[posLength:], uint32(len(b)-lengthOverhead))
	binary.BigEndian.PutUint32(b[posCRC:], crc32.Checksum(b[posAttributes:], castagnoli))
	return b
}
