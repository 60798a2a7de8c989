package history

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// The search for a linear order is bounded: that of one partition of a group, which
// takes milliseconds, and that of all partitions together, which can take for ever if
// many commits were under way at a time.
const (
	slotTimeout  = 5 * time.Minute
	groupTimeout = time.Second
)

// Check returns what is wrong with a history, nil if nothing is. Nobody may add to
// it meanwhile.
func (h *History) Check() error {
	var errs []error
	for _, p := range h.Problems {
		errs = append(errs, errors.New(p))
	}
	errs = append(errs, h.checkLeads(), h.checkOwners(), h.checkFencing())
	for _, group := range slices.Sorted(maps.Keys(h.groups())) {
		ops := h.opsOf(group)
		lost := checkLost(group, ops)
		errs = append(errs, lost)
		if lost == nil { // which it would find, too, with fewer words
			undecided, err := checkLinear(group, ops)
			if undecided {
				h.Undecided++
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// groups returns the groups with operations.
func (h *History) groups() map[string]bool {
	all := map[string]bool{}
	for _, o := range h.Ops {
		all[o.Group] = true
	}
	return all
}

// opsOf returns the operations of a group that may have changed or shown something.
func (h *History) opsOf(group string) (ops []*Op) {
	for _, o := range h.Ops {
		if o.Group == group && !o.Refused && (o.Kind != Fetch || o.End != Never) {
			ops = append(ops, o)
		}
	}
	return ops
}

// touches tells whether an operation changes a slot.
func (o *Op) touches(s Slot) bool {
	return o.Kind == Forget || o.Kind != Fetch && slices.ContainsFunc(o.Offsets, func(x Offset) bool { return x.Slot == s })
}

// checkLost looks at every fetched offset: it was committed, and not replaced by a
// commit that was acknowledged before the fetch began. This is by far not all that
// linearizable means, but it is what users lose sleep over, in few lines.
func checkLost(group string, ops []*Op) error {
	type writes struct{ commits, deletes []*Op }
	bySlot := map[Slot]*writes{}
	for _, o := range ops {
		for _, x := range o.Offsets {
			if bySlot[x.Slot] == nil {
				bySlot[x.Slot] = &writes{}
			}
		}
	}
	for s, w := range bySlot {
		for _, o := range ops {
			switch {
			case !o.touches(s):
			case o.Kind == Commit:
				w.commits = append(w.commits, o)
			default:
				w.deletes = append(w.deletes, o)
			}
		}
	}
	for _, f := range ops {
		if f.Kind != Fetch {
			continue
		}
		for _, x := range f.Offsets {
			if err := lostBefore(f, x, bySlot[x.Slot].commits, bySlot[x.Slot].deletes); err != nil {
				return fmt.Errorf("group %s, %s/%d: %w", group, x.Topic, x.Partition, err)
			}
		}
	}
	return nil
}

// lostBefore judges one offset x that f fetched.
func lostBefore(f *Op, x Offset, commits, deletes []*Op) error {
	var from *Op   // the last commit that may have put x there
	var newest *Op // the acknowledged commit that began last, before the fetch
	for _, c := range commits {
		if c.Begin > f.End {
			continue
		}
		if x.Offset == offsetOf(c, x.Slot) && (from == nil || c.End > from.End) {
			from = c
		}
		if c.done() && c.End < f.Begin && (newest == nil || c.Begin > newest.Begin) {
			newest = c
		}
	}
	switch {
	case x.Offset != None && from == nil:
		return fmt.Errorf("%s was told offset %d, which nobody has committed", f.Client, x.Offset)
	case newest == nil || from != nil && from.End >= newest.Begin:
		return nil
	case from == nil && slices.ContainsFunc(deletes, func(d *Op) bool { return d.End > newest.Begin && d.Begin < f.End }):
		return nil
	}
	return fmt.Errorf("the commit of %d by %s was acknowledged at %d and lost: %s, who asked at %d, was told %d",
		offsetOf(newest, x.Slot), newest.Client, newest.End, f.Client, f.Begin, x.Offset)
}

// offsetOf returns the offset that an operation has for a slot.
func offsetOf(o *Op, s Slot) int64 {
	for _, x := range o.Offsets {
		if x.Slot == s {
			return x.Offset
		}
	}
	return None
}

// slotsMax is how many partitions of a group a history may be about.
const slotsMax = 16

// offsets is the state of a group: what each of its slots has.
type offsets [slotsMax]int64

// empty is a group without offsets.
var empty = func() (s offsets) {
	for i := range s {
		s[i] = None
	}
	return s
}()

// linear is an operation for the search: what it does to the slots with these
// indexes.
type linear struct {
	op      *Op
	indexes []int
}

// model is a group as whoever wrote the specification would make it: all partitions
// of a commit change at one moment, and a fetch shows one moment. What may or may not
// have been done leads to two states.
var model = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{empty} },
	Step: func(state, input, _ any) []any {
		s, l := state.(offsets), input.(linear)
		was := s
		switch l.op.Kind {
		case Fetch:
			for i, at := range l.indexes {
				if s[at] != l.op.Offsets[i].Offset {
					return nil
				}
			}
		case Forget:
			s = empty
		case Commit, Delete:
			for i, at := range l.indexes {
				if s[at] = None; l.op.Kind == Commit {
					s[at] = l.op.Offsets[i].Offset
				}
			}
		}
		if l.op.Maybe && s != was {
			return []any{s, was}
		}
		return []any{s}
	},
}).ToModel()

// checkLinear looks for an order of the operations of a group, each at one moment
// between its request and its answer, in which every fetch shows what was there: first
// for each partition by itself, then for all of them together. undecided tells that
// the second search was given up.
func checkLinear(group string, ops []*Op) (undecided bool, err error) {
	indexes := map[Slot]int{}
	for _, o := range ops {
		for _, x := range o.Offsets {
			if _, ok := indexes[x.Slot]; !ok {
				indexes[x.Slot] = len(indexes)
			}
		}
	}
	if len(indexes) > slotsMax {
		return false, fmt.Errorf("group %s has offsets of %d partitions, the model has room for %d", group, len(indexes), slotsMax)
	}
	for s := range indexes {
		var of []*Op
		for _, o := range ops {
			if o.Kind == Forget || offsetsOf(o, s) != nil {
				c := *o
				c.Offsets = offsetsOf(o, s)
				of = append(of, &c)
			}
		}
		what := fmt.Sprintf("group %s, %s/%d", group, s.Topic, s.Partition)
		switch unknown, err := search(what, of, map[Slot]int{s: 0}, slotTimeout); {
		case err != nil:
			return false, err
		case unknown:
			return false, fmt.Errorf("%s: no answer in %v whether %d operations are linearizable", what, slotTimeout, len(of))
		}
	}
	return search("group "+group, ops, indexes, groupTimeout)
}

// offsetsOf returns what an operation has for a slot.
func offsetsOf(o *Op, s Slot) []Offset {
	for i, x := range o.Offsets {
		if x.Slot == s {
			return o.Offsets[i : i+1]
		}
	}
	return nil
}

// search looks for a linear order; unknown tells that the time was too short.
func search(what string, ops []*Op, indexes map[Slot]int, timeout time.Duration) (unknown bool, err error) {
	var history []porcupine.Operation
	for _, o := range mayMatter(ops) {
		l := linear{op: o}
		for _, x := range o.Offsets {
			l.indexes = append(l.indexes, indexes[x.Slot])
		}
		history = append(history, porcupine.Operation{Input: l, Call: o.Begin, Return: o.End})
	}
	switch porcupine.CheckOperationsTimeout(model, history, timeout) {
	case porcupine.Ok:
		return false, nil
	case porcupine.Unknown:
		return true, nil
	}
	_, info := porcupine.CheckOperationsVerbose(model, history, timeout)
	return false, fmt.Errorf("%s: %d commits and fetches are not linearizable:\n%s", what, len(history), where(history, info))
}

// where tells around which operations no order exists: those that are in no longest
// order that the search has found.
func where(history []porcupine.Operation, info porcupine.LinearizationInfo) (text string) {
	longest := map[int]bool{}
	for _, partition := range info.PartialLinearizations() {
		for _, order := range partition {
			if len(order) > len(longest) {
				clear(longest)
				for _, i := range order {
					longest[i] = true
				}
			}
		}
	}
	var left []*Op
	for i := range history {
		if !longest[i] {
			left = append(left, history[i].Input.(linear).op)
		}
	}
	slices.SortFunc(left, func(a, b *Op) int { return cmp.Compare(a.Begin, b.Begin) })
	for _, o := range left[:min(len(left), 8)] {
		text += fmt.Sprintf("  %+v\n", *o)
	}
	return text
}

// mayMatter leaves out commits without an answer that no fetch has shown: they can
// always come last, or never. The others were done, at the latest when the first fetch
// shows them, which makes the search short.
func mayMatter(ops []*Op) (kept []*Op) {
	shown := map[Offset]int64{}
	commits := map[int64]int{} // how many copies there are of each
	for _, o := range ops {
		switch o.Kind {
		case Fetch:
			for _, x := range o.Offsets {
				if end, ok := shown[x]; !ok || o.End < end {
					shown[x] = o.End
				}
			}
		case Commit:
			commits[o.Offsets[0].Offset]++
		}
	}
	for _, o := range ops {
		if o.Kind == Commit && !o.done() {
			end := Never
			for _, x := range o.Offsets {
				if e, ok := shown[x]; ok {
					end = min(end, e)
				}
			}
			if end == Never {
				continue
			}
			if commits[o.Offsets[0].Offset] == 1 {
				c := *o
				c.Maybe, c.End = false, min(c.End, end)
				o = &c
			}
		}
		kept = append(kept, o)
	}
	return kept
}
