package api

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/coordinator"
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
	"github.com/rollcall-mq/rollcall/coordinator/txn"
	"github.com/rollcall-mq/rollcall/store"
	"github.com/rollcall-mq/rollcall/store/topics"
)

// The scripts of topic_scripts_test.go are conversations: requests, each pinned to
// a version. What Apache Kafka 4.4 answered is in testdata/topics; the handlers have
// to answer the same. What Rollcall knowingly answers otherwise is not in a script
// but in a test of its own. To record again, run
//
//	go test ./gateway/api -run TestKafkaAnswers -record 127.0.0.1:PORT
//
// against a new broker, node 1, with auto.create.topics.enable=true.
var record = flag.String("record", "", "address of an Apache Kafka to record the scripts from")

// peer answers requests: Kafka, or the handlers.
type peer interface {
	// ask returns the response; none if the request wants none or the connection
	// was closed instead.
	ask(req kmsg.Request) (resp kmsg.Response, closed bool)
}

// conversation is a running script.
type conversation struct {
	t    *testing.T
	peer peer
	out  strings.Builder
	// names replaces values that differ between runs.
	names map[string]string
	// quiet: what is asked is not written down; timed: whether it was held is.
	quiet, timed bool
	// words: the messages of errors are written down, too.
	words bool
}

// ask sends a request at a version and writes down the answer.
func (c *conversation) ask(version int16, req kmsg.Request) kmsg.Response {
	c.t.Helper()
	req.SetVersion(version)
	start := time.Now()
	resp, closed := c.peer.ask(req)
	took := time.Since(start)
	if c.quiet {
		return resp
	}
	fmt.Fprintf(&c.out, "> %s v%d\n", kmsg.NameForKey(req.Key()), version)
	if c.timed {
		fmt.Fprintf(&c.out, "  held %t\n", took > 250*time.Millisecond)
	}
	switch {
	case closed:
		c.out.WriteString("  connection closed\n")
	case resp == nil:
		c.out.WriteString("  no answer\n")
	default:
		c.dump(reflect.ValueOf(resp).Elem(), "  ")
	}
	return resp
}

// say writes a comment.
func (c *conversation) say(format string, args ...any) {
	fmt.Fprintf(&c.out, "# "+format+"\n", args...)
}

// rename replaces a topic id by a name in what is written.
func (c *conversation) rename(id [16]byte, name string) {
	c.names[base64.RawURLEncoding.EncodeToString(id[:])] = name
}

// dump writes the fields of a response that are not zero or default.
func (c *conversation) dump(v reflect.Value, indent string) {
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		switch name {
		case "Version", "UnknownTags", "ThrottleMillis", "Brokers", "ClusterID", "ControllerID":
			continue
		case "ErrorMessage":
			if _, ok := v.Interface().(kmsg.ProduceResponseTopicPartition); ok {
				continue // Kafka has a text in few cases; we say more
			}
		case "SessionID":
			if !f.IsZero() {
				c.out.WriteString(indent + "SessionID (set)\n")
			}
			continue
		}
		if !v.Type().Field(i).IsExported() || f.IsZero() && name != "ProducerID" && name != "Partition" && name != "Offset" && name != "BaseOffset" {
			continue
		}
		if all, ok := f.Interface().([]kmsg.CreateTopicsResponseTopicConfig); ok {
			c.createConfigs(all, indent)
			continue
		}
		if all, ok := f.Interface().([]kmsg.DescribeConfigsResponseResourceConfig); ok {
			c.describedConfigs(all, indent)
			continue
		}
		if f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct {
			for j := range f.Len() {
				fmt.Fprintf(&c.out, "%s%s\n", indent, strings.TrimSuffix(name, "s"))
				c.dump(f.Index(j), indent+"  ")
			}
			continue
		}
		if f.Kind() == reflect.Struct {
			if text := c.inline(f); text != "" {
				fmt.Fprintf(&c.out, "%s%s %s\n", indent, name, text)
			}
			continue
		}
		fmt.Fprintf(&c.out, "%s%s %s\n", indent, name, c.value(name, f))
	}
}

// createConfigs writes down what a created topic sets itself.
func (c *conversation) createConfigs(all []kmsg.CreateTopicsResponseTopicConfig, indent string) {
	fmt.Fprintf(&c.out, "%s%d configs\n", indent, len(all))
	for _, rc := range all {
		if rc.Source == int8(kmsg.ConfigSourceDynamicTopicConfig) {
			fmt.Fprintf(&c.out, "%s  %s=%s\n", indent, rc.Name, *rc.Value)
		}
	}
}

// describedConfigs writes down configurations in order of their names.
func (c *conversation) describedConfigs(all []kmsg.DescribeConfigsResponseResourceConfig, indent string) {
	slices.SortFunc(all, func(a, b kmsg.DescribeConfigsResponseResourceConfig) int { return strings.Compare(a.Name, b.Name) })
	for _, rc := range all {
		if rc.Name == "min.insync.replicas" || rc.Name == "log.dirs" {
			continue // a new broker writes the first down as if it had been set at run time
		}
		value := "null"
		if rc.Value != nil {
			value = strconv.Quote(*rc.Value)
		}
		fmt.Fprintf(&c.out, "%s%s=%s %v %v", indent, rc.Name, value, rc.Source, rc.ConfigType)
		for _, s := range rc.ConfigSynonyms {
			fmt.Fprintf(&c.out, " (%s=%s %v)", s.Name, *s.Value, s.Source)
		}
		c.out.WriteString("\n")
	}
}

// inline is a small struct on one line; empty if it has only unset values.
func (c *conversation) inline(v reflect.Value) string {
	var parts []string
	for i := range v.NumField() {
		if f := v.Field(i); f.CanInt() && f.Int() != -1 {
			parts = append(parts, fmt.Sprintf("%s=%d", v.Type().Field(i).Name, f.Int()))
		}
	}
	return strings.Join(parts, " ")
}

func (c *conversation) value(name string, f reflect.Value) string {
	if f.Kind() == reflect.Pointer {
		f = f.Elem()
	}
	switch {
	case name == "ErrorCode" || name == "ConfigErrorCode":
		return kerr.ErrorForCode(int16(f.Int())).(*kerr.Error).Message
	case name == "ErrorMessage" && !c.words:
		return "(text)"
	case name == "ProducerID" && f.Int() >= 0:
		return "(id)"
	case name == "RecordBatches":
		return describeBatches(f.Bytes())
	case name == "AuthorizedOperations":
		return fmt.Sprintf("%b", f.Int())
	case name == "Documentation":
		return "(text)"
	case f.Kind() == reflect.Array:
		id := f.Interface().([16]byte)
		text := base64.RawURLEncoding.EncodeToString(id[:])
		if n, ok := c.names[text]; ok {
			return n
		}
		return "(id)"
	case f.Kind() == reflect.String:
		return fmt.Sprintf("%q", f.String())
	default:
		text := fmt.Sprint(f.Interface())
		if n, ok := c.names[text]; ok {
			return n
		}
		return text
	}
}

// describeBatches writes down stored record batches.
func describeBatches(b []byte) string {
	if len(b) == 0 {
		return "empty"
	}
	var parts []string
	for len(b) > 61 {
		size := int(binary.BigEndian.Uint32(b[8:])) + 12
		part := fmt.Sprintf("[base=%d count=%d attributes=%d epoch=%d seq=%d", binary.BigEndian.Uint64(b),
			binary.BigEndian.Uint32(b[57:]), binary.BigEndian.Uint16(b[21:]), binary.BigEndian.Uint32(b[12:]), int32(binary.BigEndian.Uint32(b[53:])))
		if size > len(b) {
			break // Kafka cuts the last one off; we do not
		}
		parts = append(parts, part+"]")
		b = b[size:]
	}
	return strings.Join(parts, " ")
}

// kafkaPeer is a broker.
type kafkaPeer struct {
	t    *testing.T
	addr string
	conn net.Conn
	id   int32
}

func (p *kafkaPeer) ask(req kmsg.Request) (kmsg.Response, bool) {
	if p.conn == nil {
		conn, err := net.Dial("tcp", p.addr)
		if err != nil {
			p.t.Fatal(err)
		}
		p.conn = conn
	}
	p.id++
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("script")).AppendRequest(nil, req, p.id)
	if _, err := p.conn.Write(frame); err != nil {
		p.t.Fatal(err)
	}
	wait := 10 * time.Second
	noAnswer := false
	if r, ok := req.(*kmsg.ProduceRequest); ok && r.Acks == 0 {
		noAnswer, wait = true, time.Second
	}
	if err := p.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		p.t.Fatal(err)
	}
	var size [4]byte
	if _, err := io.ReadFull(p.conn, size[:]); err != nil {
		if noAnswer && errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, false
		}
		_ = p.conn.Close()
		p.conn = nil
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p.t.Errorf("no answer to %T", req)
		}
		return nil, true
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(p.conn, body); err != nil {
		p.t.Fatal(err)
	}
	body = body[4:]
	resp := req.ResponseKind()
	if resp.IsFlexible() {
		body = body[1:]
	}
	if err := resp.ReadFrom(body); err != nil {
		p.t.Fatalf("%T v%d: %v", req, req.GetVersion(), err)
	}
	return resp, false
}

// handlerPeer is the handlers on a store in memory.
type handlerPeer struct {
	t       *testing.T
	table   *Table
	session *Session
}

func (p *handlerPeer) ask(req kmsg.Request) (kmsg.Response, bool) {
	// Through the bytes, as in a connection.
	in := req.AppendTo(nil)
	decoded := kmsg.RequestForKey(req.Key())
	decoded.SetVersion(req.GetVersion())
	if err := decoded.ReadFrom(in); err != nil {
		p.t.Fatal(err)
	}
	ready := make(chan struct{}, 1)
	call := newCall(p.session, req.Key(), req.GetVersion(), "script", decoded, func() { ready <- struct{}{} })
	entry := p.table.entry(req.Key())
	entry.Handle(call)
	if !call.Ready() {
		select {
		case <-ready:
		case <-time.After(10 * time.Second):
			p.t.Fatalf("no answer to %T", req)
		}
	}
	resp, closing := call.Response()
	if closing != "" {
		return nil, true
	}
	if resp == nil {
		return nil, false
	}
	out := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	if err := out.ReadFrom(resp.AppendTo(nil)); err != nil {
		p.t.Fatalf("%T v%d: %v", req, req.GetVersion(), err)
	}
	return out, false
}

// newTopicHandlers returns handlers on a store in memory.
func newTopicHandlers(t testing.TB) *TopicHandlers {
	db, err := pebble.Open("topics", &pebble.Options{FS: vfs.NewMem(), Logger: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	committer := store.NewCommitter(db, store.CommitterOptions{})
	log, err := topics.Open(topics.Options{DB: db, Committer: committer})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := committer.Close(); err != nil {
			t.Error(err)
		}
		log.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	txns, err := txn.New(testTxnConfig(), log, new(fakeGroups), nil)
	if err != nil {
		t.Fatal(err)
	}
	config := defaultTopicConfig()
	return &TopicHandlers{
		Config: config, Log: log, Txns: txns, Auth: AllowAll{},
		Cluster: NewClusterView(&Cluster{ID: "c", NodeID: 1, ControllerID: 1,
			Nodes: []Node{{ID: 1, Endpoints: []Endpoint{{Listener: "PLAINTEXT", Host: "localhost", Port: 9092}}}}}),
	}
}

func testTxnConfig() txn.Config {
	return txn.Config{TimeoutMaxMs: 900_000, IDExpiration: 7 * 24 * time.Hour, AbortInterval: 10 * time.Second, ExpireInterval: time.Hour}
}

// newStoreTable returns the table of all handlers over the real coordinators, on
// stores in memory.
func newStoreTable(t testing.TB) *Table {
	topicHandlers := newTopicHandlers(t)
	router := coordinator.NewRouter(shard.Config{Group: group.Config{
		MaxSize: 100, MaxMetadata: 4096, OffsetsRetention: group.Time((7 * 24 * time.Hour).Milliseconds()), PendingMax: 1000,
	}}, 4, shardtest.NewLog())
	txns, err := txn.New(testTxnConfig(), topicHandlers.Log, router, nil)
	if err != nil {
		t.Fatal(err)
	}
	topicHandlers.Txns = txns
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = router.Run(ctx, nil) })
	running.Go(func() { txns.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	handlers := &Handlers{
		Config: Config{SessionTimeoutMin: 6000, SessionTimeoutMax: 1800000},
		Groups: router, Topics: topicHandlers.Log, Auth: AllowAll{}, Cluster: topicHandlers.Cluster,
	}
	txnHandlers := &TxnHandlers{Handlers: handlers, Txns: txns, Log: topicHandlers.Log}
	return NewTable(topicHandlers.Cluster, slices.Concat(handlers.Entries(), topicHandlers.Entries(), txnHandlers.Entries())...)
}

type silent struct{}

func (silent) Infof(string, ...any)      {}
func (silent) Errorf(string, ...any)     {}
func (silent) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

func TestKafkaAnswers(t *testing.T) {
	for _, s := range topicScripts {
		t.Run(s.name, func(t *testing.T) {
			c := &conversation{t: t, names: map[string]string{}}
			file := filepath.Join("testdata", "topics", s.name+".txt")
			if *record != "" {
				c.peer = &kafkaPeer{t: t, addr: *record}
				s.run(c)
				if err := os.WriteFile(file, []byte(c.out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			c.peer = &handlerPeer{t: t, table: newStoreTable(t), session: &Session{Listener: "PLAINTEXT"}}
			s.run(c)
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.out.String(); got != string(want) {
				t.Errorf("not what Kafka answers:\n%s", diff(string(want), got))
			}
		})
	}
}

// diff shows both texts with the lines marked that only one has.
func diff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	// common[i][j] is the length of the longest common part of w[i:] and g[j:].
	common := make([][]int, len(w)+1)
	for i := range common {
		common[i] = make([]int, len(g)+1)
	}
	for i := len(w) - 1; i >= 0; i-- {
		for j := len(g) - 1; j >= 0; j-- {
			if w[i] == g[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var out strings.Builder
	for i, j := 0, 0; i < len(w) || j < len(g); {
		switch {
		case i < len(w) && j < len(g) && w[i] == g[j]:
			out.WriteString("    " + w[i] + "\n")
			i, j = i+1, j+1
		case j >= len(g) || i < len(w) && common[i+1][j] >= common[i][j+1]:
			out.WriteString("-   " + w[i] + "\n")
			i++
		default:
			out.WriteString("+   " + g[j] + "\n")
			j++
		}
	}
	return out.String()
}
