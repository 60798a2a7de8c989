package rig

import (
	"bufio"
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
	done   chan struct{}
}

// MemberConfig says how to start a member; Client is sarama, franz-go, kafka-go or
// librdkafka.
type MemberConfig struct {
	Client, Strategy, ClientID, InstanceID string
	Session                                time.Duration
}

// StartMember starts a member of the ledger's group.
func (l *Ledger) StartMember(t testing.TB, addr, name string, c MemberConfig) *Member {
	t.Helper()
	bin, err := memberBin()
	if c.Client == "librdkafka" {
		bin, err = rdkafkaBin()
	}
	if err != nil {
		t.Fatal(err)
	}
	if c.Session == 0 {
		c.Session = 6 * time.Second
	}
	m := &Member{Name: name, t: t, ledger: l, done: make(chan struct{})}
	m.cmd = exec.Command(bin, "-client", c.Client, "-addr", addr, "-group", l.Group, "-topic", l.Topic,
		"-strategy", c.Strategy, "-client-id", c.ClientID, "-instance-id", c.InstanceID, "-session", c.Session.String())
	m.cmd.Stderr = os.Stderr
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
				e = event.Event{Kind: event.Error, Text: "unreadable line: " + lines.Text()}
			}
			l.add(name, e)
		}
		_ = m.cmd.Wait()
		l.gone(name)
	}()
	t.Cleanup(func() { _ = m.cmd.Process.Kill(); <-m.done })
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
	_ = m.cmd.Process.Kill()
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

// String prints the claims, releases and errors, for failed tests.
func (l *Ledger) String() string {
	var s []byte
	events := l.sorted()
	last := map[[2]any]int{} // the newest of a run of records, by member and partition
	for i, e := range events {
		if e.Kind == event.Record {
			last[[2]any{e.by, e.Partition}] = i
		}
	}
	for i, e := range events {
		if e.Kind != event.Record || last[[2]any{e.by, e.Partition}] == i {
			s = fmt.Appendf(s, "%8.3f %-12s %-8s gen %-3d partition %d offset %d %s %s\n",
				float64(e.Nanos-events[0].Nanos)/1e9, e.by, e.Kind, e.Generation, e.Partition, e.Offset, e.Member, e.Text)
		}
	}
	return string(s)
}
