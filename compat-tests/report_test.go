package compat

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

var update = flag.Bool("update", false, "write docs/compatibility.md from this run")

// documentation says what has been seen to work. A run of everything makes it.
const documentation = "../docs/compatibility.md"

// A shown is one thing that a test has seen work.
type shown struct{ client, version, scenario, with string }

// results are those of this run.
var results struct {
	sync.Mutex
	shown   []shown
	skipped map[string]string // what was not run -> why
}

// titles are the clients whose names in the tests are short.
var titles = map[string]string{
	"sarama": "Sarama", "librdkafka": "librdkafka (confluent-kafka-go)", "platformatic": "@platformatic/kafka",
	"verifiable": "Apache Kafka verifiable-consumer, verifiable-producer",
}

// record notes that a client did something, if the test then passes.
func record(t *testing.T, client, version, scenario, with string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() || t.Skipped() {
			return
		}
		results.Lock()
		defer results.Unlock()
		results.shown = append(results.shown, shown{cmp.Or(titles[client], client), version, scenario, with})
	})
}

// skip skips the test; what it does not run and why is printed at the end.
func skip(t *testing.T, what, why string) {
	t.Helper()
	results.Lock()
	if results.skipped == nil {
		results.skipped = map[string]string{}
	}
	results.skipped[what] = why
	results.Unlock()
	t.Skip(what + ": " + why)
}

// An exception is something that a client does not do with Rollcall, or that is not run.
type exception struct{ client, what, why string }

// exceptions are all of them.
var exceptions = []exception{
	{"kafka-go", "idempotent and transactional producer", "it has none"},
	{"kafka-go, librdkafka", "one group of both without a third library", "they cannot read each other's subscriptions, with any broker: a leader that can read all, for instance Sarama, has to be there first"},
	{"kcat", "where its records went", "its producer does not say; they are found by reading them"},
	{"kcat", "aborted transaction", "it aborts only when it is interrupted"},
	{"Apache Kafka verifiable-producer", "transactions", "it has none; the transactional producer of the same library is run by itself"},
	{"kafkajs", "zstd", "it has no codec for it, and its plugin does not compile with Node 20"},
	{"@platformatic/kafka", "zstd", "it needs Node 22.15"},
	{"@platformatic/kafka", "a second process with the same transactional id", "it asks to go on with producer id 0 instead of none, and is fenced; by Apache Kafka, too"},
	{"Confluent Schema Registry, Karapace", "the whole program, `TestRegistryContainers`", "runs where their images are; they are in no package registry. Their groups and their start are played by members of the tests"},
	{"every client", "`group.protocol=consumer`, share groups and streams groups", "Rollcall has classic groups"},
}

// TestMain prints what was skipped, and when everything has run it compares what was seen
// to work with the documentation.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	rig.StopDocker()
	for _, what := range slices.Sorted(maps.Keys(results.skipped)) {
		fmt.Printf("not run: %s: %s\n", what, results.skipped[what])
	}
	if err := checkDocumentation(); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// checkDocumentation prints how a run of everything differs from the documentation, which
// -update makes from it. A run of some tests can only add to it. What a machine can install
// differs, so that alone does not fail a run: the tests themselves do.
func checkDocumentation() error {
	only := flag.Lookup("test.run").Value.String() + flag.Lookup("test.skip").Value.String()
	everything := only == "" && *real && *rdkafka && *full
	if os.Getenv("ROLLCALL_COMPAT_ADDR") != "" || !everything && !*update {
		return nil
	}
	text, err := os.ReadFile(documentation)
	if err != nil && !*update {
		return err
	}
	// What could not run here has no row; and what a machine installs may be of another version.
	rows, there := map[string]string{}, map[string]string{}
	for _, row := range tableOf(results.shown) {
		rows[withoutVersion(row)] = row
	}
	for _, row := range documented(string(text)) {
		there[withoutVersion(row)] = row
	}
	if *update {
		if !everything {
			maps.Copy(there, rows)
			rows = there
		}
		return os.WriteFile(documentation, []byte(documentOf(slices.SortedFunc(maps.Values(rows), byClient))), 0o600)
	}
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		switch row, was := rows[key], there[key]; was {
		case row:
		case "":
			fmt.Printf("not in %s, which make compat UPDATE=-update writes: %s", documentation, row)
		default:
			fmt.Printf("another version than in %s: %s", documentation, row)
		}
		delete(there, key)
	}
	for _, row := range slices.Sorted(maps.Values(there)) {
		fmt.Printf("in %s, but not shown: %s", documentation, row)
	}
	return nil
}

func byClient(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) }

// tableOf makes a row for each client, version and scenario, with everything that it was
// run with.
func tableOf(all []shown) []string {
	with := map[shown][]string{}
	for _, s := range all {
		key := s
		key.with = ""
		if !slices.Contains(with[key], s.with) {
			with[key] = append(with[key], s.with)
		}
	}
	var rows []string
	for k, list := range with {
		slices.Sort(list)
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |\n", k.client, k.version, k.scenario, strings.Join(list, ", ")))
	}
	return rows
}

// withoutVersion is a row without its second column.
func withoutVersion(row string) string {
	columns := strings.Split(row, " | ")
	return strings.Join(append(columns[:1:1], columns[2:]...), " | ")
}

// documented returns the rows of the table of what works.
func documented(text string) []string {
	_, text, _ = strings.Cut(text, "| client | version | scenario | with |\n|---|---|---|---|\n")
	text, _, _ = strings.Cut(text, "\n\n")
	return slices.Collect(strings.Lines(strings.TrimPrefix(text+"\n", "\n")))
}

func documentOf(rows []string) string {
	var b strings.Builder
	b.WriteString(`# Compatibility

What has run against Rollcall, by name and version. Each row was written by a test that passed: ` + "`make compat`" + ` runs
them and ends with what it has shown that is not here, and the reverse. After a change:

` + "```" + `
make compat UPDATE=-update
` + "```" + `

* **group of two, two rounds**: two members on four partitions; each partition has one owner and the group rests; 400 records of the
  client's own producer reach them once each, at the offset that was acknowledged; they commit and leave; a second round resumes and reads nothing again.
* **group of four**: four members at once, then a fifth comes, one leaves and one is killed; no partition ever has two owners, no record is lost.
* **registries**: members of a group of type sr with the requests, bytes and reactions of the registry, which elect as it does.
* **mixed group**: one member on each of these libraries in one group, and then the same.
* **gateway killed**: SIGKILL and a restart change neither the generation nor the assignment; registries keep their leader (Karapace joins anew).
* **producer**: with each codec, and the newest batch really has it.

| client | version | scenario | with |
|---|---|---|---|
`)
	b.WriteString(strings.Join(rows, ""))
	b.WriteString("\n## Exceptions\n\n| client | what | why |\n|---|---|---|\n")
	for _, e := range exceptions {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", e.client, e.what, e.why)
	}
	return b.String()
}
