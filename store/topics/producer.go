package topics

import "math"

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
	// ring has the n last batches of this epoch; the newest is at next-1.
	ring    [producerBatches]produced
	n, next int8
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
		if last := p.newest(); last != nil && h.baseSequence != addSequence(last.lastSequence(), 1) {
			return refuse(OutOfOrderSequenceNumber, "the sequence number is not the one behind the last")
		}
	}
	return nil
}

// addSequence adds to a sequence number; 0 follows the largest.
func addSequence(sequence, n int32) int32 {
	return int32((int64(sequence) + int64(n)) & math.MaxInt32)
}
