package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

const (
	startPartitions = 100 // offsets of each group
	startTopic      = "start"
	startOffset     = 7
	startWriters    = 64
	startRounds     = 3
	// startSample is how many groups must answer before a server counts as ready:
	// enough to have some in each partition of the offsets topic.
	startSample = 400
)

// start is how long a server took until it was ready, in seconds, with its offsets.
type start struct {
	Server string  `json:"server"`
	Kill   float64 `json:"after_sigkill_s"`
	Stop   float64 `json:"after_stop_s"`
}

// measureStarts restarts servers that have many offsets, one server at a time. Before,
// while they are fresh, it returns what they need for idle groups.
func (r *report) measureStarts(ctx context.Context, bin, dir string, o options, say func(string, ...any)) (idle []result, err error) {
	groups := make([]string, max(o.offsets/startPartitions, 1))
	for i := range groups {
		groups[i] = fmt.Sprintf("start-%d", i)
	}
	for _, s := range servers(bin, dir, o.port)[:2] { // Rollcall, and Kafka as it is by default
		say("idle groups, and restarts with %d offsets: %s", len(groups)*startPartitions, s.title())
		one, got, err := restarts(ctx, filepath.Join(bin, "rollcall"), s, groups, say)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name(), err)
		}
		r.Starts, idle = append(r.Starts, one), append(idle, got...)
	}
	return idle, nil
}

func restarts(ctx context.Context, rollcall string, s server, groups []string, say func(string, ...any)) (times start, idle []result, err error) {
	times.Server = s.name()
	if err := s.start(ctx); err != nil {
		return times, nil, err
	}
	running := true
	defer func() {
		if running {
			err = errors.Join(err, s.stop(false))
		}
	}()
	args := []string{"--loads", "idle-groups", "--idle-groups", "5000", "--time", "2s", fmt.Sprintf("%s=%s@%d", s.name(), s.addr(), s.pid())}
	if idle, err = rollcallBench(ctx, rollcall, args, say); err != nil {
		return times, nil, err
	}
	if err := fill(ctx, s, groups); err != nil {
		return times, nil, err
	}
	for _, how := range []struct {
		kill bool
		into *float64
	}{{true, &times.Kill}, {false, &times.Stop}} {
		var took []float64
		for range startRounds {
			running = false
			if err := s.stop(how.kill); err != nil {
				return times, nil, err
			}
			began := time.Now()
			if err := s.start(ctx); err != nil {
				return times, nil, err
			}
			running = true
			if err := ready(ctx, s, groups); err != nil {
				return times, nil, err
			}
			took = append(took, time.Since(began).Seconds())
		}
		*how.into = median(took)
	}
	return times, idle, nil
}

// admin returns a client that asks again at once when a server is not ready.
func admin(s server) (*kadm.Client, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.addr()), kgo.RetryBackoffFn(func(int) time.Duration { return 5 * time.Millisecond }),
		kgo.RequestRetries(10_000), kgo.RetryTimeout(2*time.Minute))
	if err != nil {
		return nil, err
	}
	return kadm.NewClient(cl), nil
}

// fill commits an offset of each partition for each group.
func fill(ctx context.Context, s server, groups []string) error {
	adm, err := admin(s)
	if err != nil {
		return err
	}
	defer adm.Close()
	if resp, err := adm.CreateTopic(ctx, startPartitions, 1, nil, startTopic); err != nil || resp.Err != nil {
		return errors.Join(err, resp.Err)
	}
	offsets := kadm.Offsets{}
	for p := range int32(startPartitions) {
		offsets.AddOffset(startTopic, p, startOffset, -1)
	}
	g, ctx := errgroup.WithContext(ctx)
	for w := range startWriters {
		g.Go(func() error {
			for i := w; i < len(groups); i += startWriters {
				if err := commit(ctx, adm, groups[i], offsets); err != nil {
					return fmt.Errorf("commit for %s: %w", groups[i], err)
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// commit tries again while the new topic is not known everywhere.
func commit(ctx context.Context, adm *kadm.Client, group string, offsets kadm.Offsets) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); ; {
		err := adm.CommitAllOffsets(ctx, group, offsets)
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		<-tick.C
	}
}

// ready waits until groups in every part of the server answer with their offsets.
func ready(ctx context.Context, s server, groups []string) error {
	adm, err := admin(s)
	if err != nil {
		return err
	}
	defer adm.Close()
	var some []string
	for i := range min(startSample, len(groups)) {
		some = append(some, groups[i*len(groups)/min(startSample, len(groups))])
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		err := restored(adm.FetchManyOffsets(ctx, some...))
		// Not every code that says "not yet" is tried again by the client.
		if !kerr.IsRetriable(err) || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		<-tick.C
	}
}

// restored wants all offsets to be as they were committed.
func restored(fetched kadm.FetchOffsetsResponses) error {
	for group, resp := range fetched {
		if resp.Err != nil {
			return fmt.Errorf("offsets of %s: %w", group, resp.Err)
		}
		for p := range int32(startPartitions) {
			if o, ok := resp.Fetched.Lookup(startTopic, p); !ok || o.At != startOffset {
				return fmt.Errorf("the offset of partition %d in %s is %d after a restart, want %d", p, group, o.At, startOffset)
			}
		}
	}
	return nil
}
