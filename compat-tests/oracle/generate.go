package oracle

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// The random scenarios of the search. Time goes in slots: what members send begins
// with a slot and is over soon. Every timeout is some slots and a part of one, which
// is another one for each member and kind. So timers run out one after the other and
// when nothing is under way, also those that start when another runs out.
const (
	slot          = 3000 // milliseconds
	sendPart      = 800
	sessionPart   = 900
	rebalancePart = 1200
	memberPart    = 25
)

// Generate makes a random scenario of so many slots: two dynamic members, and two
// processes that take themselves for the same static one.
func Generate(seed uint64, slots int) *Scenario {
	g := &generator{rng: rand.New(rand.NewPCG(seed, 1))}
	g.line("# A random list of events; seed %d.", seed)
	g.line("topic t 1 shared")
	for i, m := range []string{"A", "B", "C instance=c", "D instance=c"} {
		g.line("member %s session=%dms rebalance=%dms protocols=%s", m,
			g.slots()+sessionPart+i*memberPart, g.slots()+rebalancePart+i*memberPart, g.protocols())
	}
	g.line("mark")
	for n := range slots {
		if n > 0 {
			g.line("at %dms", n*slot)
		}
		for range 1 + g.rng.IntN(2) {
			g.event()
		}
		g.line("at %dms", n*slot+sendPart) // so that a machine that is too slow is noticed
	}
	g.line("at %dms", slots*slot)
	g.line("> X DescribeGroups v6")
	g.line("> X OffsetFetch v8")
	s, err := Parse(fmt.Sprintf("search_%d", seed), g.text.String())
	if err != nil {
		panic(err) // the lines above are no answers
	}
	return s
}

type generator struct {
	rng  *rand.Rand
	text strings.Builder
}

func (g *generator) line(format string, args ...any) {
	fmt.Fprintf(&g.text, format+"\n", args...)
}

func (g *generator) slots() int { return slot * (1 + g.rng.IntN(3)) }

func (g *generator) protocols() string {
	return []string{"range:sub(t)", "range:a", "range:a,sticky:b", "sticky:b,range:a"}[g.rng.IntN(4)]
}

// once is true once in n times.
func (g *generator) once(n int) bool { return g.rng.IntN(n) == 0 }

// event is one request, or nothing.
func (g *generator) event() {
	m := string("AABBCCD"[g.rng.IntN(7)])
	static := m == "C" || m == "D"
	words := ""
	switch k := g.rng.IntN(100); {
	case k < 36:
		version := []int{3, 5, 9}[g.rng.IntN(3)]
		if static {
			version = 8 + g.rng.IntN(2)
		}
		if g.once(6) {
			words += " id=none"
		}
		if g.once(5) {
			words += " protocols=" + g.protocols()
		}
		g.line(">> %s JoinGroup v%d%s", m, version, words)
	case k < 62:
		g.line(">> %s SyncGroup v5%s", m, g.generation())
	case k < 74:
		g.line(">> %s Heartbeat v4%s", m, g.generation())
	case k < 79:
		g.line(">> %s LeaveGroup v5", m)
	case k < 81:
		g.line("> X LeaveGroup v5 members=none@c")
	case k < 89:
		if g.once(5) {
			words = " id=none gen=-1 instance=null"
		}
		g.line(">> %s OffsetCommit v9%s%s offsets=t/0:%d", m, words, g.generationUnless(words != ""), g.rng.IntN(100))
	case k < 91:
		g.line("> X OffsetFetch v8")
	case k < 94:
		g.line("> X DescribeGroups v6")
	case k < 95:
		g.line("> X DeleteGroups v3")
	case k < 96:
		g.line("> X OffsetDelete v0 offsets=t/0")
	case k < 97:
		g.line("close %s", m)
	default: // silence
	}
}

// generation is sometimes one that the member has not learned.
func (g *generator) generation() string { return g.generationUnless(false) }

func (g *generator) generationUnless(set bool) string {
	if set || !g.once(8) {
		return ""
	}
	return fmt.Sprintf(" gen=%d", g.rng.IntN(6)-1)
}
