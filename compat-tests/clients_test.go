package compat

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/compat-tests/internal/event"
	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

// A realClient is a client library or program as docs/compatibility.md names it, with
// what it can do.
type realClient struct {
	name, language string
	strategies     []string
	codecs         []string
	idempotent     bool
	transactional  bool
}

var allCodecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// realClients are all that run through TestClients. What a client cannot do is in
// exceptions, with the reason.
var realClients = []realClient{
	{"sarama", "Go", []string{"range", "roundrobin", "sticky", "cooperative-sticky"}, allCodecs, true, true},
	{"franz-go", "Go", []string{"range", "roundrobin", "sticky", "cooperative-sticky"}, allCodecs, true, true},
	{"kafka-go", "Go", []string{"range", "roundrobin"}, allCodecs, false, false},
	{"librdkafka", "Go, C", []string{"range", "roundrobin", "cooperative-sticky"}, allCodecs, true, true},
	{"kcat", "C", []string{"range"}, allCodecs, true, true},
	{"verifiable", "Java", []string{"range", "cooperative-sticky"}, allCodecs, true, false},
	{"confluent-kafka", "Python, C", []string{"range", "roundrobin", "cooperative-sticky"}, allCodecs, true, true},
	{"aiokafka", "Python", []string{"range", "roundrobin", "sticky"}, allCodecs, true, true},
	{"kafka-python", "Python", []string{"range", "roundrobin", "sticky", "cooperative-sticky"}, allCodecs, true, true},
	{"kafkajs", "JavaScript", []string{"roundrobin"}, []string{"none", "gzip", "snappy", "lz4"}, true, true},
	{"platformatic", "JavaScript", []string{"roundrobin"}, []string{"none", "gzip", "snappy", "lz4"}, true, true},
}

// TestClients: two members on four partitions share them and are at rest; 400 records of
// the client's own producer, some with each codec, reach them once each; they commit and
// leave; a second round resumes without reading anything again.
func TestClients(t *testing.T) {
	if !*real {
		skip(t, "real clients", "they run with -real")
	}
	srv := rig.Start(t)
	for _, c := range realClients {
		for i, strategy := range c.strategies {
			t.Run(c.name+"/"+strategy, func(t *testing.T) {
				t.Parallel()
				need(t, c.name)
				g := newRounds(t, srv, c, strategy)
				g.round(func() { g.produceAll(400) })
				// One strategy is enough for what has nothing to do with strategies.
				if i == 0 && c.idempotent {
					g.round(func() { g.produce(400, event.Config{Compression: "none", Idempotent: true}) })
				} else {
					g.round(func() { g.produce(400, event.Config{Compression: "none"}) })
				}
				g.report()
			})
		}
	}
}

// TestClientTransactions: members that read committed records see those of a committed
// transaction once each and none of an aborted one.
func TestClientTransactions(t *testing.T) {
	if !*real {
		skip(t, "real clients", "they run with -real")
	}
	srv := rig.Start(t)
	needTransactions(t, srv)
	for _, c := range realClients {
		if !c.transactional {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			need(t, c.name)
			g := newRounds(t, srv, c, c.strategies[0])
			g.committed = true
			transaction := event.Config{Compression: "none", Idempotent: true, Transactional: unique(t, "txn")}
			g.round(func() {
				g.produce(100, transaction)
				if c.name != "kcat" { // which cannot be told to abort
					abort := transaction
					abort.Abort = true
					if c.name == "platformatic" { // which fences itself, see exceptions
						abort.Transactional += "-2"
						transaction.Transactional += "-3"
					}
					g.write(100, abort)
				}
				g.produce(100, transaction)
			})
			record(t, c.name, g.version(), "transactions, read_committed", "committed")
			if c.name != "kcat" {
				record(t, c.name, g.version(), "transactions, read_committed", "aborted")
			}
		})
	}
}

// needTransactions skips the test while the server does not say that it has transactions.
func needTransactions(t *testing.T, srv *rig.Server) {
	t.Helper()
	for _, k := range rig.Do[*kmsg.ApiVersionsResponse](rig.Dial(t, srv.Addr), kmsg.NewPtrApiVersionsRequest()).ApiKeys {
		if k.ApiKey == int16(kmsg.AddPartitionsToTxn) {
			return
		}
	}
	skip(t, "transactions", "this server does not advertise AddPartitionsToTxn")
}

// need skips the test if a client cannot be installed here.
func need(t *testing.T, client string) {
	t.Helper()
	if client == "librdkafka" && !*rdkafka {
		skip(t, client, "it runs with -rdkafka")
	}
	if err := rig.Available(client); err != nil {
		skip(t, client, err.Error())
	}
}

// rounds is a group of two members of one client that comes and goes, with the records
// that it should see.
type rounds struct {
	liveGroup
	client    realClient
	strategy  string
	committed bool
	prefix    int
	names     []string // of all members so far
	want      map[string]bool
}

func newRounds(t *testing.T, srv *rig.Server, c realClient, strategy string) *rounds {
	t.Helper()
	return &rounds{liveGroup: quietGroup(t, srv, 4), client: c, strategy: strategy, want: map[string]bool{}}
}

// round lets two members come, share the partitions, rest, read what fill writes, commit
// and leave.
func (g *rounds) round(fill func()) {
	g.t.Helper()
	var members []*rig.Member
	for range 2 {
		name := fmt.Sprintf("%s-%d", g.client.name, len(g.names))
		g.names = append(g.names, name)
		members = append(members, g.ledger.StartMember(g.t, g.srv.Addr, name, rig.MemberConfig{
			Client: g.client.name, Strategy: g.strategy, ClientID: g.client.name, Committed: g.committed,
		}))
	}
	g.settle(2, 45*time.Second)
	moves, ids := g.ledger.Moves(), g.memberIDs()
	fill()
	rig.Eventually(g.t, 30*time.Second, "each record has been read", g.allRead)
	rig.Steady(g.t, 2*time.Second, "the group rests, and no record comes twice", func() error {
		if now := g.ledger.Moves(); now != moves {
			return fmt.Errorf("%d claims and releases have become %d", moves, now)
		}
		if now := g.memberIDs(); now != ids {
			return fmt.Errorf("%s has become %s", ids, now)
		}
		return g.readOnce()
	})
	rig.Eventually(g.t, 10*time.Second, "each record is committed", g.allCommitted)
	for _, m := range members {
		m.Leave()
	}
	if _, err := g.ledger.Owners(); err != nil {
		g.t.Error(err)
	}
	rig.Eventually(g.t, 10*time.Second, "the members have left", func() error {
		described, err := g.adm.DescribeGroups(g.t.Context(), g.ledger.Group)
		if err == nil && described[g.ledger.Group].State != "Empty" {
			err = fmt.Errorf("the group is %s", described[g.ledger.Group].State)
		}
		return err
	})
}

// memberIDs is the group as the coordinator describes it.
func (g *rounds) memberIDs() string {
	described, err := g.adm.DescribeGroups(g.t.Context(), g.ledger.Group)
	if err != nil {
		return err.Error()
	}
	ids := []string{described[g.ledger.Group].State}
	for _, m := range described[g.ledger.Group].Members {
		ids = append(ids, m.MemberID)
	}
	return strings.Join(ids, " ")
}

// produceAll writes n records, an equal part with each codec, and looks whether it was
// used.
func (g *rounds) produceAll(n int) {
	g.t.Helper()
	for _, codec := range g.client.codecs {
		g.produce(n/len(g.client.codecs), event.Config{Compression: codec})
		if got := rig.Codec(g.t, g.srv.Addr, g.ledger.Topic, g.newest().Partition); got != codec {
			g.t.Errorf("the producer was asked for %s and the newest batch has %s", codec, got)
		}
	}
}

// newest returns where a record of the newest producer is.
func (g *rounds) newest() (at rig.At) {
	g.t.Helper()
	for value, where := range g.ledger.Values(event.Produced, g.producer()) {
		if at = where[0]; at.Partition >= 0 {
			return at
		}
		// The client does not say where the record went.
		rig.Eventually(g.t, 20*time.Second, "the record is read", func() error {
			read := g.ledger.Values(event.Record, "")[value]
			if len(read) == 0 {
				return errors.New("it is not")
			}
			at = read[0]
			return nil
		})
		return at
	}
	return at
}

// producer is the name of the newest producer in the ledger.
func (g *rounds) producer() string { return fmt.Sprintf("producer-%d", g.prefix) }

// produce lets the client write n records, which the members should see.
func (g *rounds) produce(n int, c event.Config) {
	g.t.Helper()
	for v := range g.write(n, c) {
		g.want[v] = true
	}
}

// write lets the client write n records, which the members should see unless it aborts.
func (g *rounds) write(n int, c event.Config) map[string][]rig.At {
	g.t.Helper()
	g.prefix++
	c.Client, c.Addr, c.ClientID = g.client.name, g.srv.Addr, g.client.name+"-producer"
	c.Produce, c.Partitions, c.Prefix = n, g.partitions, g.prefix
	g.ledger.Produce(g.t, g.producer(), c)
	written := g.ledger.Values(event.Produced, g.producer())
	if len(written) != n {
		g.t.Fatalf("the producer was asked for %d records and reports %d", n, len(written))
	}
	for v, at := range written {
		if len(at) != 1 || !strings.HasPrefix(v, fmt.Sprintf("%d.", g.prefix)) {
			g.t.Fatalf("the producer reports %q at %v", v, at)
		}
	}
	return written
}

// allRead returns an error until each record has been read.
func (g *rounds) allRead() error {
	read := g.ledger.Values(event.Record, "")
	missing := 0
	for v := range g.want {
		if len(read[v]) == 0 {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d of %d are missing", missing, len(g.want))
	}
	return nil
}

// readOnce returns an error if a record was read twice, or elsewhere than it was written,
// or should not have been read.
func (g *rounds) readOnce() error {
	produced := g.ledger.Values(event.Produced, "")
	for v, at := range g.ledger.Values(event.Record, "") {
		switch {
		case !g.want[v]:
			return fmt.Errorf("%q is read and was aborted, or never written", v)
		case len(at) > 1:
			return fmt.Errorf("%q is read %d times: %v", v, len(at), at)
		case produced[v][0].Partition >= 0 && produced[v][0] != at[0]:
			return fmt.Errorf("%q is read at %v and was acknowledged at %v", v, at[0], produced[v][0])
		}
	}
	return nil
}

// allCommitted returns an error until the committed offsets are behind each record.
func (g *rounds) allCommitted() error {
	offsets, err := g.adm.FetchOffsets(g.t.Context(), g.ledger.Group)
	if err != nil {
		return err
	}
	for v, at := range g.ledger.Values(event.Record, "") {
		o, ok := offsets.Lookup(g.ledger.Topic, at[0].Partition)
		if !ok || o.At <= at[0].Offset {
			return fmt.Errorf("the offset of partition %d is %d, before %q at %d", at[0].Partition, o.At, v, at[0].Offset)
		}
	}
	return nil
}

func (g *rounds) version() string { return g.ledger.Version(g.names[0]) }

// report notes for docs/compatibility.md what has run.
func (g *rounds) report() {
	record(g.t, g.client.name, g.version(), "group of two, two rounds", g.strategy)
	for _, codec := range g.client.codecs {
		record(g.t, g.client.name, g.version(), "producer", codec)
	}
	if g.client.idempotent {
		record(g.t, g.client.name, g.version(), "producer", "idempotent")
	}
}
