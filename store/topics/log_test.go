package topics

import (
	"bytes"
	"testing"
)

func (e *env) read(p *Partition, offset int64, limit int) []byte {
	e.t.Helper()
	b, err := p.Read(nil, offset, p.End(), limit, true)
	if err != nil {
		e.t.Fatal(err)
	}
	return b
}

func TestAppendAndRead(t *testing.T) {
	e := newEnv(t)
	topic := e.create("t", 2)
	p := topic.Partition(1)
	for i, want := range []int64{0, 2, 3} {
		batch := [][]byte{values("a", "b").encode(), values("c").encode(), values("d", "e", "f").encode()}[i]
		a := e.mustAppend(p, batch)
		if a.BaseOffset != want || a.LogAppendTime != -1 || a.LogStart != 0 {
			t.Errorf("append %d: %d, %d, %d", i, a.BaseOffset, a.LogAppendTime, a.LogStart)
		}
	}
	if p.Start() != 0 || p.End() != 6 {
		t.Errorf("from %d to %d", p.Start(), p.End())
	}
	all := e.read(p, 0, 1<<20)
	for off, base := range map[int64]int64{0: 0, 1: 0, 2: 2, 3: 3, 4: 3, 5: 3} {
		got := e.read(p, off, 1)
		h := decodeHeader(got)
		if h.baseOffset != base || len(got) != int(h.length)+lengthOverhead {
			t.Errorf("read at %d: batch at %d, %d bytes", off, h.baseOffset, len(got))
		}
		if !bytes.Contains(all, got) {
			t.Errorf("the batch at %d reads differently", off)
		}
	}
}
