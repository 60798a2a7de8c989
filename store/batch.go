package store

import "github.com/cockroachdb/pebble/v2"

// Batch is what an [Op] may do to a Pebble batch. Keys and values are copied.
type Batch struct{ b *pebble.Batch }

func newBatch(db *pebble.DB) *Batch {
	return &Batch{b: db.NewBatch(pebble.WithMaxRetainedSizeBytes(batchRetainedMax))}
}

// The methods ignore Pebble's errors: in v2 they are always nil for a batch that
// is not indexed, and a batch over 4 GiB panics.

// Set sets key to value.
func (b *Batch) Set(key, value []byte) { _ = b.b.Set(key, value, nil) }

// SetJoined sets key to head followed by tail, without joining them first.
func (b *Batch) SetJoined(key, head, tail []byte) {
	d := b.b.SetDeferred(len(key), len(head)+len(tail))
	copy(d.Key, key)
	copy(d.Value[copy(d.Value, head):], tail)
	_ = d.Finish()
}

// Delete removes key, whether or not it is there.
func (b *Batch) Delete(key []byte) { _ = b.b.Delete(key, nil) }

// DeleteRange removes the keys from start, inclusive, to end, exclusive.
func (b *Batch) DeleteRange(start, end []byte) { _ = b.b.DeleteRange(start, end, nil) }

// Append adds everything that is in other, which was made by the NewBatch of the
// same committer and may be closed afterwards.
func (b *Batch) Append(other *Batch) {
	if err := b.b.Apply(other.b, nil); err != nil {
		panic("store: appended a broken batch: " + err.Error())
	}
}

// Len is the size of the batch in bytes.
func (b *Batch) Len() int { return b.b.Len() }

// Close gives the memory of a batch back that NewBatch returned.
func (b *Batch) Close() { _ = b.b.Close() }
