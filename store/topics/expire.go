package topics

import (
	"slices"
	"time"

	"github.com/rollcall-mq/rollcall/store"
)

// expireInterval is how often forgotten producers are looked for, as in Kafka
// (producer.id.expiration.check.interval.ms).
const expireInterval = 10 * time.Minute

// expireLoop forgets producers until the log is closed.
func (l *Log) expireLoop() {
	tick := time.NewTicker(expireInterval)
	defer tick.Stop()
	for {
		select {
		case <-l.closed:
			return
		case <-tick.C:
			l.ExpireProducers()
		}
	}
}

// ExpireProducers forgets the producers that have been quiet for too long. Their
// rows are deleted with whatever is written next; if a crash comes first, they are
// forgotten again.
func (l *Log) ExpireProducers() {
	before := l.nowMs() - l.expireMs
	for _, t := range l.All() {
		for _, p := range t.Partitions() {
			l.mu.Lock()
			l.forget(p, func(s *producer) bool { return s.lastMs < before })
			l.mu.Unlock()
		}
	}
}

// forget forgets the producers of a partition that old picks and that have no
// transaction open. Guarded by mu.
func (l *Log) forget(p *Partition, old func(*producer) bool) {
	if p.Topic.deleting {
		return
	}
	var ids []int64
	for id, s := range p.producers {
		if s.txnFirst < 0 && old(s) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return
	}
	slices.Sort(ids)
	for _, id := range ids {
		delete(p.producers, id)
	}
	l.committer.Submit(store.Op{Write: func(b *store.Batch) {
		var key []byte
		for _, id := range ids {
			key = appendProducerKey(key[:0], p.Topic.ID, p.Index, id)
			b.Delete(key)
		}
	}})
}

// makeRoom forgets the tenth of a partition's producers that was quiet for the
// longest, if there are as many as there may be. Guarded by mu.
func (l *Log) makeRoom(p *Partition) {
	if len(p.producers) < l.producersMax {
		return
	}
	times := make([]int64, 0, len(p.producers))
	for _, s := range p.producers {
		times = append(times, s.lastMs)
	}
	slices.Sort(times)
	last := times[len(times)/10]
	l.forget(p, func(s *producer) bool { return s.lastMs <= last })
}
