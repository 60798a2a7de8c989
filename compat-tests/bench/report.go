package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report is everything that was measured in a run.
type report struct {
	Machine string        `json:"machine"`
	Time    time.Duration `json:"measurement_ns"`
	Rounds  int           `json:"rounds"`
	Offsets int           `json:"offsets"`
	Results []result      `json:"results"`
	Starts  []start       `json:"starts"`
}

// machine describes where this runs.
func machine(ctx context.Context) string {
	cpu := "unknown processor"
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if _, name, ok := strings.Cut(line, "model name\t: "); ok {
				cpu = strings.TrimSpace(name)
			}
		}
	}
	kernel := ""
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = " " + strings.TrimSpace(string(b))
	}
	commit := "unknown"
	if b, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output(); err == nil {
		commit = strings.TrimSpace(string(b))
	}
	version := os.Getenv("KAFKA_VERSION")
	if version == "" {
		version = "4.4.0"
	}
	return fmt.Sprintf("%s, %d cores (%s), %s%s, %s; Rollcall %s, Apache Kafka %s", time.Now().UTC().Format("2 January 2006"), runtime.NumCPU(), cpu,
		runtime.GOOS, kernel, runtime.Version(), commit, version)
}

// find returns the result of a load on a server; ok is false if it has none.
func (r *report) find(load, server string) (result, bool) {
	i := slices.IndexFunc(r.Results, func(x result) bool { return x.Load == load && x.Server == server })
	if i < 0 || r.Results[i].Error != "" {
		return result{}, false
	}
	return r.Results[i], true
}

// loads returns the names of the loads that begin so, in order.
func (r *report) loads(prefix string) []string {
	var names []string
	for _, x := range r.Results {
		if strings.HasPrefix(x.Load, prefix) && !slices.Contains(names, x.Load) {
			names = append(names, x.Load)
		}
	}
	return names
}

var order = []string{rollcallName, kafkaName, kafkaSyncName, kfakeName}

// A measure is a figure of a result; nil if there is none.
type measure func(result) *float64

func rate(x result) *float64 { return &x.PerSecond }
func p99(x result) *float64  { return &x.P99 }
func cpu(x result) *float64  { return x.CPU }

// ratio is a figure of Rollcall divided by that of another server.
func (r *report) ratio(load, server string, of measure) (float64, bool) {
	ours, ok := r.find(load, rollcallName)
	theirs, ok2 := r.find(load, server)
	if !ok || !ok2 || of(ours) == nil || of(theirs) == nil || *of(ours) == 0 || *of(theirs) == 0 {
		return 0, false
	}
	return *of(ours) / *of(theirs), true
}

// sections are the generated parts of the document.
func (r *report) sections() map[string]string {
	return map[string]string{
		"machine":  r.machineText(),
		"aims":     r.aimsTable(),
		"requests": r.requestsTable() + "\n" + r.ratiosTable(),
		"memory":   r.memoryTable(),
		"starts":   r.startsTable(),
	}
}

func (r *report) text() string {
	s := r.sections()
	return strings.Join([]string{s["machine"], s["aims"], s["requests"], s["memory"], s["starts"]}, "\n")
}

func (r *report) machineText() string {
	return fmt.Sprintf("Machine: %s. Each cell is the median of %d measurements of %v.\n", r.Machine, r.Rounds, r.Time)
}

// table writes rows in Markdown.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	line(slices.Repeat([]string{"---"}, len(head)))
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

func headed(first string, servers []string) []string {
	head := []string{first}
	for _, s := range servers {
		head = append(head, titles[s])
	}
	return head
}

// requestsTable has the figures of every load on every server.
func (r *report) requestsTable() string {
	var rows [][]string
	for _, load := range slices.Concat(r.loads("commit"), r.loads("heartbeat"), r.loads("fetch"), r.loads("join")) {
		row := []string{"`" + load + "`"}
		for _, s := range order {
			cell := "–"
			if x, ok := r.find(load, s); ok {
				cell = fmt.Sprintf("%s, %s, %s", thousands(x.PerSecond), micros(&x.P99), micros(x.CPU))
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return table(headed("a second, p99, server CPU for each", order), rows)
}

// ratiosTable has Rollcall's figures divided by the others'.
func (r *report) ratiosTable() string {
	var rows [][]string
	for _, load := range slices.Concat(r.loads("commit"), r.loads("heartbeat"), r.loads("fetch"), r.loads("join")) {
		row := []string{"`" + load + "`"}
		for _, s := range order[1:] {
			var parts []string
			for _, of := range []measure{rate, p99, cpu} {
				part := "–"
				if q, ok := r.ratio(load, s, of); ok {
					part = fmt.Sprintf("%.2f", q)
				}
				parts = append(parts, part)
			}
			row = append(row, strings.Join(parts, ", "))
		}
		rows = append(rows, row)
	}
	return table(headed("Rollcall divided by …: a second, p99, CPU", order[1:]), rows)
}

func (r *report) memoryTable() string {
	var rows [][]string
	for _, load := range r.loads("idle-") {
		kind, n, _ := strings.Cut(load, "/")
		row := []string{strings.TrimSuffix(strings.TrimPrefix(kind, "idle-"), "s") + ", of " + n}
		for _, s := range order {
			cell := "–"
			if x, ok := r.find(load, s); ok && x.Memory != nil {
				cell = thousands(*x.Memory) + " bytes"
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return table(headed("resident memory of an idle …", order), rows)
}

func (r *report) startsTable() string {
	var rows [][]string
	for _, s := range r.Starts {
		rows = append(rows, []string{titles[s.Server], seconds(s.Kill), seconds(s.Stop)})
	}
	return table([]string{fmt.Sprintf("ready with %s offsets", thousands(float64(r.Offsets))), "after SIGKILL", "after an orderly stop"}, rows)
}

// An aim is what a ratio, or the time of a start, should be.
type aim struct {
	what  string
	load  string
	peer  string
	of    measure
	least bool // or at most
	limit float64
}

// aims are what Rollcall is improved towards.
func (r *report) aims() []aim {
	aims := []aim{
		{"commits, 64 connections", "commit/64/1", kafkaName, rate, true, 2.5},
		{"commits, 16 connections", "commit/16/1", kafkaName, rate, true, 1.2},
		{"commits, 16 connections with 8 under way", "commit/16/8", kafkaName, rate, true, 4},
		{"commits, 64 connections", "commit/64/1", kafkaSyncName, rate, true, 10},
		{"commits, 64 connections: CPU", "commit/64/1", kafkaName, cpu, false, 1. / 3},
		{"commits, 64 connections: p99", "commit/64/1", kafkaName, p99, false, 1},
		{"heartbeats, 64 connections", "heartbeat/64", kafkaName, rate, true, 1.5},
		{"heartbeats, 64 connections: CPU", "heartbeat/64", kafkaName, cpu, false, 0.4},
		{"heartbeats, 64 connections: p99", "heartbeat/64", kafkaName, p99, false, 1},
	}
	for _, load := range r.loads("join/1000x") {
		aims = append(aims, aim{"1,000 members join at once: time", load, kafkaName, func(x result) *float64 { t := 1 / x.PerSecond; return &t }, false, 0.5})
	}
	return aims
}

func (r *report) aimsTable() string {
	var rows [][]string
	judge := func(what, peer, format string, value float64, known, least bool, limit float64) {
		met, word := "no", "at most"
		if least {
			word = "at least"
		}
		measured := "–"
		if known {
			measured = fmt.Sprintf(format, value)
			if value == limit || (value > limit) == least {
				met = "yes"
			}
		}
		rows = append(rows, []string{what, peer, word + " " + fmt.Sprintf(format, limit), measured, met})
	}
	for _, a := range r.aims() {
		value, known := r.ratio(a.load, a.peer, a.of)
		judge(a.what, "÷ "+titles[a.peer], "%.2f", value, known, a.least, a.limit)
	}
	for _, s := range r.Starts {
		if s.Server == rollcallName {
			judge("ready with "+thousands(float64(r.Offsets))+" offsets", "", "%.2f s", max(s.Kill, s.Stop), true, false, 1)
		}
	}
	return table([]string{"aim", "", "wanted", "measured", "met"}, rows)
}

// write puts the report into performance.md, and its plots and raw figures into
// performance/. What is outside of the generated parts stays.
func (r *report) write(docs string) error {
	path := filepath.Join(docs, "performance.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if page, err = replaceSections(page, r.sections()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	dir := filepath.Join(docs, "performance")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := r.plot(dir); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "results.json"), append(raw, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(path, page, 0o644)
}

// replaceSections puts each text between its marks.
func replaceSections(page []byte, sections map[string]string) ([]byte, error) {
	for name, text := range sections {
		begin, end := fmt.Sprintf("<!-- bench-peers %s -->\n", name), fmt.Sprintf("<!-- end of %s -->\n", name)
		before, rest, ok := bytes.Cut(page, []byte(begin))
		_, after, ok2 := bytes.Cut(rest, []byte(end))
		if !ok || !ok2 {
			return nil, fmt.Errorf("the marks %q and %q are not there", strings.TrimSpace(begin), strings.TrimSpace(end))
		}
		page = slices.Concat(before, []byte(begin), []byte(text), []byte(end), after)
	}
	return page, nil
}

// median of an odd number of values.
func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

// thousands shows a whole number with separators.
func thousands(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// micros shows microseconds in about three digits.
func micros(us *float64) string {
	switch {
	case us == nil, *us == 0: // CPU is counted in steps of 10 ms
		return "–"
	case *us < 100:
		return fmt.Sprintf("%.1f µs", *us)
	case *us < 1000:
		return fmt.Sprintf("%.0f µs", *us)
	case *us < 100_000:
		return fmt.Sprintf("%.1f ms", *us/1000)
	}
	return fmt.Sprintf("%.0f ms", *us/1000)
}

func seconds(s float64) string { return fmt.Sprintf("%.2f s", s) }
