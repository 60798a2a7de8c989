package api

import (
	"bytes"
	"context"
	"reflect"
	"testing"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fakeGroups is a coordinator that answers at once with what reply says.
type fakeGroups struct {
	reply       func(id string, ev group.Event) group.Reply
	list        []listedShard
	coordinates func(id string) group.Code
	asked       []asked
}

type asked struct {
	id string
	ev group.Event
}

func (f *fakeGroups) Submit(_ context.Context, id string, ev group.Event, sink shard.Sink) {
	f.asked = append(f.asked, asked{id, ev})
	var r group.Reply
	if f.reply != nil {
		r = f.reply(id, ev)
	}
	sink.Reply(r)
}

func (f *fakeGroups) Each(_ context.Context, mk func() group.Event, done func(uint32, group.Code, []group.Reply)) {
	for i := range f.list {
		f.EachIn(context.Background(), uint32(i), mk, done)
	}
}

func (f *fakeGroups) EachIn(_ context.Context, n uint32, mk func() group.Event, done func(uint32, group.Code, []group.Reply)) {
	f.asked = append(f.asked, asked{"", mk()})
	done(n, f.list[n].code, f.list[n].replies)
}

func (f *fakeGroups) Shards() uint32 { return uint32(len(f.list)) }

func (f *fakeGroups) Coordinates(id string) group.Code {
	if f.coordinates == nil {
		return group.None
	}
	return f.coordinates(id)
}

// replies makes every event be answered with the code and no body.
func replies(code group.Code) func(string, group.Event) group.Reply {
	return func(string, group.Event) group.Reply { return group.Reply{Code: code} }
}

// fakeTopics has topics t, u and w with 3, 3 and 1 partitions.
type fakeTopics struct{}

var topicIDs = map[string][16]byte{"t": {15: 1}, "u": {15: 2}, "w": {15: 3}}

func (fakeTopics) Lookup(name string) (id [16]byte, partitions int32, ok bool) {
	id, ok = topicIDs[name]
	if name == "w" {
		return id, 1, ok
	}
	return id, 3, ok
}

func (fakeTopics) ByID(id [16]byte) (string, bool) {
	for name, known := range topicIDs {
		if known == id {
			return name, true
		}
	}
	return "", false
}

// denied is what a [denier] says no to; "" stands for every name.
type denied struct {
	op   Operation
	kind Resource
	name string
}

type denier []denied

func (d denier) Authorize(_ *Session, op Operation, kind Resource, name string) bool {
	for _, no := range d {
		if no.op == op && no.kind == kind && (no.name == "" || no.name == name) {
			return false
		}
	}
	return true
}

// denyAll allows nothing.
type denyAll struct{}

func (denyAll) Authorize(*Session, Operation, Resource, string) bool { return false }

// server is a table of group handlers over fakes, and a session.
type server struct {
	*Handlers
	groups  *fakeGroups
	table   *Table
	session *Session
	client  string
}

func testCluster() *Cluster {
	return &Cluster{ID: "cluster", NodeID: 1, ControllerID: 1, Nodes: []Node{{ID: 1, Endpoints: []Endpoint{
		{Listener: "INSIDE", Host: "inside", Port: 1001}, {Listener: "OUTSIDE", Host: "outside", Port: 1002},
	}}}}
}

func newServer() *server {
	f := &fakeGroups{list: make([]listedShard, 3)}
	s := &server{groups: f, session: &Session{Host: "/10.0.0.1", Principal: "User:ANONYMOUS", Listener: "INSIDE"}, client: "client"}
	s.Handlers = &Handlers{
		Config: Config{SessionTimeoutMin: 6000, SessionTimeoutMax: 1800000},
		Groups: f, Topics: fakeTopics{}, Auth: AllowAll{}, Cluster: NewClusterView(testCluster()),
		Random: func(b []byte) {
			for i := range b {
				b[i] = byte(i)
			}
		},
	}
	s.table = NewTable(s.Cluster, s.Entries()...)
	return s
}

// ask sends a request through the bytes of its version: what the version does not
// have is lost, the frame is overwritten once the handler returns, and the
// response must be exactly what kmsg reads back.
func (s *server) ask(t testing.TB, version int16, req kmsg.Request) kmsg.Response {
	t.Helper()
	c := s.start(t, version, req)
	if !c.Ready() {
		t.Fatalf("%T v%d is not answered", req, version)
	}
	return finish(t, c)
}

func (s *server) start(t testing.TB, version int16, req kmsg.Request) *Call {
	t.Helper()
	req.SetVersion(version)
	frame := req.AppendTo(nil)
	decoded := kmsg.RequestForKey(req.Key())
	decoded.SetVersion(version)
	if err := decoded.ReadFrom(frame); err != nil {
		t.Fatalf("%T v%d: %v", req, version, err)
	}
	c := newCall(s.session, req.Key(), version, s.client, decoded, func() {})
	s.table.entry(req.Key()).Handle(c)
	for i := range frame {
		frame[i] = 0xee
	}
	return c
}

func finish(t testing.TB, c *Call) kmsg.Response {
	t.Helper()
	resp, closing := c.Response()
	if closing != "" || resp == nil {
		t.Fatalf("key %d v%d: response %v, closing %q", c.Key, c.Version, resp, closing)
	}
	if resp.GetVersion() != c.Version {
		t.Fatalf("key %d v%d: the response has version %d", c.Key, c.Version, resp.GetVersion())
	}
	wire := resp.AppendTo(nil)
	back := kmsg.ResponseForKey(c.Key)
	back.SetVersion(c.Version)
	if err := back.ReadFrom(wire); err != nil {
		t.Fatalf("key %d v%d: %v in %x", c.Key, c.Version, err, wire)
	}
	if again := back.AppendTo(nil); !bytes.Equal(again, wire) {
		t.Fatalf("key %d v%d: bytes are left over or changed:\n%x\n%x", c.Key, c.Version, wire, again)
	}
	return back
}

// fill sets every field of a request to something that is not its zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Version" && name != "UnknownTags" {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("bytes"))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Array:
		v.Set(reflect.ValueOf(topicIDs["t"]))
	case reflect.String:
		v.SetString("t")
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(1)
	}
}

func filled(key int16) kmsg.Request {
	req := kmsg.RequestForKey(key)
	fill(reflect.ValueOf(req))
	if join, ok := req.(*kmsg.JoinGroupRequest); ok {
		join.SessionTimeoutMillis = 10000
	}
	return req
}

func ptr[T any](v T) *T { return &v }

// newCall returns a call that is not answered yet. wake is called, from any
// goroutine and without blocking, when the answer of an awaited call is ready.
func newCall(s *Session, key, version int16, clientID string, msg kmsg.Request, wake func()) *Call {
	c := new(Call)
	c.Reset(s, key, version, clientID, msg, wake)
	return c
}

// defaultTopicConfig has Kafka's defaults.
func defaultTopicConfig() TopicConfig {
	return TopicConfig{AutoCreate: true, NumPartitions: 1, FetchMaxBytes: 55 << 20, FetchSessionsMax: 1000}
}
