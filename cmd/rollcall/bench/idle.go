package bench

import (
	"context"
	"time"
)

// idleConnections opens n connections that make one request each, and looks at what
// they cost the server while nothing happens.
func (cfg Config) idleConnections(ctx context.Context, s *server) (sample, error) {
	n := cfg.IdleConnections
	conns := make([]*conn, 0, n)
	defer func() {
		for _, c := range conns {
			c.close()
		}
	}()
	result := sample{latency: &histogram{}}
	before, began := s.meter(), time.Now()
	for range n {
		sent := time.Now()
		c, err := s.dial(ctx, s.addr)
		if err != nil {
			return sample{}, err
		}
		conns = append(conns, c)
		// At version 0, which every server has.
		if _, err := c.apiVersions(0); err != nil {
			return sample{}, err
		}
		result.latency.add(time.Since(sent))
	}
	return result, result.rest(ctx, s, before, began, n, cfg.Time)
}

// rest completes a sample when n things have been made: it waits for d.
func (r *sample) rest(ctx context.Context, s *server, before meter, began time.Time, n int, d time.Duration) error {
	r.perSecond = float64(n) / time.Since(began).Seconds()
	r.cpu = before.used(float64(n))
	resting := s.meter()
	if err := pause(ctx, d); err != nil {
		return err
	}
	r.idleCPU = resting.used(float64(d.Microseconds()))
	r.memory = before.grown(float64(n))
	return nil
}

// idleWorkers is how many connections make idle groups.
const idleWorkers = 64

// idleGroups forms n groups of one member with one committed offset, and looks at what
// they cost the server while nothing happens.
func (cfg Config) idleGroups(ctx context.Context, s *server) (sample, error) {
	n := cfg.IdleGroups
	if err := s.makeTopic(ctx, cfg.Partitions); err != nil {
		return sample{}, err
	}
	groups := s.groupNames("idle", n)
	if err := s.locate(ctx, groups); err != nil {
		return sample{}, err
	}
	members := make([]*member, n)
	latencies := make([]time.Duration, n)
	before, began := s.meter(), time.Now()
	err := s.work(ctx, groups, func(c *conn, i int) error {
		m := &member{conn: c, group: groups[i], session: sessionLong}
		members[i] = m
		begin := time.Now()
		if err := m.join(ctx); err != nil {
			return err
		}
		latencies[i] = time.Since(begin)
		return retry(ctx, m.commitOne)
	})
	if err != nil {
		return sample{}, err
	}
	result := sample{latency: &histogram{}}
	for _, l := range latencies {
		result.latency.add(l)
	}
	if err := result.rest(ctx, s, before, began, n, cfg.Time); err != nil {
		return sample{}, err
	}
	return result, s.work(ctx, groups, func(c *conn, i int) error {
		members[i].conn = c
		return members[i].leave()
	})
}

// commitOne commits one offset as a member.
func (m *member) commitOne() error {
	req := m.server.commitRequest(m.group)
	req.MemberID, req.Generation = m.id, m.generation
	req.Topics[0].Partitions = req.Topics[0].Partitions[:1]
	resp, err := m.do(req)
	if err != nil {
		return err
	}
	return committed(resp)
}

// work calls f for each group with a connection to its coordinator, some at a time.
func (s *server) work(ctx context.Context, groups []string, f func(c *conn, i int) error) error {
	workers := min(idleWorkers, len(groups))
	return inParallel(workers, func(w int) error {
		conns := map[string]*conn{}
		defer func() {
			for _, c := range conns {
				c.close()
			}
		}()
		for i := w; i < len(groups); i += workers {
			at := s.groups[groups[i]]
			if conns[at] == nil {
				c, err := s.dial(ctx, at)
				if err != nil {
					return err
				}
				conns[at] = c
			}
			if err := f(conns[at], i); err != nil {
				return err
			}
		}
		return nil
	})()
}
