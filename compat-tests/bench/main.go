// Command bench measures Rollcall beside its peers in one run, with `rollcall bench`:
// Apache Kafka as it is by default, Apache Kafka flushing every message as Rollcall
// does, and franz-go's kfake, which keeps nothing. It starts and stops them all, on
// loopback, and puts tables and plots into docs/performance.md.
//
//	bench [-docs DIR] [-port N] [-time D] [-rounds N] [-offsets N]
//
// It needs Java 17 and Maven for Kafka, and is made for a machine that does nothing else.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rollcall-mq/rollcall/cmd/rollcall/bench"
)

// options are those of the command line.
type options struct {
	docs            string
	port            int
	time            time.Duration
	rounds, offsets int
}

func main() {
	var o options
	flag.StringVar(&o.docs, "docs", "", "write the results into `DIR`/performance.md and DIR/performance/; without it they are only printed")
	flag.IntVar(&o.port, "port", 14092, "the first of 32 ports; those 10000 above the Kafkas' are used too")
	flag.DurationVar(&o.time, "time", 1500*time.Millisecond, "length of one measurement")
	flag.IntVar(&o.rounds, "rounds", 3, "measurements of each load on each server")
	flag.IntVar(&o.offsets, "offsets", 1_000_000, "offsets to restart with")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	bin, err := os.MkdirTemp("", "rollcall-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	loads, starts := filepath.Join(bin, "loads"), filepath.Join(bin, "starts")
	if err := errors.Join(os.Mkdir(loads, 0o700), os.Mkdir(starts, 0o700)); err != nil {
		return err
	}
	began := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%4.0f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	load := "unknown"
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ = strings.Cut(string(b), " ")
	}
	say("the load of the machine is %s; if that is not about 0, the figures will not be worth much", load)
	say("building")
	if err := build(ctx, bin); err != nil {
		return err
	}
	r := report{Machine: machine(ctx) + "; load before the run " + load, Time: o.time, Rounds: o.rounds, Offsets: o.offsets}
	if r.Results, err = measureLoads(ctx, bin, loads, o, say); err != nil {
		return err
	}
	idle, err := r.measureStarts(ctx, bin, starts, o, say)
	if err != nil {
		return err
	}
	r.Results = append(r.Results, idle...)
	say("done")
	fmt.Println(r.text())
	if o.docs == "" {
		return nil
	}
	return r.write(o.docs)
}

// measureLoads starts all servers and puts every load on them in turn.
func measureLoads(ctx context.Context, bin, dir string, o options, say func(string, ...any)) (results []result, err error) {
	var args []string
	for _, s := range servers(bin, dir, o.port) {
		say("starting %s", s.title())
		if err := s.start(ctx); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, s.stop(false)) }()
		args = append(args, fmt.Sprintf("%s=%s@%d", s.name(), s.addr(), s.pid()))
	}
	for _, step := range []struct {
		what  string
		flags string
		keep  bool
	}{
		{"memory of idle connections, on fresh servers", "--loads idle-connections --idle-connections 5000 --time 2s", true},
		{"warming up", "--loads commit,heartbeat,fetch,join --connections 16 --time 2s --rounds 1", false},
		{"commits and heartbeats", fmt.Sprintf("--loads commit,heartbeat --time %v --rounds %d", o.time, o.rounds), true},
		{"fetches and group formation", fmt.Sprintf("--loads fetch,join --connections 16 --time %v --rounds %d", o.time, o.rounds), true},
	} {
		say("%s", step.what)
		got, err := rollcallBench(ctx, filepath.Join(bin, "rollcall"), append(strings.Fields(step.flags), args...), say)
		if err != nil {
			return nil, err
		}
		if step.keep {
			results = append(results, got...)
		}
	}
	return results, nil
}

// result is a line of `rollcall bench --output json`.
type result = bench.Result

// rollcallBench runs the command and returns what it measured.
func rollcallBench(ctx context.Context, rollcall string, args []string, say func(string, ...any)) ([]result, error) {
	cmd := exec.CommandContext(ctx, rollcall, append([]string{"bench", "--output", "json"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var results []result
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, errors.Join(fmt.Errorf("rollcall bench printed %q", lines.Text()), cmd.Cancel(), cmd.Wait())
		}
		if r.Error != "" {
			say("  %s on %s failed: %s", r.Load, r.Server, r.Error)
		}
		if len(results) == 0 || results[len(results)-1].Load != r.Load {
			say("  %s", r.Load)
		}
		results = append(results, r)
	}
	err = cmd.Wait()
	if err != nil && (ctx.Err() != nil || len(results) == 0) {
		return nil, fmt.Errorf("rollcall bench: %w", err)
	}
	return results, nil // a load that failed is told by its result
}
