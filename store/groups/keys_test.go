package groups

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"testing"
)

// TestGolden pins what is on disk.
func TestGolden(t *testing.T) {
	for _, tc := range []struct {
		what string
		got  []byte
		want string
	}{
		{"epoch of shard 0", metaKey(0, epochRow), "010000000001"},
		{"folded of shard 49", metaKey(49, foldedRow), "010000003102"},
		{"base of shard 65537", metaKey(65537, baseRow), "010001000103"},
		{"state row", prefixKey(stateSpace, 7, []byte("g")), "020000000767"},
		{"base row", prefixKey(baseSpace, 7, []byte{0, 0xff}), "030000000700ff"},
		{"all state rows of a shard", prefixKey(stateSpace, 255, nil), "02000000ff"},
		{"their end", prefixEnd(prefixKey(stateSpace, 255, nil)), "02000001"},
		{"end of the last shard's", prefixEnd(prefixKey(stateSpace, 1<<32-1, nil)), "03"},
		{"first batch", logKey(0, 0), "04000000000000000000000000"},
		{"a batch", logKey(3, 0x0102030405060708), "04000000030102030405060708"},
		{"number", metaValue(258), "010000000000000102"},
		{"head of a batch", batchHead{count: 3, before: 1 << 33}.appendTo(nil), "01000000030000000200000000"},
	} {
		if got := hex.EncodeToString(tc.got); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.what, got, tc.want)
		}
	}
}

// TestUnknownFormats: what is not understood is an error, never skipped.
func TestUnknownFormats(t *testing.T) {
	for _, value := range [][]byte{nil, {2, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 0}, make([]byte, 9)} {
		if n, err := parseMeta(value); err == nil {
			t.Errorf("number %x read as %d", value, n)
		}
	}
	for _, value := range [][]byte{nil, {1}, append([]byte{2}, make([]byte, 20)...)} {
		if h, _, err := parseBatch(value); err == nil {
			t.Errorf("batch %x read as %+v", value, h)
		}
	}
	for _, key := range [][]byte{nil, metaKey(0, epochRow), logKey(0, 0)[1:], append(logKey(0, 0), 0), prefixKey(stateSpace, 0, make([]byte, 8))} {
		if n, err := logKeyFirst(key); err == nil {
			t.Errorf("key %x read as %d", key, n)
		}
	}
}

// FuzzKeys: rows sort by space, shard and then sequence number or key, decode to
// what they were made of, and the rows under a prefix are those between it and its
// end.
func FuzzKeys(f *testing.F) {
	f.Add(uint32(0), uint64(0), []byte(""), uint32(0), uint64(1), []byte("\xff"))
	f.Add(uint32(49), uint64(1<<63), []byte("a"), uint32(50), uint64(0), []byte("aa"))
	f.Add(^uint32(0), ^uint64(0), []byte("\xff\xff"), ^uint32(0), uint64(255), []byte("\xff"))
	f.Fuzz(func(t *testing.T, shardA uint32, seqA uint64, keyA []byte, shardB uint32, seqB uint64, keyB []byte) {
		a, b := logKey(shardA, seqA), logKey(shardB, seqB)
		if got, want := bytes.Compare(a, b), cmp.Or(cmp.Compare(shardA, shardB), cmp.Compare(seqA, seqB)); got != want {
			t.Errorf("log keys %x and %x compare as %d, want %d", a, b, got, want)
		}
		if seq, err := logKeyFirst(a); err != nil || seq != seqA {
			t.Errorf("log key %x: %d, %v", a, seq, err)
		}
		if shard, ok := shardOf(a, logSpace); !ok || shard != shardA {
			t.Errorf("log key %x is of shard %d, %v", a, shard, ok)
		}
		rowA, rowB := prefixKey(stateSpace, shardA, keyA), prefixKey(stateSpace, shardB, keyB)
		if got, want := bytes.Compare(rowA, rowB), cmp.Or(cmp.Compare(shardA, shardB), bytes.Compare(keyA, keyB)); got != want {
			t.Errorf("rows %x and %x compare as %d, want %d", rowA, rowB, got, want)
		}
		within := bytes.Compare(rowA, rowB) <= 0 && bytes.Compare(rowB, prefixEnd(rowA)) < 0
		if within != (shardA == shardB && bytes.HasPrefix(keyB, keyA)) {
			t.Errorf("row %x under %x: %v", rowB, rowA, within)
		}
		for _, row := range [][]byte{metaKey(shardB, baseRow), prefixKey(baseSpace, shardB, keyB), b} {
			if bytes.Compare(prefixKey(stateSpace, shardA, nil), row) <= 0 && bytes.Compare(row, prefixEnd(prefixKey(stateSpace, shardA, nil))) < 0 {
				t.Errorf("row %x is among the state rows of shard %d", row, shardA)
			}
		}
		head, records, err := parseBatch(append(batchHead{count: shardA, before: seqA}.appendTo(nil), keyA...))
		if err != nil || head != (batchHead{shardA, seqA}) || !bytes.Equal(records, keyA) {
			t.Errorf("batch comes back as %+v, %x, %v", head, records, err)
		}
	})
}

// FuzzParse reads anything as what the Pebble of the groups has: keys and values are
// refused, or made of what is read again, byte for byte.
func FuzzParse(f *testing.F) {
	f.Add(logKey(49, 1<<40))
	f.Add(metaValue(7))
	f.Add(batchHead{count: 3, before: 1000}.appendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n, err := parseMeta(b); err == nil && !bytes.Equal(metaValue(n), b) {
			t.Errorf("number %x is read as %d", b, n)
		}
		if h, records, err := parseBatch(b); err == nil && !bytes.Equal(append(h.appendTo(nil), records...), b) {
			t.Errorf("batch %x is read as %+v, %x", b, h, records)
		}
		first, err := logKeyFirst(b)
		if shard, ok := shardOf(b, logSpace); err == nil && ok && !bytes.Equal(logKey(shard, first), b) {
			t.Errorf("key %x is read as %d of shard %d", b, first, shard)
		}
	})
}
