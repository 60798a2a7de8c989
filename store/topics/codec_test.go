package topics

import (
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"github.com/rollcall-mq/rollcall/store"
)

// TestGoldenRows pins what is on the disk. A change needs a new version of the row,
// and the old bytes must go on being read.
func TestGoldenRows(t *testing.T) {
	id := ID{0xaa, 15: 0xbb}
	p := &producer{epoch: 3, lastMs: testTime, txnFirst: 112, coordinatorEpoch: 1}
	for i := range int32(7) {
		p.add(produced{firstSequence: 2 * i, lastOffsetDelta: 1, baseOffset: int64(100 + 2*i), timestamp: testTime + int64(i)})
	}
	row := topicRow{name: "orders", partitions: 12, createdMs: testTime, configs: []Config{{"retention.ms", "-1"}, {"cleanup.policy", "compact"}}}
	txn := Transaction{
		State: TransactionOngoing, V2: true, Committed: true, ProducerID: 1000, Epoch: 3, LastProducerID: -32768, LastEpoch: 126,
		TimeoutMs: 60000, Number: 11, StartMs: testTime - 1, UpdatedMs: testTime,
	}
	for name, k := range map[string]struct{ got, want string }{
		"topic key":    {hex.EncodeToString(topicKey(id)), "016daa0000000000000000000000000000bb"},
		"batch key":    {hex.EncodeToString(appendBatchKey(nil, id, 7, 258)), "0164aa0000000000000000000000000000bb00000007620000000000000102"},
		"time key":     {hex.EncodeToString(appendTimeKey(nil, id, 7, -1, 258)), "0164aa0000000000000000000000000000bb00000007697fffffffffffffff0000000000000102"},
		"producer key": {hex.EncodeToString(appendProducerKey(nil, id, 7, 5)), "0164aa0000000000000000000000000000bb00000007700000000000000005"},
		"ids key":      {hex.EncodeToString(producerIDKey()), "016e"},
		"ids":          {hex.EncodeToString(encodeProducerID(3000)), "0000000000000bb8"},
		"topic": {hex.EncodeToString(row.encode()),
			"01066f72646572730c80c0e285e368020c726574656e74696f6e2e6d73022d310e636c65616e75702e706f6c69637907636f6d70616374"},
		"producer": {hex.EncodeToString(p.encode(nil)),
			"020680c0e285e368e001020802d00184c0e285e3680c02d40186c0e285e3681002d80188c0e285e3681402dc018ac0e285e3681802e0018cc0e285e368"},
		"aborted key":     {hex.EncodeToString(appendAbortedKey(nil, id, 7, 258)), "0164aa0000000000000000000000000000bb00000007610000000000000102"},
		"transaction key": {hex.EncodeToString(transactionKey("copy")), "017404636f7079"},
		"transaction":     {hex.EncodeToString(txn.encode()), "010103d00f06ffff03fc01c0a90716febfe285e36880c0e285e368"},
		"partition of a transaction": {hex.EncodeToString(appendPartitionParticipant(transactionKey("copy"), TransactionPartition{id, 7})),
			"017404636f707970aa0000000000000000000000000000bb00000007"},
		"group of a transaction": {hex.EncodeToString(appendGroupParticipant(transactionKey("copy"), "g")), "017404636f70796767"},
	} {
		if k.got != k.want {
			t.Errorf("%s: %s, want %s", name, k.got, k.want)
		}
	}
	if got, err := decodeTopicRow(row.encode()); err != nil || !reflect.DeepEqual(got, row) {
		t.Errorf("topic: %+v, %v", got, err)
	}
	if got, err := decodeTransaction(txn.encode()); err != nil || got != txn {
		t.Errorf("transaction: %+v, %v", got, err)
	}
	got, err := decodeProducer(p.encode(nil))
	if err != nil || !reflect.DeepEqual(got.kept(), p.kept()) {
		t.Errorf("producer: %+v, %v", got, err)
	}
	before := *p
	if before.ring, before.next = got.ring, got.next; *got != before {
		t.Errorf("producer: %+v, want %+v", got, before)
	}
	// Version 1 knew no transactions.
	old, _ := hex.DecodeString("010680c0e285e3680802d00184c0e285e3680c02d40186c0e285e3681002d80188c0e285e3681402dc018ac0e285e3681802e0018cc0e285e368")
	before.txnFirst, before.coordinatorEpoch = -1, -1
	if got, err := decodeProducer(old); err != nil || *got != before {
		t.Errorf("producer of version 1: %+v, %v", got, err)
	}
}

func TestBrokenRows(t *testing.T) {
	row := topicRow{name: "t", partitions: 1, configs: []Config{{"a", "b"}}}
	p := &producer{}
	p.add(produced{})
	for name, k := range map[string]struct {
		good   []byte
		decode func([]byte) error
	}{
		"topic":       {row.encode(), func(b []byte) error { _, err := decodeTopicRow(b); return err }},
		"producer":    {p.encode(nil), func(b []byte) error { _, err := decodeProducer(b); return err }},
		"transaction": {(&Transaction{}).encode(), func(b []byte) error { _, err := decodeTransaction(b); return err }},
	} {
		if err := k.decode(k.good); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for n := range k.good {
			if name == "producer" && n == 5 {
				continue // a producer without batches
			}
			if k.decode(k.good[:n]) == nil {
				t.Errorf("%s: %d of %d bytes are taken", name, n, len(k.good))
			}
		}
		if k.decode(append(append([]byte(nil), k.good...), 0)) == nil {
			t.Errorf("%s: a byte too many is taken", name)
		}
		newer := append([]byte{99}, k.good[1:]...)
		if err := k.decode(newer); err == nil || !strings.Contains(err.Error(), "99") {
			t.Errorf("%s: version 99: %v", name, err)
		}
	}
}

// TestOpenRefusesWhatItDoesNotKnow opens stores with rows that make no sense.
func TestOpenRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, put := range map[string]func(b *store.Batch, topic *Topic){
		"topic of a newer version": func(b *store.Batch, topic *Topic) { b.Set(topicKey(topic.ID), []byte{2, 3, 4}) },
		"records of no topic":      func(b *store.Batch, topic *Topic) { b.Set(appendBatchKey(nil, ID{9}, 0, 0), values("x").encode()) },
		"records of no partition":  func(b *store.Batch, topic *Topic) { b.Set(appendBatchKey(nil, topic.ID, 5, 0), values("x").encode()) },
		"short batch":              func(b *store.Batch, topic *Topic) { b.Set(appendBatchKey(nil, topic.ID, 0, 0), []byte("x")) },
		"producer":                 func(b *store.Batch, topic *Topic) { b.Set(appendProducerKey(nil, topic.ID, 0, 1), []byte{7}) },
		"configs of a group":       func(b *store.Batch, _ *Topic) { b.Set(groupConfigKey("g"), []byte{groupConfigRowVersion, 1, 3}) },
		"ids":                      func(b *store.Batch, topic *Topic) { b.Set(producerIDKey(), []byte("abc")) },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			topic := e.create("t", 1)
			await(func(done func()) {
				e.c.Submit(store.Op{Sync: true, Write: func(b *store.Batch) { put(b, topic) }, Done: func(error) { done() }})
			})
			if _, err := Open(Options{DB: e.db, Committer: e.c}); err == nil {
				t.Error("opened")
			}
		})
	}
}

// FuzzRows reads anything as a row. What is read is written in a form that is read as
// the same again, and costs no more memory than the row has bytes.
func FuzzRows(f *testing.F) {
	row := topicRow{name: "orders", partitions: 12, createdMs: testTime, configs: []Config{{"retention.ms", "-1"}}}
	p := &producer{epoch: 3, lastMs: testTime}
	p.add(produced{firstSequence: 1, lastOffsetDelta: 1, baseOffset: 100, timestamp: testTime})
	f.Add(row.encode())
	f.Add(p.encode(nil))
	f.Add([]byte("\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if row, err := decodeTopicRow(b); err == nil {
			if 2*len(row.configs) > len(b) {
				t.Errorf("%d configs in %d bytes", len(row.configs), len(b))
			}
			if again, err := decodeTopicRow(row.encode()); err != nil || !reflect.DeepEqual(again, row) {
				t.Errorf("%+v is written and read as %+v, %v", row, again, err)
			}
		}
		if p, err := decodeProducer(b); err == nil {
			if again, err := decodeProducer(p.encode(nil)); err != nil || !reflect.DeepEqual(again.kept(), p.kept()) || again.epoch != p.epoch {
				t.Errorf("%+v is written and read as %+v, %v", p, again, err)
			}
		}
	})
}
