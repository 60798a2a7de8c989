package store

// Committer is the one writer of a Pebble: while a sync runs it gathers what all
// shards or partitions hand in and writes it as one batch with one sync.
type Committer struct{}

// Op is one unit of a commit: Write puts its keys into the shared batch, on the
// committer's goroutine; Done, if set, is called once with the result, in order of
// submission, on the committer's goroutine, and must not block.
type Op struct {
	Write func(b Batch) error
	// Size is about how many bytes Write adds; Submit blocks while too many wait.
	Size int
	// Sync: Done waits for the disk. Without it the op rides along with the next
	// batch and needs no sync of its own.
	Sync bool
	Done func(error)
}

// Batch is the part of a Pebble batch that an Op may use.
type Batch interface {
	Set(key, value []byte) error
	Delete(key []byte) error
	DeleteRange(start, end []byte) error
}
