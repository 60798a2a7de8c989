// Command bench puts load on Kafka-compatible servers, in turn and in one run, and
// prints medians: requests a second, latency, and the server's CPU for each request.
//
//	bench [-time 3s] [-rounds 3] [-loads commit,heartbeat,...] NAME=ADDR[@PID] ...
//
// A load encodes its requests once, so that the client does not become the limit.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// target is one server under test; pid is 0 if its CPU cannot be seen.
type target struct {
	name, addr string
	pid        int
}

// result is one measurement of one load on one target.
type result struct {
	perSecond float64
	p50, p99  time.Duration
	cpu       time.Duration // of the server, for each request; 0 if not known
}

// load is one way of using a server.
type load struct {
	name string
	run  func(t target, d time.Duration) (result, error)
}

func loads() []load {
	var ls []load
	for _, depth := range []int{1, 8} {
		for _, conns := range []int{1, 16, 64} {
			name := fmt.Sprintf("commit/%d/%d", conns, depth)
			ls = append(ls, load{name, func(t target, d time.Duration) (result, error) { return commits(t, conns, depth, d) }})
		}
	}
	for _, conns := range []int{1, 16, 64} {
		name := fmt.Sprintf("heartbeat/%d", conns)
		ls = append(ls, load{name, func(t target, d time.Duration) (result, error) { return heartbeats(t, conns, d) }})
	}
	ls = append(ls, load{"fetch/16", func(t target, d time.Duration) (result, error) { return fetches(t, 16, d) }})
	ls = append(ls, load{"join/1000x100", func(t target, _ time.Duration) (result, error) { return joinStorm(t, 1000, 100) }})
	return ls
}

func main() {
	duration := flag.Duration("time", 3*time.Second, "length of each measurement")
	rounds := flag.Int("rounds", 3, "measurements of each load on each target")
	only := flag.String("loads", "", "prefixes of the loads to run, separated by commas (all)")
	flag.Parse()
	var targets []target
	for _, arg := range flag.Args() {
		t, err := parseTarget(arg)
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(2)
		}
		targets = append(targets, t)
	}
	if len(targets) == 0 {
		flag.Usage()
		os.Exit(2)
	}
	fmt.Println("| load | server | requests/s | p50 | p99 | CPU/request |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, l := range loads() {
		if *only == "" || slices.ContainsFunc(strings.Split(*only, ","), func(p string) bool { return strings.HasPrefix(l.name, p) }) {
			measure(l, targets, *rounds, *duration)
		}
	}
}

func parseTarget(arg string) (target, error) {
	name, addr, ok := strings.Cut(arg, "=")
	if !ok {
		return target{}, fmt.Errorf("%q is not NAME=ADDR or NAME=ADDR@PID", arg)
	}
	t := target{name: name, addr: addr}
	if a, pid, ok := strings.Cut(addr, "@"); ok {
		n, err := strconv.Atoi(pid)
		if err != nil {
			return target{}, fmt.Errorf("%q: the pid is not a number", arg)
		}
		t.addr, t.pid = a, n
	}
	return t, nil
}

// measure runs a load on the targets in turn and prints each one's medians.
func measure(l load, targets []target, rounds int, d time.Duration) {
	results := make([][]result, len(targets))
	for range rounds {
		for i, t := range targets {
			r, err := l.run(t, d)
			if err != nil {
				fmt.Fprintf(os.Stderr, "bench: %s on %s: %v\n", l.name, t.name, err)
				continue
			}
			results[i] = append(results[i], r)
		}
	}
	for i, t := range targets {
		if rs := results[i]; len(rs) > 0 {
			fmt.Printf("| %s | %s | %.0f | %v | %v | %v |\n", l.name, t.name,
				median(rs, func(r result) float64 { return r.perSecond }),
				time.Duration(median(rs, func(r result) float64 { return float64(r.p50) })).Round(time.Microsecond),
				time.Duration(median(rs, func(r result) float64 { return float64(r.p99) })).Round(time.Microsecond),
				time.Duration(median(rs, func(r result) float64 { return float64(r.cpu) })).Round(100*time.Nanosecond))
		}
	}
}

func median(rs []result, of func(result) float64) float64 {
	vs := make([]float64, len(rs))
	for i, r := range rs {
		vs[i] = of(r)
	}
	slices.Sort(vs)
	return vs[len(vs)/2]
}

// cpuTime is what a process has used so far, from /proc.
func cpuTime(pid int) time.Duration {
	if pid == 0 {
		return 0
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The fields after the command, which is in parentheses and may hold spaces.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux that Go runs on
	return time.Duration(user+system) * tick
}
