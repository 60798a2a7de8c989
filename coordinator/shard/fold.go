package shard

import "github.com/rollcall-mq/rollcall/coordinator/group"

// foldState says what the checkpoint lacks of a group.
type foldState uint8

const (
	// clean: nothing.
	clean foldState = iota
	// dirty: records made since the last fold began.
	dirty
	// folding: its rows as of the fold in progress are not taken yet.
	folding
)

// fold brings the checkpoint up to date, some groups in each turn. Its rows are
// exactly those of the moment at which it began: a group is visited before the
// first event that it is stepped on after that.
type fold struct {
	// at is when the next fold begins at the latest; logged is how many bytes of
	// change log it will make superfluous.
	at     group.Time
	logged int
	// changed are the dirty groups, spare an empty list to use for them next.
	changed, spare []*entry

	// entries are the groups of the fold in progress, nil if there is none; those
	// before next have been considered.
	entries []*entry
	next    int
	// upto is the first sequence number that its rows do not contain.
	upto uint64
	// keys and values of the rows, one after the other, and where each ends. A
	// value of -1 bytes deletes the row.
	bytes  []byte
	ends   []rowEnd
	event  group.Checkpoint
	groups int
}

// rowEnd is where the key and the value of a row end in the bytes of a fold.
type rowEnd struct {
	key, value int
	deleted    bool
}

// foldBytesKept is the largest space for rows that is kept for the next fold.
const foldBytesKept = 256 << 10

// active tells whether a fold is in progress.
func (f *fold) active() bool { return f.entries != nil }

// rows iterates over the rows of the fold.
func (f *fold) rows(yield func(key, value []byte) bool) {
	at := 0
	for _, end := range f.ends {
		key, value := f.bytes[at:end.key:end.key], f.bytes[end.key:end.value:end.value]
		at = end.value
		if end.deleted {
			value = nil
		}
		if !yield(key, value) {
			return
		}
	}
}

// touch notes that a group made records.
func (s *Shard) touch(e *entry) {
	if e.folding != clean {
		return
	}
	e.folding = dirty
	s.fold.changed = append(s.fold.changed, e)
	if s.fold.at == never {
		s.fold.at = s.now + s.cfg.CheckpointInterval
	}
}

// foldSome begins a fold when one is due, and goes on with the one in progress.
// The batch of the turn must have been handed to the log.
func (s *Shard) foldSome(now group.Time) {
	f := &s.fold
	if !f.active() {
		if len(f.changed) == 0 || f.logged < s.cfg.CheckpointBytes && f.at > now {
			return
		}
		s.startFold()
	}
	for left := s.cfg.SweepMax; f.next < len(f.entries) && left > 0; left-- {
		e := f.entries[f.next]
		f.next++
		if e.folding == folding {
			s.visit(e)
		}
	}
	if f.next == len(f.entries) {
		s.endFold()
	}
}

// startFold makes the dirty groups those of a fold that begins now.
func (s *Shard) startFold() {
	invariant(s.cur.count == 0, "a fold begins in the middle of a batch")
	f := &s.fold
	f.entries, f.changed, f.spare = f.changed, f.spare[:0], nil
	f.next, f.upto = 0, s.seq
	f.at, f.logged = never, 0
	f.groups = len(f.entries)
	for _, e := range f.entries {
		e.folding = folding
	}
}

// visit takes the rows of a group that the fold in progress lacks.
func (s *Shard) visit(e *entry) {
	f := &s.fold
	e.folding = clean
	out := e.m.Step(s.now, &f.event)
	e.gone = out.Gone
	if e.gone && !e.listed {
		// Not forgotten at once: the caller may have something more to step on it.
		e.listed = true
		s.gone = append(s.gone, e)
	}
	for _, row := range out.Rows {
		f.bytes = append(f.bytes, row.Key...)
		key := len(f.bytes)
		f.bytes = append(f.bytes, row.Value...)
		f.ends = append(f.ends, rowEnd{key: key, value: len(f.bytes), deleted: row.Value == nil})
	}
}

// endFold hands the rows to the log.
func (s *Shard) endFold() {
	f := &s.fold
	if !s.out.failed.Load() {
		s.log.Checkpoint(s.n, s.epoch, f.upto, f.rows)
		s.folded.Store(f.upto)
		s.cfg.Listener.OnCheckpoint(s.n, Checkpoint{Folded: f.upto, Groups: f.groups, Rows: len(f.ends), Bytes: len(f.bytes)})
	}
	clear(f.entries)
	f.spare, f.entries = f.entries[:0], nil
	f.bytes, f.ends = f.bytes[:0], f.ends[:0]
	if cap(f.bytes) > foldBytesKept {
		f.bytes, f.ends = nil, nil
	}
	s.buryAll()
}
