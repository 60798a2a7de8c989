package topics

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/rollcall-mq/rollcall/store"
)

// xerial frames a snappy stream as Java and Sarama do, in blocks of n bytes.
func xerial(n int) func([]byte) []byte {
	return func(b []byte) []byte {
		out := append(bytes.Clone(xerialMagic), 0, 0, 0, 1, 0, 0, 0, 1)
		for len(b) > 0 {
			block := snappy.Encode(nil, b[:min(n, len(b))])
			out = binary.BigEndian.AppendUint32(out, uint32(len(block)))
			out = append(out, block...)
			b = b[min(n, len(b)):]
		}
		return out
	}
}

func lz4Frame(options ...lz4.Option) func([]byte) []byte {
	return func(b []byte) []byte {
		var out bytes.Buffer
		w := lz4.NewWriter(&out)
		_ = w.Apply(options...)
		_, _ = w.Write(b)
		_ = w.Close()
		return out.Bytes()
	}
}

func zstdFrame(options ...zstd.EOption) func([]byte) []byte {
	return func(b []byte) []byte {
		var out bytes.Buffer
		w, _ := zstd.NewWriter(&out, options...)
		_, _ = w.Write(b)
		_ = w.Close()
		return out.Bytes()
	}
}

var codecs = map[string]struct {
	codec    int16
	compress func([]byte) []byte
}{
	"none":               {codecNone, nil},
	"gzip":               {codecGzip, gzipped},
	"snappy":             {codecSnappy, func(b []byte) []byte { return snappy.Encode(nil, b) }},
	"xerial":             {codecSnappy, xerial(32 << 10)},
	"xerial, small":      {codecSnappy, xerial(100)},
	"two xerial streams": {codecSnappy, func(b []byte) []byte { return append(xerial(99)(b[:len(b)/2]), xerial(99)(b[len(b)/2:])...) }},
	"lz4":                {codecLZ4, lz4Frame()},
	"lz4, checksums":     {codecLZ4, lz4Frame(lz4.BlockChecksumOption(true), lz4.BlockSizeOption(lz4.Block64Kb))},
	"zstd":               {codecZstd, zstdFrame()},
	"zstd, best":         {codecZstd, zstdFrame(zstd.WithEncoderLevel(zstd.SpeedBestCompression))},
	"zstd, large window": {codecZstd, zstdFrame(zstd.WithWindowSize(32 << 20))},
}

// manyRecords is a batch with bodies larger than the pieces that are decompressed
// at a time.
func manyRecords(n int) testBatch {
	var b testBatch
	for i := range n {
		r := testRecord{timestamp: testTime + int64(i%7), value: bytes.Repeat([]byte{byte(i)}, i*37%5000)}
		if i%3 > 0 {
			r.key = []byte{byte(i)}
		}
		b.records = append(b.records, r)
	}
	return b
}

// TestCodecs appends batches of every compression, and finds a time in them. The
// bytes that come back are those that went in.
func TestCodecs(t *testing.T) {
	for name, c := range codecs {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			p := e.create("t", 1).Partition(0)
			b := manyRecords(100)
			b.codec, b.compress = c.codec, c.compress
			raw := b.encode()
			for range 2 { // the decoder is used again
				a := e.mustAppend(p, raw)
				if got := e.read(p, a.BaseOffset, 1); !bytes.Equal(got[posCRC:], raw[posCRC:]) {
					t.Error("the batch changed")
				}
			}
			if offset, at, err := p.FindTime(testTime + 5); offset != 5 || at != testTime+5 || err != nil {
				t.Errorf("time found at %d (%d), %v", offset, at, err)
			}
			// Cut off, or with a byte changed that no checksum covers.
			for _, n := range []int{len(raw) - 1, len(raw) - 10, HeaderSize + 3, HeaderSize} {
				if a := e.append(p, seal(bytes.Clone(raw[:n]))); a.Refusal == nil || a.Refusal.Code != InvalidRecord {
					t.Errorf("%d of %d bytes: %+v", n, len(raw), a.Refusal)
				}
			}
		})
	}
}

func TestUnknownCodec(t *testing.T) {
	e := newEnv(t)
	p := e.create("t", 1).Partition(0)
	for _, codec := range []int16{5, 6, 7} {
		b := values("x")
		b.codec = codec
		if a := e.append(p, b.encode()); a.Refusal == nil || a.Refusal.Code != InvalidRecord {
			t.Errorf("codec %d: %+v", codec, a.Refusal)
		}
	}
}

// TestBodiesThatPromiseTooMuch: nothing is allocated for what is only announced.
func TestBodiesThatPromiseTooMuch(t *testing.T) {
	e := newEnv(t)
	p := e.create("t", 1).Partition(0)
	snappyHuge := binary.AppendUvarint(nil, 3<<30)
	xerialHuge := append(append(bytes.Clone(xerialMagic), 0, 0, 0, 1, 0, 0, 0, 1), 0xff, 0xff, 0xff, 0xff)
	for name, k := range map[string]struct {
		codec int16
		body  []byte
	}{
		"snappy": {codecSnappy, append(snappyHuge, 1, 2, 3)},
		"xerial": {codecSnappy, xerialHuge},
		"record": {codecNone, binary.AppendVarint(nil, 1<<31-1)},
		"value":  {codecNone, append(binary.AppendVarint(nil, 20), 0, 0, 0, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f)},
		"zstd":   {codecZstd, []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8}},
	} {
		b := values("x")
		b.codec, b.compress = k.codec, func([]byte) []byte { return k.body }
		raw := b.encode()
		var a *Append
		allocated := testing.AllocsPerRun(1, func() { a = e.append(p, raw) })
		if a.Refusal == nil || a.Refusal.Code != InvalidRecord {
			t.Errorf("%s: %+v", name, a.Refusal)
		}
		if allocated > 1000 {
			t.Errorf("%s: %v allocations", name, allocated)
		}
	}
}

// TestFailedWrite: nobody is told that records are there which may not be.
func TestFailedWrite(t *testing.T) {
	var broken atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return errorfs.ErrInjected
		}
		return nil
	}))
	s, err := store.Open(store.Options{Dir: "data", FS: fs, Shards: 1, Logger: store.Logger{Infof: quiet{t}.Infof, Errorf: quiet{t}.Errorf}})
	if err != nil {
		t.Fatal(err)
	}
	e := &env{t: t, nowMs: testTime, db: s.Topics().Pebble, c: s.Topics().Committer}
	if e.log, err = Open(Options{DB: e.db, Committer: e.c, Now: func() time.Time { return time.UnixMilli(testTime) }}); err != nil {
		t.Fatal(err)
	}
	p := e.create("t", 1).Partition(0)
	e.mustAppend(p, values("x").encode())
	broken.Store(true)
	if a := e.append(p, values("y").encode()); a.Refusal == nil || a.Refusal.Code != KafkaStorageError || a.BaseOffset != -1 {
		t.Errorf("answered %+v at %d", a.Refusal, a.BaseOffset)
	}
	if p.End() != 1 {
		t.Errorf("the end is %d", p.End())
	}
	if s.Close() == nil {
		t.Error("the store works on")
	}
	e.log.Close()
}

// FuzzBatch appends anything. Whatever is accepted is one batch that reads back with
// only the broker's part of the header changed and is accepted again, and its records
// can be gone through.
func FuzzBatch(f *testing.F) {
	for _, c := range codecs {
		b := manyRecords(4)
		b.codec, b.compress = c.codec, c.compress
		f.Add(b.encode(), true)
	}
	b := values("a", "b")
	b.producer, b.sequence = 1, 2147483647
	f.Add(b.encode(), false)
	f.Add(b.encode()[:40], false)
	e := newEnv(f)
	f.Cleanup(func() { e.t = f })
	p := e.create("t", 1).Partition(0)
	f.Fuzz(func(t *testing.T, raw []byte, sealed bool) {
		e.t = t
		if sealed && len(raw) >= HeaderSize { // get past length and checksum
			raw = seal(bytes.Clone(raw))
		}
		before := bytes.Clone(raw)
		end := p.End()
		a := e.append(p, raw)
		if !bytes.Equal(raw, before) {
			t.Fatal("the request was changed")
		}
		if a.Refusal != nil {
			if a.Refusal.Code == None || a.BaseOffset != -1 || p.End() != end {
				t.Fatalf("refused with %d at %d, end %d and then %d", a.Refusal.Code, a.BaseOffset, end, p.End())
			}
			return
		}
		if a.BaseOffset < end { // a repeated batch
			return
		}
		got := e.read(p, a.BaseOffset, 1)
		h := decodeHeader(got)
		if h.baseOffset != end || h.lastOffset()+1 != p.End() || int(h.length)+lengthOverhead != len(got) {
			t.Fatalf("stored at %d to %d in %d bytes, end %d and then %d", h.baseOffset, h.lastOffset(), len(got), end, p.End())
		}
		copy(got[:8], make([]byte, 8))
		if _, r := checkBatch(got, p.Topic.Settings()); r != nil {
			t.Fatalf("what was stored would be refused: %+v", r)
		}
		if _, _, err := e.log.findInBatch(got, 0, 1<<62); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStampedBatches: where the log changes more than base offset and leader epoch,
// the checksum is that of the new bytes.
func TestStampedBatches(t *testing.T) {
	e := newEnv(t)
	wrongMax := values("a", "b").encode()
	binary.BigEndian.PutUint64(wrongMax[posMaxTimestamp:], testTime+99)
	logTime := values("a", "b")
	logTime.attributes = attrLogAppendTime
	for name, k := range map[string]struct {
		raw       []byte
		appended  bool
		timestamp int64
	}{
		"as it came":                     {values("a", "b").encode(), false, testTime},
		"a largest timestamp that lies":  {seal(wrongMax), false, testTime},
		"a client that stamps":           {logTime.encode(), false, testTime},
		"the log stamps":                 {values("a", "b").encode(), true, testTime + 5},
		"the log stamps a wrong largest": {seal(bytes.Clone(wrongMax)), true, testTime + 5},
	} {
		t.Run(name, func(t *testing.T) {
			kind := "CreateTime"
			if k.appended {
				kind = "LogAppendTime"
			}
			e.nowMs = testTime
			p := e.create(fmt.Sprint("t", len(e.log.All())), 1, Config{"message.timestamp.type", kind}).Partition(0)
			e.mustAppend(p, values("before").encode())
			e.nowMs = testTime + 5
			a := e.mustAppend(p, k.raw)
			got := e.read(p, a.BaseOffset, 1)
			h := decodeHeader(got)
			if h.baseOffset != 1 || h.maxTimestamp != k.timestamp || (h.attributes&attrLogAppendTime != 0) != k.appended {
				t.Errorf("at %d, largest %d, attributes %x", h.baseOffset, h.maxTimestamp, h.attributes)
			}
			if binary.BigEndian.Uint32(got[posCRC:]) != crc32.Checksum(got[posAttributes:], castagnoli) {
				t.Error("the checksum is wrong")
			}
			if epoch := binary.BigEndian.Uint32(got[posLeaderEpoch:]); epoch != leaderEpoch {
				t.Errorf("leader epoch %d", epoch)
			}
			if k.appended != (a.LogAppendTime == testTime+5) {
				t.Errorf("append time %d", a.LogAppendTime)
			}
			if offset, at, err := p.FindTime(k.timestamp); err != nil || at != k.timestamp || k.appended && offset != 1 {
				t.Errorf("time %d is at %d (%d), %v", k.timestamp, offset, at, err)
			}
		})
	}
}
