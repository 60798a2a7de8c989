package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Target names a server to measure.
type Target struct {
	// Name is what results call it.
	Name string
	// Addr is HOST:PORT of any of its listeners.
	Addr string
	// PID is its process on this machine; 0: look for it.
	PID int
}

// ParseTarget reads [NAME=]HOST:PORT[@PID].
func ParseTarget(text string) (Target, error) {
	name, rest, named := strings.Cut(text, "=")
	if !named {
		name, rest = "", text
	}
	addr, pidText, hasPID := strings.Cut(rest, "@")
	host, port, err := net.SplitHostPort(addr)
	if _, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || host == "" || named && name == "" {
		return Target{}, fmt.Errorf("%q is not [NAME=]HOST:PORT[@PID]", text)
	}
	t := Target{Name: name, Addr: addr}
	if name == "" {
		t.Name = addr
	}
	if hasPID {
		if t.PID, err = strconv.Atoi(pidText); err != nil || t.PID < 1 {
			return Target{}, fmt.Errorf("%q: %q is not the id of a process", text, pidText)
		}
	}
	return t, nil
}

// The keys of the requests in use.
const (
	offsetCommitKey    = 8
	offsetFetchKey     = 9
	findCoordinatorKey = 10
	joinGroupKey       = 11
	heartbeatKey       = 12
	leaveGroupKey      = 13
	syncGroupKey       = 14
	apiVersionsKey     = 18
	createTopicsKey    = 19
	deleteTopicsKey    = 20
	deleteGroupsKey    = 42
)

// versions is a range of versions, both ends in it.
type versions struct{ low, high int16 }

// spoken are the versions that this package can use: offsets are named by topic name,
// not by id, and are kept by the group coordinator.
var spoken = map[int16]versions{
	offsetCommitKey: {2, 9}, offsetFetchKey: {1, 9}, findCoordinatorKey: {0, 6}, joinGroupKey: {0, 9}, heartbeatKey: {0, 4},
	leaveGroupKey: {0, 5}, syncGroupKey: {0, 5}, createTopicsKey: {0, 7}, deleteTopicsKey: {0, 5}, deleteGroupsKey: {0, 2},
}

// server is a target during a run.
type server struct {
	name, addr string
	process    *process
	// run is part of the names of everything that is made.
	run string
	// versions are what ApiVersions says.
	versions map[int16]versions

	// groups has every group that was used, with its coordinator.
	groups map[string]string
	// joins counts group formations, so that each has groups of its own.
	joins int
	// topic is the one of the commits, empty until it is needed; partitions how many it has.
	topic      string
	partitions int
}

// open makes contact with a target.
func open(ctx context.Context, t Target) (*server, error) {
	s := &server{
		name: t.Name, addr: t.Addr, run: "rollcall-bench-" + strconv.FormatInt(time.Now().UnixNano(), 36),
		groups: map[string]string{},
	}
	if err := s.agree(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	if t.PID == 0 {
		s.process = findProcess(t.Addr)
		return s, nil
	}
	var err error
	if s.process, err = openProcess(t.PID); err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	return s, nil
}

// agree asks for the server's versions, at version 3 and, as KIP-511 wants it, at 0 of
// who does not know that. Servers older than that close the connection.
func (s *server) agree(ctx context.Context) error {
	var failure error
	for _, version := range []int16{3, 0} {
		c, err := s.dial(ctx, s.addr)
		if err != nil {
			return err
		}
		resp, err := c.apiVersions(version)
		c.close()
		if err == nil {
			s.versions = map[int16]versions{}
			for _, k := range resp.ApiKeys {
				s.versions[k.ApiKey] = versions{k.MinVersion, k.MaxVersion}
			}
			return nil
		}
		failure = err
	}
	return fmt.Errorf("%s does not answer ApiVersions as a Kafka server does: %w", s.addr, failure)
}

func (c *conn) apiVersions(version int16) (*kmsg.ApiVersionsResponse, error) {
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = version, "rollcall-bench", "1"
	b, err := c.exchange(encode(req))
	if err != nil {
		return nil, err
	}
	if len(b) >= 2 && (b[0] != 0 || b[1] != 0) { // the code comes first in every version
		return nil, codeError(int16(b[0])<<8 | int16(b[1]))
	}
	resp, err := decode(req, b)
	if err != nil {
		return nil, err
	}
	return resp.(*kmsg.ApiVersionsResponse), nil
}

// version sets the highest version of a request that both sides speak.
func (s *server) version(req kmsg.Request) error {
	name := kmsg.NameForKey(req.Key())
	theirs, ok := s.versions[req.Key()]
	if !ok {
		return fmt.Errorf("the server does not support %s", name)
	}
	ours := spoken[req.Key()]
	v := min(theirs.high, ours.high)
	if v < max(theirs.low, ours.low) {
		return fmt.Errorf("the server speaks %s %d to %d, this command %d to %d", name, theirs.low, theirs.high, ours.low, ours.high)
	}
	req.SetVersion(v)
	return nil
}

// codeError is nil for code 0.
func codeError(code int16) error { return kerr.ErrorForCode(code) }

// patience is how long a server may need until it serves a new group or topic.
const patience = 20 * time.Second

// retry repeats f while it fails as a server does that is not ready yet.
func retry(ctx context.Context, f func() error) error {
	for deadline := time.Now().Add(patience); ; {
		err := f()
		if !slices.ContainsFunc([]error{
			kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator,
			kerr.UnknownTopicOrPartition, // for a moment after it was made
		}, func(e error) bool { return errors.Is(err, e) }) || time.Now().After(deadline) {
			return err
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// pause waits, or returns why ctx ended.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// group returns the name of a group.
func (s *server) group(kind string, i int) string { return fmt.Sprintf("%s-%s-%d", s.run, kind, i) }

// locate makes sure that the coordinators of groups are known.
func (s *server) locate(ctx context.Context, groups []string) error {
	unknown := slices.DeleteFunc(slices.Clone(groups), func(g string) bool { return s.groups[g] != "" })
	if len(unknown) == 0 {
		return nil
	}
	c, err := s.dial(ctx, s.addr)
	if err != nil {
		return err
	}
	defer c.close()
	for _, g := range unknown {
		if err := retry(ctx, func() error { return c.locate(g) }); err != nil {
			return fmt.Errorf("coordinator of %s: %w", g, err)
		}
	}
	return nil
}

func (c *conn) locate(group string) error {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKey, req.CoordinatorKeys = group, []string{group}
	answer, err := c.do(req)
	if err != nil {
		return err
	}
	resp := answer.(*kmsg.FindCoordinatorResponse)
	code, host, port := resp.ErrorCode, resp.Host, resp.Port
	if resp.Version >= 4 && len(resp.Coordinators) == 1 {
		one := resp.Coordinators[0]
		code, host, port = one.ErrorCode, one.Host, one.Port
	}
	if err := codeError(code); err != nil {
		return err
	}
	c.server.groups[group] = net.JoinHostPort(host, strconv.Itoa(int(port)))
	return nil
}

// connect opens a connection to the coordinator of each group.
func (s *server) connect(ctx context.Context, groups []string) (conns []*conn, closeAll func(), err error) {
	closeAll = func() {
		for _, c := range conns {
			c.close()
		}
	}
	if err := s.locate(ctx, groups); err != nil {
		return nil, nil, err
	}
	for _, g := range groups {
		c, err := s.dial(ctx, s.groups[g])
		if err != nil {
			closeAll()
			return nil, nil, fmt.Errorf("coordinator of %s: %w", g, err)
		}
		conns = append(conns, c)
	}
	return conns, closeAll, nil
}

// meter looks at the server's process, if that does all of the work.
func (s *server) meter() meter {
	var nodes []string
	for _, addr := range s.groups {
		if !slices.Contains(nodes, addr) {
			nodes = append(nodes, addr)
		}
	}
	if len(nodes) > 1 {
		return meter{}
	}
	return s.process.meter()
}

// makeTopic makes sure that there is a topic to commit offsets of. An interruption
// waits for the answer: a topic that nobody knows of would stay.
func (s *server) makeTopic(ctx context.Context, partitions int) error {
	if s.topic != "" {
		return nil
	}
	c, err := s.dial(context.WithoutCancel(ctx), s.addr)
	if err != nil {
		return err
	}
	defer c.close()
	req := kmsg.NewPtrCreateTopicsRequest()
	if err := s.version(req); err != nil {
		return err
	}
	req.TimeoutMillis = int32(answerMax.Milliseconds())
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = s.run, int32(partitions), 1
	if req.Version >= 4 {
		topic.ReplicationFactor = -1 // the server's default, KIP-464
	}
	req.Topics = []kmsg.CreateTopicsRequestTopic{topic}
	resp, err := c.do(req)
	if err != nil {
		return err
	}
	for _, t := range resp.(*kmsg.CreateTopicsResponse).Topics {
		if err := codeError(t.ErrorCode); err != nil {
			return fmt.Errorf("create topic %s: %w", s.run, err)
		}
	}
	s.topic, s.partitions = s.run, partitions
	return nil
}

// cleanUp deletes the groups and the topic of the run. Groups whose members could not
// leave stay until their sessions end.
func (s *server) cleanUp(ctx context.Context) error {
	const some = 500
	byNode := map[string][]string{}
	for _, g := range slices.Sorted(maps.Keys(s.groups)) {
		byNode[s.groups[g]] = append(byNode[s.groups[g]], g)
	}
	err := s.deleteTopic(ctx)
	for addr, groups := range byNode {
		for part := range slices.Chunk(groups, some) {
			req := kmsg.NewPtrDeleteGroupsRequest()
			req.Groups = part
			err = errors.Join(err, s.once(ctx, addr, req))
		}
	}
	if err != nil {
		return fmt.Errorf("%s: cleaning up %s…: %w", s.name, s.run, err)
	}
	return nil
}

func (s *server) deleteTopic(ctx context.Context) error {
	if s.topic == "" {
		return nil
	}
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TopicNames, req.TimeoutMillis = []string{s.topic}, int32(answerMax.Milliseconds())
	return s.once(ctx, s.addr, req)
}

// once sends a request over a connection of its own.
func (s *server) once(ctx context.Context, addr string, req kmsg.Request) error {
	c, err := s.dial(ctx, addr)
	if err != nil {
		return err
	}
	defer c.close()
	_, err = c.do(req)
	return err
}
