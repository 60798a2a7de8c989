// Package assignor computes assignments on the server for protocol types whose
// leader may leave that to the coordinator. It speaks of members and bytes only;
// whoever wires it to the coordinator adapts the types.
//
// There is one assignor, for the protocol type sr of schema registries. The
// registries elect their primary through a consumer group: each member's metadata
// is a JSON object that says where it listens and whether it may be primary, and
// its assignment is a JSON object that names the primary.
package assignor

import (
	"encoding/json"
	"strconv"
)

// Member is one member of a round with the metadata of the selected protocol.
type Member struct {
	ID       string
	Metadata []byte
}

// Error codes in a schema registry's assignment.
const (
	errNone = 0
	// errDuplicateURLs tells every registry that two of them claim one address.
	errDuplicateURLs = 1
)

// assignment is what a registry expects to get from SyncGroup. Confluent's leaves
// out what is empty and ignores what it does not know; Karapace needs master and
// master_identity and ignores the rest.
type assignment struct {
	Version        int             `json:"version"`
	Error          int             `json:"error"`
	Master         string          `json:"master,omitempty"`
	MasterIdentity json.RawMessage `json:"master_identity,omitempty"`
}

// SchemaRegistry elects the primary of a group of schema registries by their own
// rule and returns each member's assignment, in the order of members.
//
// Candidates are the members whose metadata allows them to be primary. If exactly
// one of them says that it is primary already, it stays (sticky election);
// otherwise it is the one with the smallest URL, as a string. The primary's
// identity is its metadata unchanged: a Confluent registry recognises itself by
// comparing it. If two members of any kind have one URL the assignment says so
// with error 1. A member whose metadata cannot be read is no candidate.
//
// Without a candidate the two kinds of registry want different things: Confluent's
// takes the lack of a primary for an answer and refuses an ineligible one, while
// Karapace fails for good on a missing primary and takes an ineligible one to mean
// that there is none. Each member gets what its kind can read.
func SchemaRegistry(members []Member) [][]byte {
	var (
		identities = make([]identity, len(members))
		urls       = make(map[string]bool, len(members))
		smallest   = -1 // eligible
		sticky     = -1 // eligible and primary already
		fallback   = -1 // readable but not eligible
		primaries  = 0
		code       = errNone
	)
	for i, m := range members {
		id, ok := readIdentity(m.Metadata)
		identities[i] = id
		if !ok {
			continue
		}
		if urls[id.url] {
			code = errDuplicateURLs
		}
		urls[id.url] = true
		if !id.eligible {
			fallback = smaller(identities, fallback, i)
			continue
		}
		smallest = smaller(identities, smallest, i)
		if id.primary {
			sticky = i
			primaries++
		}
	}
	master := smallest
	if primaries == 1 {
		master = sticky
	}

	common := encode(members, code, master)
	karapace := common
	if master < 0 {
		karapace = encode(members, code, fallback)
	}
	out := make([][]byte, len(members))
	for i := range members {
		out[i] = common
		if identities[i].karapace {
			out[i] = karapace
		}
	}
	return out
}

// identity is what the election needs to know of a member.
type identity struct {
	url      string
	eligible bool
	primary  bool
	karapace bool
}

// smaller returns which of two members has the smaller URL; a may be -1.
func smaller(ids []identity, a, b int) int {
	if a < 0 || ids[b].url < ids[a].url {
		return b
	}
	return a
}

// readIdentity reads a member's metadata. Keys are matched exactly, which the
// struct decoding of encoding/json does not do.
func readIdentity(metadata []byte) (id identity, ok bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(metadata, &fields) != nil {
		return identity{}, false
	}
	_, id.karapace = fields["karapace_version"]
	var (
		scheme, host *string
		port         *int32
		eligible     *bool
	)
	if !read(fields, "scheme", &scheme) || !read(fields, "host", &host) ||
		!read(fields, "port", &port) || !read(fields, "master_eligibility", &eligible) {
		return id, false
	}
	id.url = *scheme + "://" + *host + ":" + strconv.Itoa(int(*port))
	id.eligible = *eligible
	var primary *bool
	id.primary = read(fields, "leader", &primary) && *primary
	return id, true
}

// read decodes a field and tells whether it is there, of the right type and not
// null.
func read[T any](fields map[string]json.RawMessage, name string, to **T) bool {
	return json.Unmarshal(fields[name], to) == nil && *to != nil
}

// encode makes the assignment that names members[master], nobody if that is -1.
func encode(members []Member, code, master int) []byte {
	a := assignment{Version: 1, Error: code}
	if master >= 0 {
		a.Master = members[master].ID
		a.MasterIdentity = members[master].Metadata
	}
	// Strings, numbers and JSON that has been read before always encode.
	b, _ := json.Marshal(a)
	return b
}
