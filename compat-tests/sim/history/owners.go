package history

import (
	"fmt"
	"slices"
)

// reset tells whether the group may have been deleted at some time from a to b.
func (h *History) reset(group string, a, b int64) bool {
	return slices.ContainsFunc(h.Resets, func(r *Reset) bool { return r.Group == group && r.From <= b && r.To >= a })
}

// generation is one generation of one group.
type generation struct {
	group string
	n     int32
}

// checkLeads: who leads a generation, and who repeats the question, is told of the same
// members; nobody is in two rounds of the same number, not even if a crash has taken
// one of them back.
func (h *History) checkLeads() error {
	leads := map[generation][]*Lead{}
	for i := range h.Leads {
		l := &h.Leads[i]
		g := generation{l.Group, l.Generation}
		for _, other := range leads[g] {
			both := slices.ContainsFunc(l.Members, func(id string) bool { return slices.Contains(other.Members, id) })
			if both && !slices.Equal(l.Members, other.Members) && !h.reset(l.Group, min(l.Joined, other.Joined), max(l.At, other.At)) {
				return fmt.Errorf("group %s: generation %d was begun by %s with %q and by %s with %q",
					l.Group, l.Generation, other.Member, other.Members, l.Member, l.Members)
			}
		}
		leads[g] = append(leads[g], l)
	}
	return nil
}

// checkOwners: in one generation a partition has one owner, and everybody's
// assignment comes from one leader's one list.
func (h *History) checkOwners() error {
	claims := map[generation][]*Claim{}
	for i := range h.Claims {
		c := &h.Claims[i]
		g := generation{c.Group, c.Generation}
		for _, other := range claims[g] {
			if h.reset(c.Group, min(c.Joined, other.Joined), max(c.At, other.At)) {
				continue
			}
			if c.Round != other.Round {
				return fmt.Errorf("group %s, generation %d: %s has an assignment of the round %s, %s one of %s",
					c.Group, c.Generation, other.Owner, other.Round, c.Owner, c.Round)
			}
			for _, s := range c.Slots {
				if c.Owner != other.Owner && slices.Contains(other.Slots, s) {
					return fmt.Errorf("group %s, generation %d: %s/%d is owned by %s and by %s", c.Group, c.Generation, s.Topic, s.Partition, other.Owner, c.Owner)
				}
			}
		}
		claims[g] = append(claims[g], c)
	}
	return nil
}

// checkFencing: once anybody was told what it owns in a generation, nothing that
// members of an older one begin is acknowledged, and nobody is told of an older one
// than before. That a generation exists is not enough: until its assignments are
// durable, a crash takes it back.
func (h *History) checkFencing() error {
	claims := map[string][]*Claim{}
	last := map[[2]string]*Claim{} // by group and member
	for i := range h.Claims {
		c := &h.Claims[i]
		claims[c.Group] = append(claims[c.Group], c)
		member := [2]string{c.Group, c.Member}
		if was := last[member]; was != nil && was.Generation > c.Generation && !h.reset(c.Group, was.Joined, c.At) {
			return fmt.Errorf("group %s: member %s had generation %d, and then %d", c.Group, c.Member, was.Generation, c.Generation)
		}
		last[member] = c
	}
	for _, o := range h.Ops {
		if o.Kind != Commit || o.Generation < 0 || !o.done() {
			continue
		}
		for _, c := range claims[o.Group] {
			if c.Generation > o.Generation && c.At < o.Begin && !h.reset(o.Group, c.Joined, o.End) {
				return fmt.Errorf("group %s: %s commits %d in generation %d, begun at %d, when %s owned partitions in generation %d since %d",
					o.Group, o.Client, o.Offsets[0].Offset, o.Generation, o.Begin, c.Member, c.Generation, c.At)
			}
		}
	}
	return nil
}
