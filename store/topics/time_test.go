package topics

import (
	"bytes"
	"compress/gzip"
	"math/rand/v2"
	"testing"
)

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

// TestTimesAgainstModel looks up times in random logs and compares with a walk over
// all records; also after a restart.
func TestTimesAgainstModel(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		e := newEnv(t)
		p := e.create("t", 1).Partition(0)
		var all []int64
		for range 1 + rng.IntN(20) {
			var b testBatch
			for range 1 + rng.IntN(4) {
				b.records = append(b.records, testRecord{timestamp: int64(rng.IntN(50)) - 2})
			}
			if rng.IntN(3) == 0 {
				b.codec, b.compress = codecGzip, gzipped
			}
			e.mustAppend(p, b.encode())
			for _, r := range b.records {
				all = append(all, r.timestamp)
			}
			if rng.IntN(5) == 0 {
				e.close()
				e.open()
				p = e.log.Topic("t").Partition(0)
			}
		}
		for ts := int64(0); ts < 55; ts++ {
			wantOffset, wantTime := int64(-1), int64(-1)
			for i, at := range all {
				if at >= ts {
					wantOffset, wantTime = int64(i), at
					break
				}
			}
			if offset, at, err := p.FindTime(ts); offset != wantOffset || at != wantTime || err != nil {
				t.Fatalf("seed %d: time %d is at %d (%d, %v), want %d (%d)", seed, ts, offset, at, err, wantOffset, wantTime)
			}
		}
		wantOffset, wantTime := int64(-1), int64(-1)
		for i, at := range all {
			if at > wantTime {
				wantOffset, wantTime = int64(i), at
			}
		}
		if offset, at, err := p.FindMaxTime(); wantTime >= 0 && (offset != wantOffset || at != wantTime) || err != nil {
			t.Fatalf("seed %d: the largest is at %d (%d, %v), want %d (%d)", seed, offset, at, err, wantOffset, wantTime)
		}
	}
}

// TestTimesShowOnlyWhatIsDurable looks while an append waits for the disk.
func TestTimesShowOnlyWhatIsDurable(t *testing.T) {
	e, gate := newGatedEnv(t)
	p := e.create("t", 1).Partition(0)
	at := func(ts int64) []byte { return testBatch{records: []testRecord{{timestamp: ts}}}.encode() }
	e.mustAppend(p, at(100))
	gate.shut()
	done := make(chan struct{})
	e.log.Append([]Append{{Partition: p, Records: at(200)}}, func() { close(done) })
	if offset, ts, err := p.FindMaxTime(); offset != 0 || ts != 100 || err != nil {
		t.Errorf("the largest is at %d (%d, %v)", offset, ts, err)
	}
	if offset, _, err := p.FindTime(150); offset != -1 || err != nil {
		t.Errorf("time 150 is at %d (%v)", offset, err)
	}
	gate.open()
	<-done
	if offset, ts, err := p.FindTime(150); offset != 1 || ts != 200 || err != nil {
		t.Errorf("time 150 is at %d (%d, %v)", offset, ts, err)
	}
}

// TestReadAgainstModel reads random logs from every offset with random limits.
func TestReadAgainstModel(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		e := newEnv(t)
		p := e.create("t", 1).Partition(0)
		var stored [][]byte // as they read
		var bases []int64
		next := int64(0)
		for range 1 + rng.IntN(15) {
			b := values(make([]string, 1+rng.IntN(5))...)
			b.records[0].value = make([]byte, rng.IntN(200))
			a := e.mustAppend(p, b.encode())
			if a.BaseOffset != next {
				t.Fatalf("seed %d: base %d, want %d", seed, a.BaseOffset, next)
			}
			bases = append(bases, next)
			next += int64(len(b.records))
			stored = append(stored, e.read(p, a.BaseOffset, 0))
		}
		for offset := range next + 1 {
			limit := rng.IntN(1000)
			for _, one := range []bool{false, true} {
				var want []byte
				for i, raw := range stored {
					end := next
					if i+1 < len(bases) {
						end = bases[i+1]
					}
					if end <= offset {
						continue
					}
					if len(want)+len(raw) > limit && (len(want) > 0 || !one) {
						break
					}
					want = append(want, raw...)
				}
				got, err := p.Read(nil, offset, next, limit, one)
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("seed %d: at %d with %d bytes, one %t: %d bytes, want %d, %v", seed, offset, limit, one, len(got), len(want), err)
				}
				if n := p.Available(offset, next, limit); n > limit || n < min(len(want), limit) {
					t.Fatalf("seed %d: at %d up to %d bytes are available: %d, of %d", seed, offset, limit, n, len(want))
				}
			}
		}
	}
}
