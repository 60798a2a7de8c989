package topics

import "encoding/binary"

// ID is a topic's id, a UUID.
type ID [16]byte

// noTenant is the empty tenant, which all keys begin with until there are several:
// the length plus one, because keys under the byte 0 belong to package store.
const noTenant = 0x01

const (
	kindTopic      = 'm'
	kindProducerID = 'n'
	kindData       = 'd'
	kindTransact   = 't'

	kindGroupConfig = 'g'

	dataAborted  = 'a'
	dataBatch    = 'b'
	dataTime     = 'i'
	dataProducer = 'p'
	dataLog      = 's'
)

// Sizes of the keys under kindData.
const (
	topicPrefixSize     = 2 + 16
	partitionPrefixSize = topicPrefixSize + 4
	dataPrefixSize      = partitionPrefixSize + 1
)

func topicKey(id ID) []byte {
	return append([]byte{noTenant, kindTopic}, id[:]...)
}

func groupConfigKey(group string) []byte {
	return append([]byte{noTenant, kindGroupConfig}, group...)
}

func producerIDKey() []byte { return []byte{noTenant, kindProducerID} }

func appendPartitionPrefix(dst []byte, id ID, partition int32) []byte {
	dst = append(dst, noTenant, kindData)
	dst = append(dst, id[:]...)
	return binary.BigEndian.AppendUint32(dst, uint32(partition))
}

func appendDataPrefix(dst []byte, id ID, partition int32, kind byte) []byte {
	return append(appendPartitionPrefix(dst, id, partition), kind)
}

func appendBatchKey(dst []byte, id ID, partition int32, offset int64) []byte {
	return binary.BigEndian.AppendUint64(appendDataPrefix(dst, id, partition, dataBatch), uint64(offset))
}

func appendTimeKey(dst []byte, id ID, partition int32, timestamp, offset int64) []byte {
	dst = binary.BigEndian.AppendUint64(appendDataPrefix(dst, id, partition, dataTime), ordered(timestamp))
	return binary.BigEndian.AppendUint64(dst, uint64(offset))
}

func appendProducerKey(dst []byte, id ID, partition int32, producer int64) []byte {
	return binary.BigEndian.AppendUint64(appendDataPrefix(dst, id, partition, dataProducer), uint64(producer))
}

func partitionKey(id ID, partition int32) []byte {
	return appendDataPrefix(nil, id, partition, dataLog)
}

// ordered maps signed numbers to unsigned ones of the same order.
func ordered(v int64) uint64 { return uint64(v) ^ 1<<63 }

func unordered(v uint64) int64 { return int64(v ^ 1<<63) }

// suffix64 is the number that a key ends with.
func suffix64(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }

// after is the end of the range of all keys that begin with prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		end[i]++
		if end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

func appendAbortedKey(dst []byte, id ID, partition int32, marker int64) []byte {
	return binary.BigEndian.AppendUint64(appendDataPrefix(dst, id, partition, dataAborted), uint64(marker))
}
