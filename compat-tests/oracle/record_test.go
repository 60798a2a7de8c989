package oracle

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"
)

var (
	record   = flag.Bool("record", false, "ask Apache Kafka and write its answers into testdata")
	only     = flag.String("only", "", "a regular expression: record the scenarios whose names match")
	port     = flag.Int("port", 19200, "the first port for brokers; their controllers take 10000 more")
	parallel = flag.Int("places", 16, "how many scenarios run on a broker at a time")
)

// A batch is the scenarios that can share a broker: they need the same configuration
// and restart it in the same way.
type batch struct {
	set       map[string]string
	restarts  string
	scenarios []*Scenario
}

// batches sorts scenarios, those that take long first.
func batches(all []*Scenario) []*batch {
	var found []*batch
	for _, s := range all {
		set := configured(s)
		i := slices.IndexFunc(found, func(b *batch) bool {
			return fmt.Sprint(b.set) == fmt.Sprint(set) && b.restarts == s.Restarts()
		})
		if i < 0 {
			i = len(found)
			found = append(found, &batch{set: set, restarts: s.Restarts()})
		}
		found[i].scenarios = append(found[i].scenarios, s)
	}
	for _, b := range found {
		slices.SortStableFunc(b.scenarios, func(a, b *Scenario) int { return int(b.Duration() - a.Duration()) })
	}
	return found
}

// TestRecord asks Apache Kafka. Its brokers end with the test.
func TestRecord(t *testing.T) {
	if !*record {
		t.Skip("asks Apache Kafka with -record, as make oracle does")
	}
	all, err := Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(*only)
	all = slices.DeleteFunc(all, func(s *Scenario) bool { return !pattern.MatchString(s.Name) })
	// Two brokers at a time: most of the time is waiting.
	hints := map[*Scenario][][]string{}
	for _, s := range all {
		if got := inProcess(t, s, &rules{count: map[string]int{}}); got != nil {
			hints[s] = got.Answers
		}
	}
	slots := make(chan int, 2)
	for i := range cap(slots) {
		slots <- *port + i
	}
	var wg sync.WaitGroup
	for _, b := range batches(all) {
		port := <-slots
		wg.Go(func() {
			defer func() { slots <- port }()
			start := time.Now()
			if err := recordBatch(t, b, port, hints); err != nil {
				t.Error(err)
			}
			t.Logf("%d scenarios on %v %s took %v", len(b.scenarios), b.set, b.restarts, time.Since(start).Round(time.Second))
		})
	}
	wg.Wait()
}

// recordBatch runs a batch on a new broker and writes what it answered.
func recordBatch(t *testing.T, b *batch, port int, hints map[*Scenario][][]string) error {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	k, err := startKafka(ctx, t.TempDir(), port, b.set)
	if err != nil {
		return err
	}
	defer func() { _ = k.script(context.WithoutCancel(ctx), "kill") }() // a scenario may have stopped it
	places := make(chan struct{}, *parallel)
	if b.restarts != "" { // all have to come to the restart
		places = make(chan struct{}, len(b.scenarios))
		k.running = len(b.scenarios)
	}
	var wg sync.WaitGroup
	for i, s := range b.scenarios {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			got, err := Run(ctx, s, k, fmt.Sprintf("%d-%d-", port, i), hints[s])
			if err != nil {
				t.Error(err)
				if b.restarts != "" {
					cancel() // nobody can go on
				}
				return
			}
			if err := os.WriteFile(filepath.Join("testdata", s.Name+".txt"), []byte(s.With(got.Answers).Text()), 0o644); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return nil
}
