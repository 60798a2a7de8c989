package groups

import (
	"encoding/binary"
	"fmt"
)

// The rows of the Pebble, all of this package's:
//
//	key                                    value
//	01 | shard u32 | name u8               meta: version u8 = 1, u64
//	02 | shard u32 | key of a state row    the coordinator's
//	03 | shard u32 | key of a base row     the coordinator's
//	04 | shard u32 | first seq u64         batch: version u8 = 1, count u32, before u64, records
//
// Numbers are big endian, so rows sort by shard and sequence number. Keys that
// begin with 00 belong to package store. What is here is on disk: never change the
// meaning of a number.
type space byte

const (
	metaSpace  space = 1
	stateSpace space = 2
	baseSpace  space = 3
	logSpace   space = 4
)

// metaName names a number that is kept for each shard.
type metaName byte

const (
	// epochRow counts the owners of the shard.
	epochRow metaName = 1
	// foldedRow is the first sequence number that the state rows do not contain.
	foldedRow metaName = 2
	// baseRow is the first sequence number that the base rows do not contain.
	baseRow metaName = 3
)

const (
	prefixLen    = 5
	metaKeyLen   = prefixLen + 1
	logKeyLen    = prefixLen + 8
	metaVersion  = 1
	metaValueLen = 9
	batchVersion = 1
	batchHeadLen = 13
)

func appendPrefix(dst []byte, s space, shard uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, byte(s)), shard)
}

// shardOf returns the shard of a row, false if that is not in the space.
func shardOf(key []byte, sp space) (shard uint32, ok bool) {
	if len(key) < prefixLen || key[0] != byte(sp) {
		return 0, false
	}
	return binary.BigEndian.Uint32(key[1:]), true
}

// prefixKey is the key of a state or base row, or the beginning of several.
func prefixKey(s space, shard uint32, key []byte) []byte {
	return append(appendPrefix(make([]byte, 0, prefixLen+len(key)), s, shard), key...)
}

// prefixEnd is the first key after all that begin with prefix. There always is
// one, since spaces are small numbers.
func prefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; ; i-- {
		end[i]++
		if end[i] != 0 {
			return end[:i+1]
		}
	}
}

func metaKey(shard uint32, name metaName) []byte {
	return append(appendPrefix(make([]byte, 0, metaKeyLen), metaSpace, shard), byte(name))
}

func appendLogKey(dst []byte, shard uint32, first uint64) []byte {
	return binary.BigEndian.AppendUint64(appendPrefix(dst, logSpace, shard), first)
}

func logKey(shard uint32, first uint64) []byte {
	return appendLogKey(make([]byte, 0, logKeyLen), shard, first)
}

// logKeyFirst returns the sequence number in the key of a batch.
func logKeyFirst(key []byte) (uint64, error) {
	if len(key) != logKeyLen || key[0] != byte(logSpace) {
		return 0, fmt.Errorf("key %x is not that of a batch", key)
	}
	return binary.BigEndian.Uint64(key[prefixLen:]), nil
}

func metaValue(n uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{metaVersion}, n)
}

func parseMeta(value []byte) (uint64, error) {
	if len(value) != metaValueLen || value[0] != metaVersion {
		return 0, fmt.Errorf("number of a shard has an unknown format: %x", value)
	}
	return binary.BigEndian.Uint64(value[1:]), nil
}

// batchHead stands before the records of a batch.
type batchHead struct {
	// count is the number of records.
	count uint32
	// before is how many bytes the batches before this one took since the log
	// began, trimmed ones included: the size of any range of the log is the
	// difference of two of these.
	before uint64
}

func (h batchHead) appendTo(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, batchVersion), h.count)
	return binary.BigEndian.AppendUint64(dst, h.before)
}

// parseBatch splits the value of a batch into its head and its records.
func parseBatch(value []byte) (h batchHead, records []byte, err error) {
	if len(value) < batchHeadLen || value[0] != batchVersion {
		return h, nil, fmt.Errorf("batch has an unknown format: %x", value[:min(len(value), batchHeadLen)])
	}
	h.count = binary.BigEndian.Uint32(value[1:])
	h.before = binary.BigEndian.Uint64(value[5:])
	return h, value[batchHeadLen:], nil
}
