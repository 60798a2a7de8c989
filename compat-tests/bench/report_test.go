package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample is a report with figures that are easy to check.
func sample() *report {
	r := &report{Machine: "a machine", Rounds: 3, Offsets: 1_000_000, Starts: []start{{rollcallName, 0.11, 0.25}, {kafkaName, 6, 5}}}
	for _, load := range []string{"idle-groups/5000", "commit/64/1", "commit/16/8", "heartbeat/64", "fetch/16/1", "join/1000x100"} {
		for i, s := range order {
			used, memory := float64(10*(i+1)), float64(1000*(i+1))
			x := result{Load: load, Server: s, PerSecond: 120_000 / float64(i+1), P50: 90, P99: 1500 * float64(i+1), CPU: &used}
			if strings.HasPrefix(load, "idle-") {
				x.Memory = &memory
			}
			if load == "fetch/16/1" && s == kfakeName {
				x.Error = "not supported"
			}
			r.Results = append(r.Results, x)
		}
	}
	return r
}

// TestWrite replaces what is generated and nothing else, also the second time.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "performance.md")
	var page strings.Builder
	page.WriteString("before\n")
	for _, name := range []string{"machine", "aims", "requests", "memory", "starts"} {
		page.WriteString("about " + name + "\n<!-- bench-peers " + name + " -->\nold\n<!-- end of " + name + " -->\n")
	}
	page.WriteString("after\n")
	if err := os.WriteFile(path, []byte(page.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	r := sample()
	var last string
	for range 2 {
		if err := r.write(dir); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" && string(b) != last {
			t.Errorf("written again it is different:\n%s", b)
		}
		last = string(b)
	}
	for _, want := range []string{
		"before\nabout ", "after\n", "Machine: a machine.",
		"| `commit/64/1` | 120,000, 1.5 ms, 10.0 µs | 60,000, 3.0 ms, 20.0 µs | 40,000, 4.5 ms, 30.0 µs | 30,000, 6.0 ms, 40.0 µs |",
		"| `commit/64/1` | 2.00, 0.50, 0.50 | 3.00, 0.33, 0.33 | 4.00, 0.25, 0.25 |",
		"| `fetch/16/1` | 2.00, 0.50, 0.50 | 3.00, 0.33, 0.33 | –, –, – |",
		"| commits, 64 connections | ÷ Kafka, not syncing | at least 2.50 | 2.00 | no |",
		"| commits, 16 connections | ÷ Kafka, not syncing | at least 1.20 | – | no |",
		"| heartbeats, 64 connections | ÷ Kafka, not syncing | at least 1.50 | 2.00 | yes |",
		"| 1,000 members join at once: time | ÷ Kafka, not syncing | at most 0.50 | 0.50 | yes |",
		"| ready with 1,000,000 offsets |  | at most 1.00 s | 0.25 s | yes |",
		"| group, of 5000 | 1,000 bytes | 2,000 bytes | 3,000 bytes | 4,000 bytes |",
		"| Kafka, not syncing | 6.00 s | 5.00 s |",
	} {
		if !strings.Contains(last, want) {
			t.Errorf("%q is not in\n%s", want, last)
		}
	}
	if strings.Contains(last, "old") {
		t.Errorf("an old part is left:\n%s", last)
	}
	pictures, err := filepath.Glob(filepath.Join(dir, "performance", "*.svg"))
	if err != nil || len(pictures) != 8 {
		t.Errorf("pictures %v, %v", pictures, err)
	}
	for _, p := range pictures {
		wellFormed(t, p)
	}
}

func wellFormed(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := xml.NewDecoder(f)
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
	}
}

func TestMissingMark(t *testing.T) {
	_, err := replaceSections([]byte("<!-- bench-peers aims -->\n"), map[string]string{"aims": "x"})
	if err == nil || !strings.Contains(err.Error(), "<!-- end of aims -->") {
		t.Errorf("%v", err)
	}
}
