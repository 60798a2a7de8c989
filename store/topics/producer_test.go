package topics

import (
	"math"
	"testing"
	"time"
)

// TestIdempotentProducer goes through sequences of batches; each is appended behind
// the ones before it. What Kafka does is in gateway/api/testdata/topics.
func TestIdempotentProducer(t *testing.T) {
	type step struct {
		epoch    int16
		sequence int32
		count    int
		want     Code
		offset   int64
	}
	for name, steps := range map[string][]step{
		"in order": {{0, 0, 2, None, 0}, {0, 2, 1, None, 2}, {0, 3, 3, None, 3}},
		"repeated": {{0, 0, 2, None, 0}, {0, 0, 2, None, 0}, {0, 2, 1, None, 2}, {0, 0, 2, None, 0}, {0, 2, 1, None, 2}},
		"a gap":    {{0, 0, 1, None, 0}, {0, 2, 1, OutOfOrderSequenceNumber, -1}, {0, 1, 1, None, 1}},
		"overlaps": {{0, 0, 3, None, 0}, {0, 1, 2, OutOfOrderSequenceNumber, -1}, {0, 0, 4, OutOfOrderSequenceNumber, -1}},
		"five are remembered, not six": {{0, 0, 1, None, 0}, {0, 1, 1, None, 1}, {0, 2, 1, None, 2}, {0, 3, 1, None, 3}, {0, 4, 1, None, 4},
			{0, 0, 1, None, 0}, {0, 5, 1, None, 5}, {0, 0, 1, OutOfOrderSequenceNumber, -1}, {0, 1, 1, None, 1}},
		"a new epoch": {{0, 0, 1, None, 0}, {1, 1, 1, OutOfOrderSequenceNumber, -1}, {1, 0, 1, None, 1}, {1, 1, 1, None, 2},
			{0, 1, 1, InvalidProducerEpoch, -1}, {0, 0, 1, InvalidProducerEpoch, -1}, {9, 0, 1, None, 3}},
		"unknown at any number": {{4, 77, 2, None, 0}, {4, 79, 1, None, 2}},
		"over the end": {{0, math.MaxInt32 - 1, 1, None, 0}, {0, math.MaxInt32, 3, None, 1}, {0, math.MaxInt32, 3, None, 1},
			{0, 2, 1, None, 4}},
		"up to the end": {{0, math.MaxInt32, 1, None, 0}, {0, 1, 1, OutOfOrderSequenceNumber, -1}, {0, 0, 1, None, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, restart := range []bool{false, true} {
				e := newEnv(t)
				e.create("t", 1)
				for i, s := range steps {
					b := values(make([]string, s.count)...)
					b.producer, b.epoch, b.sequence = 7, s.epoch, s.sequence
					a := e.append(e.log.Topic("t").Partition(0), b.encode())
					code := None
					if a.Refusal != nil {
						code = a.Refusal.Code
					}
					if code != s.want || a.BaseOffset != s.offset {
						t.Errorf("restart %t, step %d: code %d at %d, want %d at %d", restart, i, code, a.BaseOffset, s.want, s.offset)
					}
					if restart {
						e.close()
						e.open()
					}
				}
			}
		})
	}
}

// TestInFlightBatches submits batches of one producer without waiting for any: each
// is judged by those before it, durable or not, and a repeated one is not answered
// before the original is durable.
func TestInFlightBatches(t *testing.T) {
	e, gate := newGatedEnv(t)
	p := e.create("t", 1).Partition(0)
	gate.shut()
	type flight struct {
		a    []Append
		done chan struct{}
	}
	var flights []flight
	for _, sequence := range []int32{0, 1, 2, 1, 4} {
		b := values("v")
		b.producer, b.sequence = 7, sequence
		f := flight{a: []Append{{Partition: p, Records: b.encode()}}, done: make(chan struct{})}
		e.log.Append(f.a, func() { close(f.done) })
		flights = append(flights, f)
	}
	<-flights[4].done // refused at once
	for _, f := range flights[:4] {
		select {
		case <-f.done:
			t.Error("answered before the disk was")
		default:
		}
	}
	if p.End() != 0 {
		t.Errorf("%d records are shown that are not durable", p.End())
	}
	if b, err := p.Read(nil, 0, p.End(), 1<<20, true); len(b) != 0 || err != nil {
		t.Errorf("read %d bytes, %v", len(b), err)
	}
	gate.open()
	for i, want := range []int64{0, 1, 2, 1, -1} {
		<-flights[i].done
		if got := flights[i].a[0].BaseOffset; got != want {
			t.Errorf("batch %d is at %d, want %d", i, got, want)
		}
	}
	if p.End() != 3 {
		t.Errorf("the end is %d", p.End())
	}
}

func TestQuietProducersAreForgotten(t *testing.T) {
	e := newEnv(t)
	p := e.create("t", 1).Partition(0)
	send := func(producer int64, sequence int32) Code {
		b := values("v")
		b.producer, b.sequence = producer, sequence
		if a := e.append(p, b.encode()); a.Refusal != nil {
			return a.Refusal.Code
		}
		return None
	}
	send(1, 0)
	e.nowMs += (23 * time.Hour).Milliseconds()
	send(2, 0)
	e.nowMs += (2 * time.Hour).Milliseconds()
	e.log.ExpireProducers()
	if len(p.producers) != 1 || p.producers[2] == nil {
		t.Errorf("remembered: %v", p.producers)
	}
	if c := send(2, 5); c != OutOfOrderSequenceNumber {
		t.Errorf("the producer that is known: %d", c)
	}
	if c := send(1, 5); c != None {
		t.Errorf("the producer that was forgotten: %d", c)
	}
	e.nowMs += (25 * time.Hour).Milliseconds()
	e.log.ExpireProducers()
	send(3, 0)
	e.close()
	e.open()
	if p = e.log.Topic("t").Partition(0); len(p.producers) != 1 || p.producers[3] == nil {
		t.Errorf("remembered after a restart: %v", p.producers)
	}
}

func TestManyProducers(t *testing.T) {
	e := newEnv(t)
	e.log.producersMax = 20
	p := e.create("t", 1).Partition(0)
	for id := int64(1); id <= 100; id++ {
		e.nowMs++
		b := values("v")
		b.producer = id
		e.mustAppend(p, b.encode())
		if len(p.producers) > 20 || p.producers[id] == nil {
			t.Fatalf("%d producers are remembered", len(p.producers))
		}
	}
	if p.producers[90] == nil {
		t.Error("a recent producer was forgotten")
	}
	if n := e.rows(appendDataPrefix(nil, p.Topic.ID, 0, dataProducer)); n != len(p.producers) {
		t.Errorf("%d rows for %d producers", n, len(p.producers))
	}
}
