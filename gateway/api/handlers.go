package api

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rollcall-mq/rollcall/coordinator"
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Config is the part of the configuration that handlers decide by, with Kafka's
// keys in the comments.
type Config struct {
	// SessionTimeoutMin is group.min.session.timeout.ms.
	SessionTimeoutMin int32
	// SessionTimeoutMax is group.max.session.timeout.ms.
	SessionTimeoutMax int32
}

// Validate returns what is wrong with the configuration.
func (c Config) Validate() error {
	if c.SessionTimeoutMin < 1 {
		return fmt.Errorf("group.min.session.timeout.ms is %d, must be at least 1", c.SessionTimeoutMin)
	}
	if c.SessionTimeoutMax < c.SessionTimeoutMin {
		return fmt.Errorf("group.max.session.timeout.ms is %d, must be at least group.min.session.timeout.ms, which is %d",
			c.SessionTimeoutMax, c.SessionTimeoutMin)
	}
	return nil
}

// Handlers serves the API keys of consumer groups and committed offsets. All
// fields but Random must be set before Entries is called; none may change after.
type Handlers struct {
	Config  Config
	Groups  coordinator.Groups
	Topics  TopicIndex
	Auth    Authorizer
	Cluster *ClusterView
	// Random fills b with the entropy of new member ids; nil is crypto/rand.
	Random func(b []byte)
}

// Entries returns the table's entries of the group APIs.
func (h *Handlers) Entries() []Entry {
	return []Entry{
		{Key: 8, Min: 2, Max: 10, Handle: h.offsetCommit},
		{Key: 9, Min: 1, Max: 10, Handle: h.offsetFetch},
		{Key: 10, Min: 0, Max: 6, Handle: h.findCoordinator},
		{Key: 11, Min: 0, Max: 9, Holds: true, Handle: h.joinGroup},
		{Key: 12, Min: 0, Max: 4, Handle: h.heartbeat},
		{Key: 13, Min: 0, Max: 5, Handle: h.leaveGroup},
		{Key: 14, Min: 0, Max: 5, Holds: true, Handle: h.syncGroup},
		{Key: 15, Min: 0, Max: 6, Handle: h.describeGroups},
		{Key: 16, Min: 0, Max: 5, Handle: h.listGroups},
		{Key: 42, Min: 0, Max: 3, Handle: h.deleteGroups},
		{Key: 47, Min: 0, Max: 0, Handle: h.offsetDelete},
	}
}

func (h *Handlers) allowed(c *Call, op Operation, kind Resource, name string) bool {
	return h.Auth.Authorize(c.Session, op, kind, name)
}

// refusedGroup makes the two checks that every request about the members of one
// group begins with, in Kafka's order. A group id is any bytes, as in Kafka, but
// these APIs do not take the empty one, which the offsets APIs do.
func (h *Handlers) refusedGroup(c *Call, op Operation, id string) int16 {
	switch {
	case !h.allowed(c, op, ResourceGroup, id):
		return kerr.GroupAuthorizationFailed.Code
	case id == "":
		return kerr.InvalidGroupID.Code
	default:
		return 0
	}
}

func clientOf(c *Call) group.Client {
	return group.Client{ID: c.ClientID, Host: c.Session.Host, Principal: c.Session.Principal}
}

const (
	uuidLen = 36
	// stringMax is the longest string of a version that is not flexible.
	stringMax = 1<<15 - 1
)

// newMemberID returns `<prefix>-<random UUID>`. What would not fit into a string
// of the protocol is cut from the prefix.
func (h *Handlers) newMemberID(prefix string) string {
	var u [16]byte
	if h.Random != nil {
		h.Random(u[:])
	} else {
		_, _ = rand.Read(u[:]) // never fails
	}
	u[6] = u[6]&0x0f | 0x40 // version 4
	u[8] = u[8]&0x3f | 0x80 // variant of RFC 9562
	prefix = prefix[:min(len(prefix), stringMax-uuidLen-1)]
	b := make([]byte, 0, len(prefix)+1+uuidLen)
	b = append(b, prefix...)
	for _, part := range [][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		b = append(b, '-')
		b = hex.AppendEncode(b, part)
	}
	return string(b)
}

// reasonMax is how many characters of a client's reason are kept; clients cut it
// at the same length (KAFKA-13998).
const reasonMax = 255

// reasonOf returns the client's words so that they can stand in a line of a log.
func reasonOf(reason *string) string {
	if reason == nil || *reason == "" {
		return ""
	}
	var b strings.Builder
	for i, r := range *reason {
		if i >= reasonMax { // bytes, so at most as many characters
			break
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			r = ' '
		}
		b.WriteRune(r)
	}
	return b.String()
}

// cloner copies byte fields out of a request's frame into one allocation.
type cloner struct{ slab []byte }

func newCloner(size int) cloner { return cloner{slab: make([]byte, 0, size)} }

func (c *cloner) clone(b []byte) []byte {
	start := len(c.slab)
	c.slab = append(c.slab, b...)
	return c.slab[start:len(c.slab):len(c.slab)]
}
