package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// LoadNames are the kinds of load, in the order in which they run: the idle ones
// first, as the memory of a process that has been busy hardly grows any more.
func LoadNames() []string {
	return []string{"idle-connections", "idle-groups", "commit", "heartbeat", "fetch", "join"}
}

// load is one way of using a server.
type load struct {
	name, unit string
	run        func(context.Context, *server) (sample, error)
	// once: it is measured in the first round only, as a process does not give the
	// memory back that it has grown by.
	once bool
}

// loads are those of the configuration, in order.
func (cfg Config) loads() []load {
	var ls []load
	add := func(unit string, run func(context.Context, *server) (sample, error), kind string, sizes ...any) {
		name := kind
		for _, size := range sizes {
			name += fmt.Sprint("/", size)
		}
		once := strings.HasPrefix(kind, "idle-")
		if len(cfg.Loads) == 0 || slices.Contains(cfg.Loads, kind) {
			ls = append(ls, load{name, unit, run, once})
		}
	}
	add("connections", cfg.idleConnections, "idle-connections", cfg.IdleConnections)
	add("groups", cfg.idleGroups, "idle-groups", cfg.IdleGroups)
	for _, depth := range cfg.Depths {
		for _, n := range cfg.Connections {
			add("requests", func(ctx context.Context, s *server) (sample, error) { return cfg.commits(ctx, s, n, depth) }, "commit", n, depth)
		}
	}
	for _, n := range cfg.Connections {
		add("requests", func(ctx context.Context, s *server) (sample, error) { return heartbeats(ctx, s, n, cfg.Time) }, "heartbeat", n)
	}
	for _, groups := range cfg.FetchGroups {
		for _, n := range cfg.Connections {
			add("requests", func(ctx context.Context, s *server) (sample, error) { return cfg.fetches(ctx, s, n, groups) }, "fetch", n, groups)
		}
	}
	for _, j := range cfg.Joins {
		add("members", func(ctx context.Context, s *server) (sample, error) { return formGroups(ctx, s, j) }, "join", fmt.Sprintf("%dx%d", j.Members, j.Groups))
	}
	return ls
}

// groupNames returns n names.
func (s *server) groupNames(kind string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = s.group(kind, i)
	}
	return names
}

// commits is OffsetCommit over n connections with a group each.
func (cfg Config) commits(ctx context.Context, s *server, n, depth int) (sample, error) {
	if err := s.makeTopic(ctx, cfg.Partitions); err != nil {
		return sample{}, err
	}
	groups := s.groupNames("commit", n)
	conns, closeAll, err := s.connect(ctx, groups)
	if err != nil {
		return sample{}, err
	}
	defer closeAll()
	reqs := make([]kmsg.Request, n)
	for i, g := range groups {
		reqs[i] = s.commitRequest(g)
	}
	return closedLoop(ctx, s, conns, reqs, depth, cfg.Time, committed)
}

// commitRequest commits an offset of each partition for a group without members.
func (s *server) commitRequest(group string) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = group, -1
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic = s.topic
	for p := range int32(s.partitions) {
		partition := kmsg.NewOffsetCommitRequestTopicPartition()
		partition.Partition, partition.Offset = p, 123_456
		topic.Partitions = append(topic.Partitions, partition)
	}
	req.Topics = []kmsg.OffsetCommitRequestTopic{topic}
	return req
}

func committed(resp kmsg.Response) error {
	for _, t := range resp.(*kmsg.OffsetCommitResponse).Topics {
		for _, p := range t.Partitions {
			if err := codeError(p.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}

// fetches is OffsetFetch over n connections, each for the offsets of some groups.
func (cfg Config) fetches(ctx context.Context, s *server, n, each int) (sample, error) {
	if err := s.makeTopic(ctx, cfg.Partitions); err != nil {
		return sample{}, err
	}
	lists, err := s.neighbours(ctx, n, each)
	if err != nil {
		return sample{}, err
	}
	firsts := make([]string, n)
	for i, list := range lists {
		firsts[i] = list[0]
	}
	conns, closeAll, err := s.connect(ctx, firsts)
	if err != nil {
		return sample{}, err
	}
	defer closeAll()
	reqs := make([]kmsg.Request, n)
	for i, list := range lists {
		if reqs[i], err = s.fetchRequest(list); err != nil {
			return sample{}, err
		}
	}
	err = inParallel(n, func(i int) error { return conns[i].commitAll(ctx, lists[i]) })()
	if err != nil {
		return sample{}, err
	}
	return closedLoop(ctx, s, conns, reqs, 1, cfg.Time, fetched)
}

// neighbours returns n lists of groups, each with one coordinator.
func (s *server) neighbours(ctx context.Context, n, each int) ([][]string, error) {
	var whole [][]string
	parts := map[string][]string{}
	for i := 0; len(whole) < n; i++ {
		g := s.group("fetch", i)
		if err := s.locate(ctx, []string{g}); err != nil {
			return nil, err
		}
		at := s.groups[g]
		if parts[at] = append(parts[at], g); len(parts[at]) == each {
			whole = append(whole, parts[at])
			parts[at] = nil
		}
	}
	return whole, nil
}

// commitAll commits offsets for groups.
func (c *conn) commitAll(ctx context.Context, groups []string) error {
	for _, g := range groups {
		err := retry(ctx, func() error {
			resp, err := c.do(c.server.commitRequest(g))
			if err != nil {
				return err
			}
			return committed(resp)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// fetchRequest asks for the offsets of groups; of more than one since KIP-709.
func (s *server) fetchRequest(groups []string) (*kmsg.OffsetFetchRequest, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	if err := s.version(req); err != nil {
		return nil, err
	}
	partitions := make([]int32, s.partitions)
	for p := range partitions {
		partitions[p] = int32(p)
	}
	if req.Version < 8 {
		if len(groups) > 1 {
			return nil, fmt.Errorf("the server speaks OffsetFetch up to %d, of several groups only since 8", req.Version)
		}
		req.Group, req.Topics = groups[0], []kmsg.OffsetFetchRequestTopic{{Topic: s.topic, Partitions: partitions}}
		return req, nil
	}
	for _, g := range groups {
		group := kmsg.NewOffsetFetchRequestGroup()
		group.Group, group.Topics = g, []kmsg.OffsetFetchRequestGroupTopic{{Topic: s.topic, Partitions: partitions}}
		req.Groups = append(req.Groups, group)
	}
	return req, nil
}

// fetched wants every offset to be there.
func fetched(answer kmsg.Response) error {
	resp := answer.(*kmsg.OffsetFetchResponse)
	if err := codeError(resp.ErrorCode); err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := there(p.ErrorCode, p.Offset); err != nil {
				return err
			}
		}
	}
	for _, g := range resp.Groups {
		if err := codeError(g.ErrorCode); err != nil {
			return err
		}
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				if err := there(p.ErrorCode, p.Offset); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// there wants an offset that was committed.
func there(code int16, offset int64) error {
	if err := codeError(code); err != nil {
		return err
	}
	if offset < 0 {
		return fmt.Errorf("a committed offset is %d", offset)
	}
	return nil
}

// heartbeats of n members that have a group and a connection each.
func heartbeats(ctx context.Context, s *server, n int, d time.Duration) (sample, error) {
	groups := s.groupNames("heartbeat", n)
	conns, closeAll, err := s.connect(ctx, groups)
	if err != nil {
		return sample{}, err
	}
	defer closeAll()
	members := make([]*member, n)
	err = inParallel(n, func(i int) error {
		members[i] = &member{conn: conns[i], group: groups[i], session: sessionShort}
		return members[i].join(ctx)
	})()
	if err != nil {
		return sample{}, err
	}
	reqs := make([]kmsg.Request, n)
	for i, m := range members {
		reqs[i] = m.heartbeatRequest()
	}
	result, err := closedLoop(ctx, s, conns, reqs, 1, d, func(resp kmsg.Response) error {
		return codeError(resp.(*kmsg.HeartbeatResponse).ErrorCode)
	})
	if err != nil {
		return sample{}, err
	}
	return result, inParallel(n, func(i int) error { return members[i].leave() })()
}
