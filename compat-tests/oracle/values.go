package oracle

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// member is what a client of the broker knows.
type member struct {
	name, client, group string
	instance            *string
	session, rebalance  time.Duration
	kind                string
	protocols           string

	// ids that it was given, in order.
	ids        []string
	generation int32
	// protocol and its type, as the last round said; nil before.
	protocol, protocolType *string
	// roster has the ids of the members, if it leads.
	roster []string
	leads  bool
}

func (m *member) id() string {
	if len(m.ids) == 0 {
		return ""
	}
	return m.ids[len(m.ids)-1]
}

// args are the words of a request. Whoever takes one says so; what is left is wrong.
type args map[string]string

func parseArgs(all []string) (args, error) {
	a := args{}
	for _, w := range all {
		key, value, _ := strings.Cut(w, "=")
		if _, twice := a[key]; twice {
			return nil, fmt.Errorf("%s stands twice", key)
		}
		a[key] = value
	}
	return a, nil
}

// take removes a word and returns its value, or a default.
func (a args) take(key, otherwise string) string {
	if value, ok := a[key]; ok {
		delete(a, key)
		return value
	}
	return otherwise
}

// has removes a word that has no value and tells whether it was there.
func (a args) has(key string) bool {
	_, ok := a[key]
	delete(a, key)
	return ok
}

// values turns the words of a scenario into bytes, and remembers the errors.
type values struct {
	run *run
	err error
}

func (v *values) fail(format string, args ...any) {
	v.err = errors.Join(v.err, fmt.Errorf(format, args...))
}

// text is a string; nil for null.
func (v *values) text(word string) *string {
	if word == "null" {
		return nil
	}
	s := string(v.bytes(word))
	return &s
}

// plain is a string that cannot be null.
func (v *values) plain(word string) string {
	if p := v.text(word); p != nil {
		return *p
	}
	v.fail("null is not possible here")
	return ""
}

// bytes are the bytes of a value, which are shown by the word from then on.
func (v *values) bytes(word string) []byte {
	call, rest, ok := strings.Cut(strings.TrimSuffix(word, ")"), "(")
	switch {
	case strings.HasPrefix(word, `"`):
		s, err := strconv.Unquote(word)
		if err != nil {
			v.fail("%s: %w", word, err)
		}
		return []byte(s)
	case !ok:
		return []byte(word)
	case call == "sub":
		b := v.subscription(list(rest))
		v.run.known[string(b)] = word
		return b
	case call == "bytes":
		n := v.int(rest, 32)
		b := []byte(strings.Repeat("x", int(n)))
		v.run.known[string(b)] = word
		return b
	case call == "hex":
		b, err := hex.DecodeString(rest)
		if err != nil {
			v.fail("%s: %w", word, err)
		}
		v.run.known[string(b)] = word
		return b
	}
	v.fail("%s: no such value", word)
	return nil
}

// subscription is version 0 of the consumer protocol's subscription.
func (v *values) subscription(topics []string) []byte {
	b := binary.BigEndian.AppendUint16(nil, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(topics)))
	for _, t := range topics {
		name := v.run.topicName(t)
		b = binary.BigEndian.AppendUint16(b, uint16(len(name)))
		b = append(b, name...)
	}
	return binary.BigEndian.AppendUint32(b, 0xffffffff)
}

func (v *values) int(word string, bits int) int64 {
	n, err := strconv.ParseInt(word, 0, bits)
	if err != nil {
		v.fail("%w", err)
	}
	return n
}

func (v *values) millis(word string) int32 {
	d, err := time.ParseDuration(word)
	if err != nil {
		v.fail("%w", err)
	}
	return int32(d.Milliseconds())
}

// group is the name of a group on the wire; "" stays empty.
func (v *values) group(word string) string {
	name := v.plain(word)
	if name != "" {
		name = v.run.tag + name
		if !slices.Contains(v.run.groups, name) {
			v.run.groups = append(v.run.groups, name)
		}
	}
	return name
}

// id is a member id: see the package's comment.
func (v *values) id(word string) string {
	if strings.HasPrefix(word, `"`) {
		return v.plain(word)
	}
	if word == "none" {
		return ""
	}
	name, nth, numbered := strings.Cut(word, ".")
	m, ok := v.run.members[name]
	if !ok {
		v.fail("%s is not a member", name)
		return ""
	}
	if !numbered {
		return m.id()
	}
	n := v.int(nth, 32)
	if n < 1 || int(n) > len(m.ids) {
		v.fail("%s has %d ids", name, len(m.ids))
		return ""
	}
	return m.ids[n-1]
}

// partition is one of a list of partitions: TOPIC/N or TOPIC/N:OFFSET:eEPOCH:METADATA.
type partition struct {
	topic     string
	partition int32
	offset    int64
	epoch     int32
	metadata  *string
}

// partitions parses a list of them; partitions of a topic that follow each other
// belong together.
func (v *values) partitions(word string) [][]partition {
	var all [][]partition
	for _, item := range list(word) {
		parts := split(item, ':')
		topic, n, ok := strings.Cut(parts[0], "/")
		empty := ""
		p := partition{topic: topic, epoch: -1, metadata: &empty}
		if ok {
			p.partition = int32(v.int(n, 32))
		}
		for i, f := range parts[1:] {
			epoch, isEpoch := strings.CutPrefix(f, "e")
			switch {
			case i == 0:
				p.offset = v.int(f, 64)
			case isEpoch:
				p.epoch = int32(v.int(epoch, 32))
			default:
				p.metadata = v.text(f)
			}
		}
		last := len(all) - 1
		switch {
		case !ok: // a topic without partitions
			all = append(all, []partition{{topic: topic, partition: noPartition}})
		case last >= 0 && all[last][0].topic == topic && all[last][0].partition != noPartition:
			all[last] = append(all[last], p)
		default:
			all = append(all, []partition{p})
		}
	}
	return all
}

// noPartition stands for a topic of which no partition is named.
const noPartition = -1 << 31
