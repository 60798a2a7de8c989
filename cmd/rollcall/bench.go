package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-mq/rollcall/cmd/rollcall/bench"
)

func benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench [flags] [NAME=]HOST:PORT[@PID] ...",
		Short: "Measure servers that speak Kafka's protocol: commits, heartbeats, fetches, group formation",
		Long: `Measure servers that speak Kafka's protocol.

Several servers take turns, round by round, and each result is the median of its
rounds. A server's CPU and memory are measured when its process is on this machine;
it is found by the port, or named with @PID. What a run makes (a topic and groups
called rollcall-bench-...) is deleted at the end. Results come load by load, with
--output json as one object a line.

Loads, with their sizes, in their order:
  idle-connections/N  N silent connections; best on a fresh server, whose memory still grows
  idle-groups/N       N groups of one member and one offset, with nothing to do
  commit/C/D          OffsetCommit of --partitions over C connections, D under way on each
  heartbeat/C         Heartbeat of C members, each with a group and a connection of its own
  fetch/C/G           OffsetFetch over C connections, each for --partitions of G groups
  join/MxG            M members that come at once until their G groups are complete`,
		Example: `  rollcall bench 127.0.0.1:9092
  rollcall bench --loads commit,heartbeat --time 5s rollcall=127.0.0.1:9092 kafka=127.0.0.1:9192`,
	}
	var cfg bench.Config
	f := cmd.Flags()
	f.StringSliceVar(&cfg.Loads, "loads", bench.LoadNames(), "what to measure")
	f.IntVar(&cfg.Rounds, "rounds", 3, "measurements of each load on each server; the idle ones are made once")
	f.DurationVar(&cfg.Time, "time", 2*time.Second, "length of one measurement")
	f.IntSliceVar(&cfg.Connections, "connections", []int{1, 16, 64}, "numbers of connections")
	f.IntSliceVar(&cfg.Depths, "depth", []int{1, 8}, "numbers of commits under way on each connection")
	f.IntVar(&cfg.Partitions, "partitions", 10, "partitions of each commit, and of each group of a fetch")
	f.IntSliceVar(&cfg.FetchGroups, "fetch-groups", []int{1, 100}, "numbers of groups of each fetch")
	joins := f.StringSlice("join", []string{"100x1", "1000x100"}, "sizes of the group formations, `MEMBERSxGROUPS`")
	f.IntVar(&cfg.IdleConnections, "idle-connections", 1000, "number of idle connections")
	f.IntVar(&cfg.IdleGroups, "idle-groups", 1000, "number of idle groups")
	timeout := f.Duration("timeout", time.Hour, "give up after this time")
	format := withOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		targets, err := benchTargets(args)
		if err == nil {
			cfg.Joins, err = parseJoins(*joins)
		}
		if err == nil {
			err = cfg.Validate()
		}
		if err == nil && *timeout <= 0 {
			err = errors.New("--timeout must be more than 0")
		}
		if err != nil {
			return usageError{err}
		}
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), *timeout, fmt.Errorf("not finished after %v", *timeout))
		defer cancel()
		return runBench(ctx, cfg, targets, *format, cmd.OutOrStdout())
	}
	return cmd
}

// benchTargets reads the servers of the command line.
func benchTargets(args []string) ([]bench.Target, error) {
	if len(args) == 0 {
		return nil, errors.New("name a server, for instance: rollcall bench 127.0.0.1:9092")
	}
	seen := map[string]bool{}
	var targets []bench.Target
	for _, arg := range args {
		t, err := bench.ParseTarget(arg)
		if err != nil {
			return nil, err
		}
		if seen[t.Name] {
			return nil, fmt.Errorf("two servers are called %q", t.Name)
		}
		seen[t.Name] = true
		targets = append(targets, t)
	}
	return targets, nil
}

func parseJoins(texts []string) ([]bench.Join, error) {
	var joins []bench.Join
	for _, text := range texts {
		m, g, _ := strings.Cut(text, "x")
		members, err := strconv.Atoi(m)
		groups, err2 := strconv.Atoi(g)
		if err != nil || err2 != nil {
			return nil, fmt.Errorf("--join: %q is not MEMBERSxGROUPS, for instance 1000x100", text)
		}
		joins = append(joins, bench.Join{Members: members, Groups: groups})
	}
	return joins, nil
}

// runBench measures and prints; SIGINT and SIGTERM end it early, but tidily.
func runBench(ctx context.Context, cfg bench.Config, targets []bench.Target, format outputFormat, out io.Writer) error {
	ctx, forget := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer forget()
	failed := 0
	show := tablePrinter(out)
	if format == outputJSON {
		show = jsonPrinter(out)
	}
	err := bench.Run(ctx, cfg, targets, func(results []bench.Result) {
		for _, r := range results {
			if r.Error != "" {
				failed++
			}
		}
		show(results)
	})
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d measurements failed", failed)
	}
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

func jsonPrinter(out io.Writer) func([]bench.Result) {
	encoder := json.NewEncoder(out)
	return func(results []bench.Result) {
		for _, r := range results {
			_ = encoder.Encode(r) // as with a table, nobody may be reading
		}
	}
}

// tablePrinter prints load by load, so with columns of a fixed width.
func tablePrinter(out io.Writer) func([]bench.Result) {
	const widest = 24
	first := true
	return func(results []bench.Result) {
		w := tabwriter.NewWriter(out, widest, 0, 2, ' ', 0)
		if first {
			fmt.Fprintln(w, "LOAD\tSERVER\tRATE\tP50 / P99\tSERVER CPU\tSERVER MEMORY")
			first = false
		}
		for _, r := range results {
			fmt.Fprintf(w, "%s\t%s\t", r.Load, r.Server)
			if r.Error != "" {
				fmt.Fprintf(w, "failed: %s\n", r.Error)
				continue
			}
			fmt.Fprintf(w, "%.0f %s/s\t%s / %s\t%s\t%s\n", r.PerSecond, r.Unit, micros(r.P50), micros(r.P99), benchCPU(r), benchMemory(r))
		}
		_ = w.Flush()
	}
}

// micros shows microseconds in three digits or so.
func micros(us float64) string {
	d := time.Duration(us * 1e3)
	precision := 100 * time.Nanosecond
	for d > 1000*precision {
		precision *= 10
	}
	return d.Round(precision).String()
}

// benchCPU is for each request, or while nothing happens.
func benchCPU(r bench.Result) string {
	switch {
	case r.IdleCPU != nil:
		return fmt.Sprintf("%.1f %% of a core", *r.IdleCPU*100)
	case r.CPU != nil:
		return micros(*r.CPU) + " each"
	}
	return "-"
}

func benchMemory(r bench.Result) string {
	if r.Memory == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f bytes each", *r.Memory)
}
