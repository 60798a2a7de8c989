// Sim is an exact simulation of a coordinator: its router, shards, machines and log,
// the connections to it and its clients run on one goroutine, driven by a seed. Delays,
// broken connections, duplicates, reordering, crashes, slow, full and failing disks
// come as the seed says, and the same seed gives the same run, byte for byte. What the
// clients saw is judged by package history.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	o := Options{}
	flag.Uint64Var(&o.Seed, "seed", 1, "the first seed")
	n := flag.Uint64("n", 1, "how many seeds to run, from the first on")
	flag.IntVar(&o.Steps, "steps", 1_000_000, "end each run after so many steps")
	flag.IntVar(&o.Groups, "groups", 2, "groups with members")
	flag.IntVar(&o.Writers, "writers", 4, "writers of groups without")
	without := flag.String("without", "", "kinds of faults that do not happen, of "+strings.Join(faults, ","))
	verbose := flag.Bool("v", false, "print each seed before it runs")
	trace := flag.String("trace", "", "write the trace of each run to this file")
	flag.Parse()
	o.Without = map[string]bool{}
	for _, f := range strings.FieldsFunc(*without, func(r rune) bool { return r == ',' }) {
		if !slices.Contains(faults, f) {
			fmt.Fprintf(os.Stderr, "sim: no faults of kind %q; there are %s\n", f, strings.Join(faults, ", "))
			os.Exit(2)
		}
		o.Without[f] = true
	}
	begin := time.Now()
	var total Result
	undecided := 0
	for range *n {
		if *verbose {
			fmt.Println("seed", o.Seed)
		}
		r := Run(o)
		if *trace != "" {
			if err := os.WriteFile(*trace, r.Trace, 0o644); err != nil {
				fmt.Fprintln(os.Stderr, "sim:", err)
				os.Exit(2)
			}
		}
		if r.Err != nil {
			report(o, r)
			os.Exit(1)
		}
		total.Events += r.Events
		total.Commits += r.Commits
		total.Crashes += r.Crashes
		undecided += r.History.Undecided
		o.Seed++
	}
	if undecided > 0 {
		fmt.Printf("%d groups were judged partition by partition only, as the search took too long\n", undecided)
	}
	seeds := fmt.Sprint("seed ", o.Seed-1)
	if *n > 1 {
		seeds = fmt.Sprintf("seeds %d to %d, in %v", o.Seed-*n, o.Seed-1, time.Since(begin).Round(time.Second))
	}
	fmt.Printf("%s: %d events, %d commits, %d crashes\n", seeds, total.Events, total.Commits, total.Crashes)
}

// report says what is wrong, leaves what is needed to see it in files, and looks for a
// smaller run that shows it.
func report(o Options, r Result) {
	fmt.Printf("seed %d: %v\n", o.Seed, r.Err)
	small, r := shrink(o, r, Run)
	fmt.Printf("the smallest run found:\n%v\n", r.Err)
	dir := os.TempDir()
	trace, hist := filepath.Join(dir, fmt.Sprintf("sim-%d.trace", o.Seed)), filepath.Join(dir, fmt.Sprintf("sim-%d.history", o.Seed))
	if err := os.WriteFile(trace, r.Trace, 0o644); err != nil {
		fmt.Println(err)
	}
	if err := r.History.Save(hist); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("trace %s, history %s\nagain: go run ./sim %s\n", trace, hist, small.flags())
	fmt.Printf("seed %d failed: %d events, %d commits, %d crashes\n", o.Seed, r.Events, r.Commits, r.Crashes)
}

// flags are the options on the command line.
func (o Options) flags() string {
	s := fmt.Sprintf("-seed %d -steps %d -groups %d -writers %d", o.Seed, o.Steps, o.Groups, o.Writers)
	var without []string
	for _, f := range faults {
		if o.Without[f] {
			without = append(without, f)
		}
	}
	if len(without) > 0 {
		s += " -without " + strings.Join(without, ",")
	}
	return s
}

// shrink leaves out what the failure does not need: kinds of faults, groups, writers,
// and the end of the run. Everything else changes with each, so it is the same kind of
// failure at best.
func shrink(o Options, r Result, run func(Options) Result) (Options, Result) {
	try := func(smaller Options) bool {
		again := run(smaller)
		if again.Err != nil {
			o, r = smaller, again
		}
		return again.Err != nil
	}
	o.Steps = min(o.Steps, r.Events)
	for _, f := range faults {
		s := o
		s.Without = map[string]bool{f: true}
		for f := range o.Without {
			s.Without[f] = true
		}
		try(s)
	}
	for _, change := range []func(*Options){
		func(o *Options) { o.Writers = 0 },
		func(o *Options) { o.Groups = 0 },
		func(o *Options) { o.Writers = min(o.Writers, 2) },
		func(o *Options) { o.Groups = min(o.Groups, 1) },
	} {
		s := o
		change(&s)
		if s.flags() != o.flags() {
			try(s)
		}
	}
	for step := o.Steps / 2; step > 0; step /= 2 {
		for s := o; s.Steps > step; s = o {
			if s.Steps -= step; !try(s) {
				break
			}
		}
	}
	return o, r
}
