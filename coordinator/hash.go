package coordinator

import "unicode/utf8"

// ShardFor returns the shard of a group among n: Kafka's own choice among the
// partitions of __consumer_offsets, which is Java's String.hashCode of the id in
// UTF-16, made positive, modulo n. Everything that needs the shard of a group asks
// here.
//
// Bytes that are not UTF-8 count as U+FFFD in the places where Java's decoder puts
// it, so also such an id has one shard.
func ShardFor(id string, n uint32) uint32 {
	var h uint32
	for i := 0; i < len(id); {
		r, size := rune(id[i]), 1
		if r >= utf8.RuneSelf {
			if r, size = utf8.DecodeRuneInString(id[i:]); r == utf8.RuneError && size == 1 {
				size = malformedLen(id[i:])
			}
		}
		i += size
		if r > 0xFFFF {
			r -= 0x10000
			h = 31*h + uint32(0xD800+r>>10)
			r = 0xDC00 + r&0x3FF
		}
		h = 31*h + uint32(r)
	}
	// Java: abs(h), with abs(-2^31) = 0 as in Utils.abs.
	if int32(h) < 0 {
		h = -h
	}
	if h == 1<<31 {
		h = 0
	}
	return h % n
}

// malformedLen returns how many bytes at the start of s, which are not a rune,
// Java replaces by one U+FFFD: the longest beginning of a well-formed sequence, as
// Unicode recommends, except that an encoded surrogate counts as one, too.
func malformedLen(s string) int {
	want, low, high := 0, byte(0x80), byte(0xBF)
	switch c := s[0]; {
	case c >= 0xC2 && c <= 0xDF:
		want = 1
	case c == 0xE0:
		want, low = 2, 0xA0
	case c >= 0xE1 && c <= 0xEF:
		want = 2
	case c == 0xF0:
		want, low = 3, 0x90
	case c == 0xF4:
		want, high = 3, 0x8F
	case c >= 0xF1 && c <= 0xF3:
		want = 3
	}
	n := 1
	for n <= want && n < len(s) && s[n] >= low && s[n] <= high {
		n++
		low, high = 0x80, 0xBF
	}
	return n
}
