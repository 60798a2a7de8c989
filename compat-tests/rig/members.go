package rig

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-mq/rollcall/compat-tests/internal/event"
)

// Member is one member process of a group.
type Member struct {
	// Name is the test's own name for it.
	Name string

	t      testing.TB
	ledger *Ledger
	cmd    *exec.Cmd
	stderr bytes.Buffer // to be read when done
	done   chan struct{}
	err    error // how it ended, when done
}

// MemberConfig says how to start a member. Client is sarama, franz-go, kafka-go,
// librdkafka, kcat, verifiable, confluent-kafka, aiokafka, kafka-python, kafkajs or
// platformatic.
type MemberConfig struct {
	Client, Strategy, ClientID, InstanceID string
	Session                                time.Duration
	// Committed makes it read committed transactions only.
	Committed bool
}

// StartMember starts a member of the ledger's group.
func (l *Ledger) StartMember(t testing.TB, addr, name string, c MemberConfig) *Member {
	t.Helper()
	if c.Session == 0 {
		c.Session = 6 * time.Second
	}
	return l.startProgram(t, name, event.Config{
		Client: c.Client, Addr: addr, Topic: l.Topic, ClientID: c.ClientID,
		Group: l.Group, Strategy: c.Strategy, InstanceID: c.InstanceID, Committed: c.Committed,
		SessionMs: int(c.Session.Milliseconds()), RebalanceMs: 20_000, HeartbeatMs: 300,
	})
}

// Produce lets a client write records and waits until it has ended. What it reports is
// in the ledger under name; it has failed if its exit status says so.
func (l *Ledger) Produce(t testing.TB, name string, c event.Config) {
	t.Helper()
	c.Topic = l.Topic
	m := l.startProgram(t, name, c)
	select {
	case <-m.done:
	case <-time.After(60 * time.Second):
		t.Fatalf("%s does not end", name)
	}
	if m.err != nil {
		t.Fatalf("%s: %v", name, m.err)
	}
}

func (l *Ledger) startProgram(t testing.TB, name string, c event.Config) *Member {
	t.Helper()
	p, err := programFor(c.Client)
	if err != nil {
		t.Fatal(err)
	}
	argument, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	m := &Member{Name: name, t: t, ledger: l, done: make(chan struct{})}
	m.cmd = exec.Command(p.args[0], append(p.args[1:], string(argument))...)
	m.cmd.Env = append(os.Environ(), p.env...)
	m.cmd.Stderr = &m.stderr
	// What it starts itself ends with it.
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(m.done)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var e event.Event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				e = event.Event{Kind: event.Error, Nanos: time.Now().UnixNano(), Text: "unreadable line: " + lines.Text()}
			}
			l.add(name, e)
		}
		m.err = m.cmd.Wait()
		l.gone(name)
	}()
	t.Cleanup(func() {
		m.Kill()
		if t.Failed() && m.stderr.Len() > 0 {
			t.Logf("what %s said on standard error:\n%s", name, m.stderr.Bytes()[:min(m.stderr.Len(), 8<<10)])
		}
	})
	return m
}

// Leave asks the member to leave its group and waits for it.
func (m *Member) Leave() {
	m.t.Helper()
	_ = m.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-m.done:
	case <-time.After(30 * time.Second):
		m.t.Fatalf("%s does not leave", m.Name)
	}
}

// Kill ends the member without a word to its group.
func (m *Member) Kill() {
	select {
	case <-m.done: // its id may be somebody else's by now
	default:
		_ = syscall.Kill(-m.cmd.Process.Pid, syscall.SIGKILL)
	}
	<-m.done
}

// Ledger collects what the members of one group report.
type Ledger struct {
	Group, Topic string

	mu     sync.Mutex
	events []reported
}

type reported struct {
	event.Event
	by string
}

// NewLedger returns the ledger of a group on one topic.
func NewLedger(group, topic string) *Ledger { return &Ledger{Group: group, Topic: topic} }

func (l *Ledger) add(by string, e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, reported{e, by})
}

func (l *Ledger) gone(by string) {
	l.add(by, event.Event{Kind: "gone", Nanos: time.Now().UnixNano()})
}

// sorted returns what has been reported, in order of time.
func (l *Ledger) sorted() []reported {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := slices.Clone(l.events)
	slices.SortStableFunc(events, func(a, b reported) int { return int(a.Nanos - b.Nanos) })
	return events
}

// Owners returns who owns each partition now, as the members themselves see it, and
// an error if a partition ever had two owners at a time or in one generation.
func (l *Ledger) Owners() (map[int32]string, error) {
	owners := map[int32]string{}
	byGeneration := map[[2]int32]string{}
	for _, e := range l.sorted() {
		switch e.Kind {
		case event.Claim:
			if prev, taken := owners[e.Partition]; taken && prev != e.by {
				return nil, fmt.Errorf("partition %d is claimed by %s (generation %d) while %s owns it", e.Partition, e.by, e.Generation, prev)
			}
			if e.Generation > 0 {
				key := [2]int32{e.Generation, e.Partition}
				if prev, taken := byGeneration[key]; taken && prev != e.by {
					return nil, fmt.Errorf("generation %d gave partition %d to %s and to %s", e.Generation, e.Partition, prev, e.by)
				}
				byGeneration[key] = e.by
			}
			owners[e.Partition] = e.by
		case event.Release:
			if owners[e.Partition] == e.by {
				delete(owners, e.Partition)
			}
		case "gone":
			for p, by := range owners {
				if by == e.by {
					delete(owners, p)
				}
			}
		}
	}
	return owners, nil
}

// Releases counts how often a member gave up a partition.
func (l *Ledger) Releases() int {
	n := 0
	for _, e := range l.sorted() {
		if e.Kind == event.Release {
			n++
		}
	}
	return n
}

// Processed returns, by partition, which offsets have been processed.
func (l *Ledger) Processed() map[int32]map[int64]bool {
	seen := map[int32]map[int64]bool{}
	for _, e := range l.sorted() {
		if e.Kind == event.Record {
			if seen[e.Partition] == nil {
				seen[e.Partition] = map[int64]bool{}
			}
			seen[e.Partition][e.Offset] = true
		}
	}
	return seen
}

// An At is where a record is.
type At struct {
	Partition int32
	Offset    int64
}

// Values returns where each value was seen in events of a kind, Record or Produced, by
// one of the programs or, with "", by any.
func (l *Ledger) Values(kind, by string) map[string][]At {
	values := map[string][]At{}
	for _, e := range l.sorted() {
		if e.Kind == kind && (by == "" || e.by == by) {
			values[e.Text] = append(values[e.Text], At{e.Partition, e.Offset})
		}
	}
	return values
}

// Version returns the version that the client library of a member reported.
func (l *Ledger) Version(by string) string {
	for _, e := range l.sorted() {
		if e.Kind == event.Version && e.by == by {
			return e.Text
		}
	}
	return "unknown"
}

// Moves counts the claims and releases so far.
func (l *Ledger) Moves() int {
	n := 0
	for _, e := range l.sorted() {
		if e.Kind == event.Claim || e.Kind == event.Release {
			n++
		}
	}
	return n
}

// String prints the claims, releases and errors, for failed tests.
func (l *Ledger) String() string {
	var s []byte
	events := l.sorted()
	last := map[[2]any]int{} // the newest of a run of records, by member and partition
	for i, e := range events {
		if e.Kind == event.Record || e.Kind == event.Produced {
			last[[2]any{e.by, e.Partition}] = i
		}
	}
	for i, e := range events {
		if e.Kind != event.Record && e.Kind != event.Produced || last[[2]any{e.by, e.Partition}] == i {
			s = fmt.Appendf(s, "%8.3f %-12s %-8s gen %-3d partition %d offset %d %s %s\n",
				float64(e.Nanos-events[0].Nanos)/1e9, e.by, e.Kind, e.Generation, e.Partition, e.Offset, e.Member, e.Text)
		}
	}
	return string(s)
}
