package history

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var a0, a1 = Slot{"a", 0}, Slot{"a", 1}

// write is a commit of one offset to some slots.
func write(h *History, offset int64, slots ...Slot) *Op {
	o := Op{Client: "writer", Group: "g", Kind: Commit, Generation: -1}
	for _, s := range slots {
		o.Offsets = append(o.Offsets, Offset{Slot: s})
	}
	op := h.Begin(o)
	for i := range op.Offsets {
		op.Offsets[i].Offset = offset
	}
	return op
}

// read is a fetch that was told these offsets.
func read(h *History, offsets ...Offset) {
	op := h.Begin(Op{Client: "reader", Group: "g", Kind: Fetch})
	h.Done(op, offsets)
}

func done(h *History, op *Op) { h.Done(op, op.Offsets) }

// TestCheck has a small history for each thing that may be wrong, and for those that
// look like it and are not.
func TestCheck(t *testing.T) {
	claim := func(h *History, owner string, generation int32, round string, slots ...Slot) {
		h.Claim(Claim{Group: "g", Member: owner, Owner: owner, Generation: generation, Round: round, Slots: slots, Joined: h.Now()})
	}
	for _, test := range []struct {
		name string
		make func(h *History)
		want string // part of the error, none if ""
	}{
		{"nothing", func(*History) {}, ""},
		{"a commit is read", func(h *History) {
			done(h, write(h, 1, a0))
			read(h, Offset{a0, 1})
		}, ""},
		{"an acknowledged commit is lost", func(h *History) {
			done(h, write(h, 1, a0))
			read(h, Offset{a0, None})
		}, "lost"},
		{"an older commit comes back", func(h *History) {
			done(h, write(h, 1, a0))
			done(h, write(h, 2, a0))
			read(h, Offset{a0, 1})
		}, "lost"},
		{"two commits at a time end in any order", func(h *History) {
			one, two := write(h, 1, a0), write(h, 2, a0)
			done(h, two)
			done(h, one)
			read(h, Offset{a0, 2})
		}, ""},
		{"but in one", func(h *History) {
			one, two := write(h, 1, a0), write(h, 2, a0)
			done(h, two)
			done(h, one)
			read(h, Offset{a0, 2})
			read(h, Offset{a0, 1})
		}, "not linearizable"},
		{"a commit that was shown is taken back", func(h *History) {
			write(h, 1, a0)
			read(h, Offset{a0, 1})
			read(h, Offset{a0, None})
		}, "not linearizable"},
		{"a commit without an answer is seen late", func(h *History) {
			write(h, 1, a0)
			read(h, Offset{a0, None})
			read(h, Offset{a0, 1})
		}, ""},
		{"half of a commit is seen", func(h *History) {
			done(h, write(h, 1, a0, a1))
			op := write(h, 2, a0, a1)
			read(h, Offset{a0, 2}, Offset{a1, 1})
			done(h, op)
		}, "not linearizable"},
		{"a refused commit is seen", func(h *History) {
			h.Refuse(write(h, 1, a0))
			read(h, Offset{a0, 1})
		}, "nobody has committed"},
		{"an offset from nowhere", func(h *History) {
			done(h, write(h, 1, a0))
			read(h, Offset{a0, 7})
		}, "nobody has committed"},
		{"a deleted offset", func(h *History) {
			done(h, write(h, 1, a0))
			done(h, h.Begin(Op{Client: "admin", Group: "g", Kind: Delete, Offsets: []Offset{{a0, None}}}))
			read(h, Offset{a0, None})
		}, ""},
		{"a deleted offset comes back", func(h *History) {
			done(h, write(h, 1, a0))
			done(h, h.Begin(Op{Client: "admin", Group: "g", Kind: Forget}))
			read(h, Offset{a0, 1})
		}, "not linearizable"},
		{"a copy comes late", func(h *History) {
			op := write(h, 1, a0)
			again := h.Again(op)
			done(h, op)
			done(h, write(h, 2, a0))
			read(h, Offset{a0, 2})
			read(h, Offset{a0, 1})
			done(h, again)
		}, ""},
		{"two owners", func(h *History) {
			claim(h, "m", 3, "r", a0)
			claim(h, "n", 3, "r", a0)
		}, "is owned by m and by n"},
		{"two owners, one after the other", func(h *History) {
			claim(h, "m", 3, "r", a0)
			claim(h, "n", 4, "s", a0)
		}, ""},
		{"two rounds in a generation", func(h *History) {
			claim(h, "m", 3, "r", a0)
			claim(h, "n", 3, "s", a1)
		}, "of the round r"},
		{"two rounds in a generation, before and after a deletion", func(h *History) {
			claim(h, "m", 3, "r", a0)
			h.Settled(h.Reset("g"))
			claim(h, "n", 3, "s", a0)
		}, ""},
		{"a generation goes back", func(h *History) {
			claim(h, "m", 3, "r", a0)
			claim(h, "m", 2, "q", a0)
		}, "had generation 3, and then 2"},
		{"a member of an older generation commits", func(h *History) {
			claim(h, "m", 3, "r", a0)
			claim(h, "n", 4, "s", a0)
			op := write(h, 1, a0)
			op.Generation = 3
			done(h, op)
		}, "in generation 3"},
		{"a member of an older generation was already committing", func(h *History) {
			op := write(h, 1, a0)
			op.Generation = 3
			claim(h, "n", 4, "s", a0)
			done(h, op)
		}, ""},
		{"a generation begins twice", func(h *History) {
			h.Lead(Lead{Group: "g", Member: "m", Generation: 3, Members: []string{"m", "n"}})
			h.Lead(Lead{Group: "g", Member: "n", Generation: 3, Members: []string{"n"}})
		}, "generation 3 was begun by m"},
		{"somebody saw a problem", func(h *History) { h.Problem("request %d", 7) }, "request 7"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var h History
			test.make(&h)
			err := h.Check()
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestSave: a history can be read after the failure.
func TestSave(t *testing.T) {
	var h History
	done(&h, write(&h, 7, a0))
	h.Problem("something")
	file := filepath.Join(t.TempDir(), "history")
	if err := h.Save(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), `"Kind":"commit"`) || !strings.Contains(string(text), "something") {
		t.Errorf("%s, %v", text, err)
	}
}
