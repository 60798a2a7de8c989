package group

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kerr"
)

// TestScripts runs testdata/*/*.txt: each is a sequence of requests and time, with
// what the machine answers. To accept what it answers now:
//
//	go test ./coordinator/group -run TestScripts -rewrite
//
// Every line before ---- is a command. Members have names; a name stands for the
// client, which remembers the member id and the generation that it was told.
//
//	new                              another group, another world
//	config [delay=MS] [max-size=N] [pending-max=N] [metadata-max=N] [retention=MS] [assignor=TYPE]
//	       [reserve=N]
//	timer session=NAME|pending=NAME|phase=join|phase=sync    it fires, whatever the time
//	join NAME [v=0..9] [instance=I] [session=MS] [rebalance=MS] [type=T]
//	     [protocols=(name:metadata,...)] [topics=(t,...)] [id=ID] [reason=WORDS]
//	     [flip=metadata]
//	     what is given is remembered for the next join; v3 has no handshake, v9
//	     can skip the assignment
//	restart NAME...                  the client forgets its member id
//	sync NAME [assign=(NAME:bytes,...)] [assign=none] [gen=G] [type=T] [protocol=P]
//	     a leader assigns "<member>@<generation>" to everybody it was told of
//	heartbeat NAME [gen=G]
//	leave NAME... [id=ID] [instance=I] [pair=(ID,I)] [reason=WORDS]
//	commit NAME|- t-0=OFFSET... [gen=G] [v=9] [retention=MS] [meta=M] [epoch=E] [ids=(t:1,...)]
//	     t-0=(OFFSET,META) has metadata of its own
//	txn-commit NAME|- ID/NUMBER t-0=OFFSET... [gen=G] [v=6] [meta=M] [epoch=E] [ids=(t:1,...)]
//	resolve ID/NUMBER commit|abort   the transaction ends
//	fetch [t-0...] [none] [stable] [ids=(t:1,...)]
//	     all if no partition is given; none is an empty list
//	delete-offsets t-0...
//	topic-deleted t [id=N]           the topic with that id is gone
//	check-topics [exist=(t:1,...)]   after a load: the topics that there are, with ids
//	check-transactions [open=(a/1,...)] [committed=(b/2,...)]    after a load; all others were aborted
//	checkpoint                       a crash after it loads its rows and the records since
//	reset t-0=OFFSET... [replace] [fence]    an operator's; the rest as for commit
//	describe, list, delete, expire
//	wait MS                          time passes, deadlines are handled as they come
//	tick [late=MS]                   one Tick now
//	disk low|ok
//	crash                            everything that is not in records is lost
//	lost                             the shard is given up
//	stable NAME...                   forms a group of these members, printing the end only
//	members                          every member with its deadlines
//
// id=, instance= and gen= (gen=+1 is relative to what the client knows) apply to
// all requests. NAME#old is the id that a name had before.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return
		}
		s := newScript(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			return s.directive(d)
		})
	})
}

// client is a client as far as a script goes: what it sends, and what it was told.
type client struct {
	name, id, old      string
	ids                int
	instance           *string
	version            int
	session, rebalance int32
	protocolType       string
	protocols          []Protocol
	generation         int32
	flipped            bool         // it offers other metadata for now
	told               []JoinMember // what it was told as a leader
}

// request is one that the machine has not answered.
type request struct {
	client *client
	kind   string
}

type script struct {
	t       *testing.T
	cfg     Config
	world   *world
	clients map[string]*client
	waiting map[ReqID]request
	lastReq ReqID
	diskLow bool
	out     strings.Builder
	silent  bool
}

func newScript(t *testing.T) *script {
	s := &script{t: t}
	s.reset()
	return s
}

func (s *script) reset() {
	s.cfg = Config{InitialRebalanceDelay: 3000, MaxMetadata: 4096, OffsetsRetention: 7 * 24 * 3600 * 1000}
	s.diskLow = false
	s.world = newWorld(s.cfg)
	s.clients = map[string]*client{}
	s.waiting = map[ReqID]request{}
}

func (s *script) directive(d *datadriven.TestData) string {
	s.out.Reset()
	lines := []string{""}
	if input := strings.TrimSpace(d.Input); input != "" {
		lines = append(lines, strings.Split(input, "\n")...)
	}
	for i, line := range lines {
		c := &command{s: s, name: d.Cmd, args: d.CmdArgs}
		if i > 0 {
			name, args, err := datadriven.ParseLine(line)
			if err != nil {
				d.Fatalf(s.t, "%v", err)
			}
			c.name, c.args = name, args
		}
		if len(lines) > 1 {
			s.printf("> %s\n", c)
		}
		c.run()
		if err := c.unused(); err != nil {
			d.Fatalf(s.t, "%v", err)
		}
	}
	return s.out.String()
}

func (s *script) printf(format string, args ...any) {
	if !s.silent {
		fmt.Fprintf(&s.out, format, args...)
	}
}

// command is one line of a script.
type command struct {
	s    *script
	name string
	args []datadriven.CmdArg
	used map[string]bool
}

func (c *command) String() string {
	words := []string{c.name}
	for _, a := range c.args {
		words = append(words, a.String())
	}
	return strings.Join(words, " ")
}

func (c *command) fail(format string, args ...any) {
	c.s.t.Helper()
	c.s.t.Fatalf("%s: %s", c, fmt.Sprintf(format, args...))
}

// value returns the value of an argument.
func (c *command) value(key string) (string, bool) {
	vals, ok := c.values(key)
	return strings.Join(vals, ","), ok
}

func (c *command) values(key string) ([]string, bool) {
	for _, a := range c.args {
		if a.Key == key {
			if c.used == nil {
				c.used = map[string]bool{}
			}
			c.used[key] = true
			return a.Vals, true
		}
	}
	return nil, false
}

func (c *command) number(key string, or int) int {
	v, ok := c.value(key)
	if !ok {
		return or
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		c.fail("%v", err)
	}
	return n
}

// words returns the arguments without a value.
func (c *command) words() []string {
	var words []string
	for _, a := range c.args {
		if len(a.Vals) == 0 {
			words = append(words, a.Key)
		}
	}
	return words
}

// unused complains about an argument that no one asked for.
func (c *command) unused() error {
	for _, a := range c.args {
		if len(a.Vals) > 0 && !c.used[a.Key] {
			return fmt.Errorf("%s: argument %s is not known", c, a.Key)
		}
	}
	return nil
}

// client returns the client that the command is about.
func (c *command) client() *client {
	words := c.words()
	if len(words) == 0 {
		c.fail("no name")
	}
	return c.s.client(words[0])
}

func (s *script) client(name string) *client {
	x := s.clients[name]
	if x == nil {
		x = &client{name: name, version: 9, session: 10000, rebalance: 60000, protocolType: "consumer",
			protocols: []Protocol{{"range", []byte(name)}}, generation: -1}
		s.clients[name] = x
	}
	return x
}

// who returns the ids and generation of a request.
func (c *command) who(x *client) (id string, instance *string, generation int32) {
	id, instance, generation = x.id, x.instance, x.generation
	if v, ok := c.value("id"); ok {
		id = c.s.resolve(v)
	}
	if v, ok := c.value("instance"); ok {
		if instance = &v; v == "none" {
			instance = nil
		}
	}
	if v, ok := c.value("gen"); ok {
		n := int32(c.number("gen", 0))
		if v[0] == '+' {
			n += generation
		}
		generation = n
	}
	return id, instance, generation
}

// resolve turns NAME#old and a NAME into ids; anything else is an id.
func (s *script) resolve(word string) string {
	if name, ok := strings.CutSuffix(word, "#old"); ok {
		return s.client(name).old
	}
	if x := s.clients[word]; x != nil {
		return x.id
	}
	return word
}

// text is a list of bytes.
func text(v string) []byte { return []byte(v) }

// subscriptionBytes is a consumer's metadata, version 0.
func subscriptionBytes(topics []string) []byte {
	b := binary.BigEndian.AppendUint16(nil, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(topics)))
	for _, t := range topics {
		b = binary.BigEndian.AppendUint16(b, uint16(len(t)))
		b = append(b, t...)
	}
	return binary.BigEndian.AppendUint32(b, 0xffffffff)
}

// codeName is Kafka's name of a code.
func codeName(code Code) string {
	if code == None {
		return "NONE"
	}
	if e, ok := kerr.ErrorForCode(int16(code)).(*kerr.Error); ok {
		return e.Message
	}
	return strconv.Itoa(int(code))
}
