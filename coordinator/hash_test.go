package coordinator

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf16"
)

// TestShardForGolden compares with what Java computes (B60, S0.4).
func TestShardForGolden(t *testing.T) {
	f, err := os.Open("testdata/shards.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	vectors := 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		var id string
		var hash int32
		var want [4]uint32
		if _, err := fmt.Sscan(lines.Text(), &id, &hash, &want[0], &want[1], &want[2], &want[3]); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		raw, err := hex.DecodeString(strings.TrimPrefix(id, "-"))
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range []uint32{50, 16, 1, 100003} {
			if got := ShardFor(string(raw), n); got != want[i] {
				t.Errorf("ShardFor(%q, %d) = %d, want %d (hashCode %d)", raw, n, got, want[i], hash)
			}
		}
		vectors++
	}
	if err := lines.Err(); err != nil || vectors < 80 {
		t.Errorf("read %d vectors, want at least 80: %v", vectors, err)
	}
}

// FuzzShardFor compares with the definition, by way of the standard library, for
// ids that are UTF-8, and checks that every id has a shard.
func FuzzShardFor(f *testing.F) {
	f.Add("group", uint32(50))
	f.Add("\xed\xa0\x80\xf0\x9f", uint32(1))
	f.Fuzz(func(t *testing.T, id string, n uint32) {
		if n == 0 {
			return
		}
		got := ShardFor(id, n)
		if got >= n {
			t.Fatalf("ShardFor(%q, %d) = %d", id, n, got)
		}
		valid := strings.ToValidUTF8(id, "\uFFFD")
		if valid != id {
			return
		}
		var h int32
		for _, unit := range utf16.Encode([]rune(id)) {
			h = 31*h + int32(unit)
		}
		abs := int64(h)
		if abs < 0 {
			abs = -abs
		}
		if abs == 1<<31 {
			abs = 0
		}
		if want := uint32(abs % int64(n)); got != want {
			t.Fatalf("ShardFor(%q, %d) = %d, want %d", id, n, got, want)
		}
	})
}
