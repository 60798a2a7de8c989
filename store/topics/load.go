package topics

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

func encodeProducerID(next int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(next))
}

// load makes the state of everything from the store: one look at the end of each
// partition that has data, and one row for each producer.
func (l *Log) load() error {
	it, err := l.db.NewIter(&pebble.IterOptions{
		LowerBound: []byte{noTenant, kindTopic},
		UpperBound: []byte{noTenant, kindTopic + 1},
	})
	if err != nil {
		return fmt.Errorf("read the topics: %w", err)
	}
	for it.First(); it.Valid(); it.Next() {
		if err := l.loadTopic(it.Key(), it.Value()); err != nil {
			_ = it.Close()
			return err
		}
	}
	if err := it.Close(); err != nil {
		return fmt.Errorf("read the topics: %w", err)
	}
	if err := l.loadGroupConfigs(); err != nil {
		return err
	}
	if err := l.loadProducerIDs(); err != nil {
		return err
	}
	return l.loadData()
}

func (l *Log) loadTopic(key, value []byte) error {
	row, err := decodeTopicRow(value)
	if err != nil || len(key) != len(topicKey(ID{})) {
		return fmt.Errorf("read the topic under key %x: %w", key, err)
	}
	t := l.newTopic(ID(key[2:]), row)
	l.names.add(t)
	l.publish(t)
	return nil
}

func (l *Log) loadProducerIDs() error {
	value, closer, err := l.db.Get(producerIDKey())
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the next producer id: %w", err)
	}
	defer closer.Close()
	if len(value) != 8 {
		return fmt.Errorf("the next producer id has %d bytes, not 8", len(value))
	}
	l.idNext = int64(binary.BigEndian.Uint64(value))
	l.idEnd = l.idNext
	l.idDurable.Store(l.idNext)
	return nil
}

// loadData goes from one partition that has data to the next.
func (l *Log) loadData() error {
	it, err := l.db.NewIter(&pebble.IterOptions{
		LowerBound: []byte{noTenant, kindData},
		UpperBound: []byte{noTenant, kindData + 1},
	})
	if err != nil {
		return fmt.Errorf("read the partitions: %w", err)
	}
	for it.First(); it.Valid(); {
		p := l.partitionOf(it.Key())
		if p == nil {
			_ = it.Close()
			return fmt.Errorf("key %x belongs to no partition", it.Key())
		}
		prefix := appendPartitionPrefix(nil, p.Topic.ID, p.Index)
		if err := p.load(it); err != nil {
			_ = it.Close()
			return fmt.Errorf("read partition %d of topic %s: %w", p.Index, p.Topic.Name, err)
		}
		it.SeekGE(after(prefix))
	}
	return it.Close()
}

func (l *Log) partitionOf(key []byte) *Partition {
	if len(key) < dataPrefixSize {
		return nil
	}
	t := l.TopicByID(ID(key[2:topicPrefixSize]))
	if t == nil {
		return nil
	}
	return t.Partition(int32(binary.BigEndian.Uint32(key[topicPrefixSize:])))
}

// load finds where the partition begins and ends, its largest timestamp and its
// producers.
func (p *Partition) load(it *pebble.Iterator) error {
	batches := appendDataPrefix(nil, p.Topic.ID, p.Index, dataBatch)
	if it.SeekGE(batches) && bytes.HasPrefix(it.Key(), batches) {
		p.swept = int64(suffix64(it.Key()))
	}
	if key := partitionKey(p.Topic.ID, p.Index); it.SeekGE(key) && bytes.Equal(it.Key(), key) {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if p.row, err = decodePartitionRow(value); err != nil {
			return err
		}
	}
	p.start.Store(p.row.start)
	p.cleaned = p.row.cleaned
	p.next = p.row.start
	if it.SeekLT(after(batches)) && bytes.HasPrefix(it.Key(), batches) {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if len(value) < HeaderSize {
			return errRow
		}
		h := decodeHeader(value)
		p.next = max(p.next, h.lastOffset()+1)
	}
	p.end.Store(p.next)
	times := appendDataPrefix(nil, p.Topic.ID, p.Index, dataTime)
	if it.SeekLT(after(times)) && bytes.HasPrefix(it.Key(), times) {
		p.maxTimestamp = unordered(binary.BigEndian.Uint64(it.Key()[dataPrefixSize:]))
	}
	producers := appendDataPrefix(nil, p.Topic.ID, p.Index, dataProducer)
	for it.SeekGE(producers); it.Valid() && bytes.HasPrefix(it.Key(), producers); it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		state, err := decodeProducer(value)
		if err != nil {
			return err
		}
		p.remember(int64(suffix64(it.Key())), state)
		if state.txnFirst >= 0 {
			p.open = append(p.open, state)
		}
	}
	slices.SortFunc(p.open, func(a, b *producer) int { return cmp.Compare(a.txnFirst, b.txnFirst) })
	p.stable.Store(p.stableNext())
	aborted := appendDataPrefix(nil, p.Topic.ID, p.Index, dataAborted)
	if it.SeekLT(after(aborted)) && bytes.HasPrefix(it.Key(), aborted) {
		p.aborted.Store(int64(suffix64(it.Key())))
	}
	return it.Error()
}

func (p *Partition) remember(id int64, state *producer) {
	if p.producers == nil {
		p.producers = map[int64]*producer{}
	}
	p.producers[id] = state
}
