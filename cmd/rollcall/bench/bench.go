package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Limits of a run.
const (
	RoundsMax      = 100
	TimeMax        = 10 * time.Minute // of one measurement
	ConnectionsMax = 10_000
	DepthMax       = 64
	PartitionsMax  = 1000
	GroupsMax      = 100_000
	MembersMax     = 10_000
)

// Join is how many members form how many groups at the same time.
type Join struct{ Members, Groups int }

// Config says what is measured.
type Config struct {
	// Loads are the names of the loads, of [LoadNames]; all if there are none.
	Loads []string
	// Rounds is how often each load is measured on each server, but for the idle
	// ones, which are measured once.
	Rounds int
	// Time is the length of one measurement.
	Time time.Duration
	// Connections are the numbers of connections to measure commits, heartbeats and
	// fetches with, Depths the numbers of commits under way on each of them.
	Connections, Depths []int
	// Partitions is how many each commit names and each fetch asks for of a group.
	Partitions int
	// FetchGroups are the numbers of groups that one OffsetFetch asks for.
	FetchGroups []int
	// Joins are the sizes of the group formations.
	Joins []Join
	// IdleConnections and IdleGroups are how many of them are looked at.
	IdleConnections, IdleGroups int
}

// Validate says what is wrong with the configuration, in the words of the command.
func (cfg *Config) Validate() error {
	for _, name := range cfg.Loads {
		if !slices.Contains(LoadNames(), name) {
			return fmt.Errorf("--loads: there is no load %q, only %s", name, strings.Join(LoadNames(), ", "))
		}
	}
	if cfg.Time < 10*time.Millisecond || cfg.Time > TimeMax {
		return fmt.Errorf("--time is %v, but must be from 10ms to %v", cfg.Time, TimeMax)
	}
	for _, v := range []struct {
		flag   string
		values []int
		most   int
	}{
		{"rounds", []int{cfg.Rounds}, RoundsMax},
		{"connections", cfg.Connections, ConnectionsMax},
		{"depth", cfg.Depths, DepthMax},
		{"partitions", []int{cfg.Partitions}, PartitionsMax},
		{"fetch-groups", cfg.FetchGroups, PartitionsMax},
		{"idle-connections", []int{cfg.IdleConnections}, ConnectionsMax},
		{"idle-groups", []int{cfg.IdleGroups}, GroupsMax},
	} {
		for _, n := range v.values {
			if n < 1 || n > v.most {
				return fmt.Errorf("--%s is %d, but must be from 1 to %d", v.flag, n, v.most)
			}
		}
	}
	for _, j := range cfg.Joins {
		if j.Groups < 1 || j.Members < j.Groups || j.Members > MembersMax {
			return fmt.Errorf("--join is %dx%d, but must be MEMBERSxGROUPS with 1 to %d members and no more groups than members", j.Members, j.Groups, MembersMax)
		}
	}
	return nil
}

// Result is what was measured of one load on one server: medians over the rounds.
type Result struct {
	// Load is its name and sizes: commit/16/8.
	Load   string `json:"load"`
	Server string `json:"server"`
	// Rounds is how many measurements succeeded.
	Rounds int `json:"rounds"`
	// Unit is what PerSecond counts: requests, members, connections or groups.
	Unit      string  `json:"unit"`
	PerSecond float64 `json:"per_second"`
	// P50 and P99 are quantiles of the latency in microseconds: of a request, or, of
	// group formations, until the group of a member is complete.
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
	// CPU is what the server used for each, in microseconds; nil if it is not known.
	CPU *float64 `json:"server_cpu_us,omitempty"`
	// Memory is by how many bytes the server's resident memory grew for each idle
	// connection or group; IdleCPU what they cost it together, in cores.
	Memory  *float64 `json:"server_bytes,omitempty"`
	IdleCPU *float64 `json:"server_idle_cores,omitempty"`
	// Error is why a measurement failed; there are no further rounds then.
	Error string `json:"error,omitempty"`
}

// Run measures every load on every target. Each finished load is given to done, with
// the results in the order of the targets. The error says that the run could not go
// on; a load that fails on a server is reported in its result.
func Run(ctx context.Context, cfg Config, targets []Target, done func([]Result)) (err error) {
	servers := make([]*server, len(targets))
	defer func() { err = errors.Join(err, cleanUp(ctx, servers)) }()
	for i, t := range targets {
		if servers[i], err = open(ctx, t); err != nil {
			return err
		}
	}
	for _, l := range cfg.loads() {
		results := measure(ctx, cfg, l, servers)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		done(results)
	}
	return nil
}

// cleanUp deletes what the run has made, also after an interruption.
func cleanUp(ctx context.Context, servers []*server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerMax)
	defer cancel()
	var errs []error
	for _, s := range servers {
		if s != nil {
			errs = append(errs, s.cleanUp(ctx))
		}
	}
	return errors.Join(errs...)
}

// measure runs a load on the servers in turn; who is first changes with the round.
func measure(ctx context.Context, cfg Config, l load, servers []*server) []Result {
	rounds := cfg.Rounds
	if l.once {
		rounds = 1
	}
	samples := make([][]sample, len(servers))
	failed := make([]string, len(servers))
	for round := range rounds {
		for k := range servers {
			i := (round + k) % len(servers)
			if failed[i] != "" || ctx.Err() != nil {
				continue
			}
			s, err := l.run(ctx, servers[i])
			if err != nil {
				failed[i] = strings.ReplaceAll(err.Error(), "\n", "; ")
				continue
			}
			samples[i] = append(samples[i], s)
		}
	}
	results := make([]Result, len(servers))
	for i, s := range servers {
		results[i] = summarize(samples[i])
		results[i].Load, results[i].Unit, results[i].Server, results[i].Error = l.name, l.unit, s.name, failed[i]
	}
	return results
}

// sample is one measurement. What is not known or makes no sense is nil.
type sample struct {
	perSecond            float64
	latency              *histogram
	cpu, memory, idleCPU *float64
}

func summarize(samples []sample) Result {
	if len(samples) == 0 {
		return Result{}
	}
	optional := func(of func(sample) *float64) *float64 {
		for _, s := range samples {
			if of(s) == nil {
				return nil
			}
		}
		m := median(samples, func(s sample) float64 { return *of(s) })
		return &m
	}
	return Result{
		Rounds:    len(samples),
		PerSecond: median(samples, func(s sample) float64 { return s.perSecond }),
		P50:       median(samples, func(s sample) float64 { return s.latency.quantile(0.50) }),
		P99:       median(samples, func(s sample) float64 { return s.latency.quantile(0.99) }),
		CPU:       optional(func(s sample) *float64 { return s.cpu }),
		Memory:    optional(func(s sample) *float64 { return s.memory }),
		IdleCPU:   optional(func(s sample) *float64 { return s.idleCPU }),
	}
}

// median is the middle one, or the mean of the two in the middle.
func median(samples []sample, of func(sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
