package admin

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/gateway"
)

var update = flag.Bool("update", false, "rewrite docs/metrics.md from the metrics that are registered")

const metricsFile = "../../docs/metrics.md"

// everything returns the metrics of a whole gateway, each used once.
func everything() *Metrics {
	m := NewMetrics("test")
	s := m.Store()
	s.Free(func() int64 { return 1 })
	s.OnCommit("groups", 3, 100, time.Millisecond)
	c := m.Connections("PLAINTEXT")
	c.Open(func() int { return 2 }, func() int64 { return 3 })
	c.ConnectionOpened("PLAINTEXT")
	c.ConnectionClosed("PLAINTEXT", gateway.ReasonIdle)
	c.RequestDone(gateway.RequestInfo{Listener: "PLAINTEXT", Key: 12, Version: 4, Code: 27, In: 10, Out: 20, Took: time.Millisecond})
	g := NewGroups(m, zap.NewNop(), 2)
	g.OnNotes(1, "g", []group.Note{{Rule: group.J1, From: group.Empty, To: group.PreparingRebalance}})
	g.OnTurn(1, shard.Turn{Events: 1, Inbox: 1, Parked: 1, Groups: 1})
	return m
}

// TestDocumentation keeps docs/metrics.md equal to what is registered.
func TestDocumentation(t *testing.T) {
	m := everything()
	want := metricsDocument(m)
	if *update {
		if err := os.WriteFile(metricsFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(metricsFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/metrics.md is not what is registered; run: go test ./gateway/admin -run Documentation -update")
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]bool{}
	for _, f := range families {
		name := f.GetName()
		served[name] = true
		ours := strings.HasPrefix(name, namespace+"_")
		if ours && !slices.ContainsFunc(m.definitions, func(d definition) bool { return d.name == name }) {
			t.Errorf("%s is served and not documented", name)
		}
		if !ours && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("%s has no known namespace", name)
		}
	}
	for _, d := range m.definitions {
		if !served[d.name] {
			t.Errorf("%s is documented and not served", d.name)
		}
	}
}

func metricsDocument(m *Metrics) string {
	var b strings.Builder
	b.WriteString(`# Metrics

<!-- Made from what is registered in gateway/admin; a test compares. -->

` + "`/metrics`" + ` on the admin address (` + "`admin.listen`" + `) serves these in the Prometheus text format, and with them the usual ` +
		"`go_…` and `process_…`" + ` of the
Go runtime and the process. Labels come from closed sets: names of APIs and error codes, listeners of the configuration, rules of the group
protocol (their table is in ` + "`coordinator/group/doc.go`" + `), reasons for which connections are closed. No label ever is a group, a topic or a client.

| metric | type | labels | meaning |
|---|---|---|---|
`)
	defs := slices.Clone(m.definitions)
	slices.SortFunc(defs, func(a, b definition) int { return cmp.Compare(a.name, b.name) })
	for _, d := range defs {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.name, d.kind, strings.Join(d.labels, ", "), d.help)
	}
	b.WriteString("\nReasons for closing a connection:")
	for i, r := range gateway.CloseReasons() {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(" `" + r.String() + "`")
	}
	b.WriteString(".\n")
	return b.String()
}

// figure returns the value of a counter or gauge without regard to labels.
func figure(t *testing.T, m *Metrics, name string) (total float64) {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != namespace+"_"+name {
			continue
		}
		for _, metric := range f.GetMetric() {
			total += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return total
}
