package group

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"unicode/utf16"
)

// tally counts, for each protocol name, the members that offer it. It is what
// keeps a join of a large group from looking at every member.
type tally struct {
	list []tallied
	// index finds a name once list is longer than tallySearch.
	index map[string]int
}

type tallied struct {
	name    string
	members int
	votes   int
}

// tallySearch is up to how many names are searched instead of looked up.
const tallySearch = 16

func (t *tally) find(name string) int {
	if t.index != nil {
		if i, ok := t.index[name]; ok {
			return i
		}
		return -1
	}
	for i := range t.list {
		if t.list[i].name == name {
			return i
		}
	}
	return -1
}

// members returns how many members offer a protocol.
func (t *tally) members(name string) int {
	if i := t.find(name); i >= 0 {
		return t.list[i].members
	}
	return 0
}

// add counts a member's protocols; a name that it lists twice counts once.
// (Kafka counts it twice, and then no protocol has as many supporters as there
// are members.)
func (t *tally) add(protocols []Protocol) {
	eachName(protocols, func(name string) {
		i := t.find(name)
		if i < 0 {
			i = len(t.list)
			t.list = append(t.list, tallied{name: name})
			t.indexFrom(i)
		}
		t.list[i].members++
	})
}

func (t *tally) indexFrom(i int) {
	switch {
	case t.index != nil:
		t.index[t.list[i].name] = i
	case len(t.list) > tallySearch:
		t.index = make(map[string]int, 2*tallySearch)
		for j := range t.list {
			t.index[t.list[j].name] = j
		}
	}
}

// remove takes a member's protocols out of the count.
func (t *tally) remove(protocols []Protocol) {
	eachName(protocols, func(name string) {
		i := t.find(name)
		if t.list[i].members--; t.list[i].members > 0 {
			return
		}
		last := len(t.list) - 1
		t.list[i] = t.list[last]
		t.list[last] = tallied{}
		t.list = t.list[:last]
		if t.index != nil {
			delete(t.index, name)
			if i < last {
				t.index[t.list[i].name] = i
			}
		}
	})
}

// eachName calls f once for each name of a list.
func eachName(protocols []Protocol, f func(name string)) {
	if len(protocols) > tallySearch {
		seen := make(map[string]struct{}, len(protocols))
		for i := range protocols {
			if _, twice := seen[protocols[i].Name]; !twice {
				seen[protocols[i].Name] = struct{}{}
				f(protocols[i].Name)
			}
		}
		return
	}
	for i := range protocols {
		name := protocols[i].Name
		twice := slices.ContainsFunc(protocols[:i], func(p Protocol) bool { return p.Name == name })
		if !twice {
			f(name)
		}
	}
}

// fits is the protocol rule of JoinGroup: an Empty group takes any type, another
// one only its own and a protocol that every member offers, the sender's own
// present list included (Kafka's ClassicGroup.supportsProtocols).
func (m *Machine) fits(ev *Join) bool {
	if m.live == nil || m.live.state == Empty {
		return ev.ProtocolType != "" && len(ev.Protocols) > 0
	}
	l := m.live
	if *l.protocolType != ev.ProtocolType {
		return false
	}
	return slices.ContainsFunc(ev.Protocols, func(p Protocol) bool {
		return l.protocols.members(p.Name) == len(l.members)
	})
}

// vote returns the name that wins the protocol vote: each member votes for the
// first in its list that all members offer, and most votes win. Of equals the one
// wins that is in the first bucket of a Java HashMap with all that got votes, as in
// ClassicGroup.selectProtocol; the order of equals in one bucket is open there.
func (l *membership) vote() *string {
	for i := range l.protocols.list {
		l.protocols.list[i].votes = 0
	}
	for _, x := range l.members {
		for i := range x.protocols {
			t := &l.protocols.list[l.protocols.find(x.protocols[i].Name)]
			if t.members == len(l.members) {
				t.votes++
				break
			}
		}
	}
	got := 0
	for i := range l.protocols.list {
		if l.protocols.list[i].votes > 0 {
			got++
		}
	}
	best, won, bucket := -1, 0, uint32(0)
	for i := range l.members[0].protocols {
		j := l.protocols.find(l.members[0].protocols[i].Name)
		t := &l.protocols.list[j]
		if t.votes == 0 || t.votes < won {
			continue
		}
		if b := hashMapBucket(t.name, got); t.votes > won || b < bucket {
			best, won, bucket = j, t.votes, b
		}
	}
	invariant(won > 0, "no protocol that all members offer")
	if l.protocol != nil && *l.protocol == l.protocols.list[best].name {
		return l.protocol
	}
	name := l.protocols.list[best].name
	return &name
}

// metadata returns what a member said about the selected protocol.
func (l *membership) metadata(x *member) []byte {
	for i := range x.protocols {
		if x.protocols[i].Name == *l.protocol {
			return x.protocols[i].Metadata
		}
	}
	return nil
}

// sameProtocols tells whether two lists are identical, metadata and order
// included.
func sameProtocols(a, b []Protocol) bool {
	return slices.EqualFunc(a, b, func(a, b Protocol) bool {
		return a.Name == b.Name && bytes.Equal(a.Metadata, b.Metadata)
	})
}

// subscribe notes which topics the members subscribe to. Kafka knows them for
// the protocol type "consumer" only, and not if one member's subscription cannot
// be read (ClassicGroup.computeSubscribedTopics).
func (l *membership) subscribe() {
	l.topics, l.topicsKnown = nil, false
	if l.protocolType == nil || *l.protocolType != "consumer" {
		return
	}
	topics := make(map[string]struct{})
	for _, x := range l.members {
		if !subscription(topics, l.metadata(x)) {
			return
		}
	}
	l.topics, l.topicsKnown = slices.Sorted(maps.Keys(topics)), true
}

// subscription adds the topics of a consumer's metadata: a version, then an array
// of strings, which is all of version 0 that matters and the beginning of every
// later one. It returns false if the bytes do not say so.
func subscription(topics map[string]struct{}, metadata []byte) bool {
	if len(metadata) < 6 {
		return false
	}
	count := int32(binary.BigEndian.Uint32(metadata[2:]))
	rest := metadata[6:]
	for ; count > 0; count-- {
		if len(rest) < 2 {
			return false
		}
		size := int(int16(binary.BigEndian.Uint16(rest)))
		if size < 0 || len(rest) < 2+size {
			return false
		}
		if name := rest[2 : 2+size]; !has(topics, name) {
			topics[string(name)] = struct{}{}
		}
		rest = rest[2+size:]
	}
	if count < 0 || len(rest) < 4 {
		return false // a null array, or no user data
	}
	return int64(int32(binary.BigEndian.Uint32(rest))) <= int64(len(rest)-4)
}

// has looks up bytes without copying them.
func has(topics map[string]struct{}, name []byte) bool {
	_, ok := topics[string(name)]
	return ok
}

// hashMapBucket is the bucket of a string in a java.util.HashMap that was filled with
// n strings one by one.
func hashMapBucket(s string, n int) uint32 {
	buckets := 16
	for n > buckets*3/4 {
		buckets *= 2
	}
	var hash uint32
	var room [2]uint16
	for _, r := range s {
		for _, unit := range utf16.AppendRune(room[:0], r) {
			hash = 31*hash + uint32(unit)
		}
	}
	return (hash ^ hash>>16) & uint32(buckets-1)
}
