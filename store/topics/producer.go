package topics

import (
	"cmp"
	"math"
	"slices"
)

// producerBatches is how many of a producer's last batches are remembered: as many
// as clients have in flight (max.in.flight.requests.per.connection with
// idempotence), so that any of them can be recognised when it comes again.
const producerBatches = 5

// producer is what a partition remembers of an idempotent producer. It follows the
// newest append, durable or not.
type producer struct {
	epoch int16
	// lastMs is when it last appended, by our clock.
	lastMs int64
	// txnFirst is the first offset of its open transaction, -1 without one. Set by
	// the first transactional batch, taken back by a marker.
	txnFirst int64
	// coordinatorEpoch is that of its last marker, -1 before one.
	coordinatorEpoch int32
	// ring has the n last batches of this epoch; the newest is at next-1.
	ring    [producerBatches]produced
	n, next int8
}

func newProducer(epoch int16) *producer {
	return &producer{epoch: epoch, txnFirst: -1, coordinatorEpoch: -1}
}

// produced is a batch that was appended.
type produced struct {
	firstSequence   int32
	lastOffsetDelta int32
	baseOffset      int64
	timestamp       int64
}

func (e *produced) lastSequence() int32 { return addSequence(e.firstSequence, e.lastOffsetDelta) }
func (e *produced) lastOffset() int64   { return e.baseOffset + int64(e.lastOffsetDelta) }

func (p *producer) add(e produced) {
	p.ring[p.next] = e
	p.next = (p.next + 1) % producerBatches
	p.n = min(p.n+1, producerBatches)
}

// kept returns the remembered batches, the oldest first.
func (p *producer) kept() []produced {
	all := make([]produced, 0, producerBatches)
	for i := producerBatches - p.n; i < producerBatches; i++ {
		all = append(all, p.ring[(p.next+i)%producerBatches])
	}
	return all
}

func (p *producer) newest() *produced {
	if p.n == 0 {
		return nil
	}
	return &p.ring[(p.next+producerBatches-1)%producerBatches]
}

// lastSequence is the sequence number of the last record of this epoch, -1 if there
// is none: a marker may have begun the epoch.
func (p *producer) lastSequence() int32 {
	if last := p.newest(); last != nil {
		return last.lastSequence()
	}
	return -1
}

// duplicate returns the earlier append of the batch with this header, nil if it is
// not remembered.
func (p *producer) duplicate(h *header) *produced {
	if p == nil || h.producerEpoch != p.epoch {
		return nil
	}
	for i := int8(0); i < p.n; i++ {
		e := &p.ring[i]
		if e.firstSequence == h.baseSequence && e.lastOffsetDelta == h.lastOffsetDelta {
			return e
		}
	}
	return nil
}

// admit checks the epoch and the sequence of a batch against what came before it,
// as Kafka's ProducerAppendInfo does. A producer that is not known, be it new or
// forgotten, may begin anywhere.
func (p *producer) admit(h *header) *Refusal {
	switch {
	case p == nil:
		return nil
	case h.producerEpoch < p.epoch:
		return refuse(InvalidProducerEpoch, "the producer has a newer epoch")
	case h.producerEpoch > p.epoch:
		if h.baseSequence != 0 {
			return refuse(OutOfOrderSequenceNumber, "a new epoch begins with sequence number 0")
		}
	default:
		if h.baseSequence != addSequence(p.lastSequence(), 1) {
			return refuse(OutOfOrderSequenceNumber, "the sequence number is not the one behind the last")
		}
	}
	if p.txnFirst >= 0 && !h.transactional() {
		return refuse(InvalidTxnState, "the producer has a transaction open here, and the batch is not part of it")
	}
	return nil
}

// addSequence adds to a sequence number; 0 follows the largest.
func addSequence(sequence, n int32) int32 {
	return int32((int64(sequence) + int64(n)) & math.MaxInt32)
}

// ProducerState is what an administrator sees of a producer in a partition.
type ProducerState struct {
	ID               int64
	Epoch            int16
	LastSequence     int32 // -1 if there is none
	LastMs           int64
	CoordinatorEpoch int32
	// TxnFirst is the first offset of its open transaction, -1 without one.
	TxnFirst int64
}

// Producers returns the producers that a partition remembers, by their ids.
func (l *Log) Producers(p *Partition) []ProducerState {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]ProducerState, 0, len(p.producers))
	for id, s := range p.producers {
		all = append(all, ProducerState{id, s.epoch, s.lastSequence(), s.lastMs, s.coordinatorEpoch, s.txnFirst})
	}
	slices.SortFunc(all, func(a, b ProducerState) int { return cmp.Compare(a.ID, b.ID) })
	return all
}
