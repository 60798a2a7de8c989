package shard_test

import (
	"encoding/binary"
	"testing"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// FuzzDecodeBatch reads anything as a batch of the change log: it is an error, or has
// as many records as its head says, numbered from its first on, and a batch made of
// these is read again.
func FuzzDecodeBatch(f *testing.F) {
	log := shardtest.NewLog()
	s := shard.New(config(), 0, log)
	if err := s.Load(f.Context()); err != nil {
		f.Fatal(err)
	}
	for i := range int64(3) {
		s.Submit(f.Context(), "g", commit(i), nil)
	}
	s.RunOnce(1)
	f.Add(log.Batches(0)[0].Value)
	f.Add([]byte("\x01\x00\x00\x00\x00"))
	f.Add([]byte("\x01\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, value []byte) {
		next := uint64(7)
		written := []byte{1, 0, 0, 0, 0}
		if err := shard.DecodeBatch(7, value, func(seq uint64, id string, rec *group.Record) error {
			if seq != next {
				t.Fatalf("record %d comes as number %d", next, seq)
			}
			next++
			written = group.AppendRecord(written, id, rec)
			return nil
		}); err != nil {
			return
		}
		count := uint32(next - 7)
		if want := binary.BigEndian.Uint32(value[1:]); count != want {
			t.Fatalf("%d records, the batch says %d", count, want)
		}
		binary.BigEndian.PutUint32(written[1:], count)
		again := uint32(0)
		if err := shard.DecodeBatch(7, written, func(uint64, string, *group.Record) error { again++; return nil }); err != nil || again != count {
			t.Fatalf("what was read is written and read as %d records, %v", again, err)
		}
	})
}
