package group

import "testing"

// The buckets that Java 17 says, which decide ties between protocols; a map with more
// than twelve names has twice as many.
func TestHashMapBucket(t *testing.T) {
	for _, c := range []struct {
		name      string
		few, many uint32
	}{
		{"sticky", 8, 24}, {"range", 9, 9}, {"roundrobin", 10, 10}, {"cooperative-sticky", 15, 15}, {"", 0, 0}, {"ü😀", 1, 1},
	} {
		if few, many := hashMapBucket(c.name, 12), hashMapBucket(c.name, 13); few != c.few || many != c.many {
			t.Errorf("%q: buckets %d of 16 and %d of 32, want %d and %d", c.name, few, many, c.few, c.many)
		}
	}
}
