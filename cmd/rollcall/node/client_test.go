package node

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/rollcall-mq/rollcall/cmd/rollcall/config"
	"github.com/rollcall-mq/rollcall/gateway"
	"github.com/rollcall-mq/rollcall/gateway/memnet"
)

// inMemory is a node on a file system and a network in memory.
type inMemory struct {
	*testing.T
	*Node
	network *memnet.Listener
	// broken gets what Run of the node reports.
	broken <-chan error
}

// start starts a node, in a bubble, and waits until nothing moves; settings are as in the environment. before, if any, is called
// when the data directory is open and no shard is loaded.
func start(t *testing.T, fs vfs.FS, before func(), settings ...string) *inMemory {
	t.Helper()
	c, _, err := config.Load(config.Input{Environ: settings, Flags: map[string]config.Flag{
		"admin.listen": {Name: "admin"}, "data.dir": {Name: "data-dir", Value: "data"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	n := &inMemory{T: t, network: memnet.Listen()}
	if n.Node, err = Start(t.Context(), Options{
		Config: c, Version: "test", Log: zap.NewNop(), FS: fs,
		Listen: func(context.Context, gateway.Endpoint) (net.Listener, error) { return n.network, nil },
	}); err != nil {
		t.Fatal(err)
	}
	if before != nil {
		before()
	}
	n.broken = n.Node.Run()
	synctest.Wait()
	return n
}

func (n *inMemory) stop() {
	n.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := n.Stop(ctx); err != nil {
		n.Error(err)
	}
	select {
	case err := <-n.broken:
		n.Error(err)
	default:
	}
}

// ask sends a request on a connection of its own and returns the answer, which must
// be in the layout of its version to the last byte.
func ask[R kmsg.Response](n *inMemory, version int16, req kmsg.Request) R {
	n.Helper()
	conn, err := n.network.Dial(n.Context())
	if err != nil {
		n.Fatal(err)
	}
	defer conn.Close()
	req.SetVersion(version)
	if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, 77)); err != nil {
		n.Fatal(err)
	}
	head := make([]byte, 8)
	if _, err := io.ReadFull(conn, head); err != nil {
		n.Fatalf("%s v%d: %v", kmsg.NameForKey(req.Key()), version, err)
	}
	body := make([]byte, binary.BigEndian.Uint32(head)-4)
	if _, err := io.ReadFull(conn, body); err != nil || head[7] != 77 {
		n.Fatalf("%s v%d: header %x, %v", kmsg.NameForKey(req.Key()), version, head, err)
	}
	if req.IsFlexible() {
		body = body[1:] // no tags
	}
	resp := req.ResponseKind()
	resp.SetVersion(version)
	if err := resp.ReadFrom(body); err != nil || len(resp.AppendTo(nil)) != len(body) {
		n.Fatalf("%s v%d: %x is %+v, %v", kmsg.NameForKey(req.Key()), version, body, resp, err)
	}
	return resp.(R)
}

// commit commits an offset of t-0 as a tool does, or as a member.
func (n *inMemory) commit(group, member string, generation int32, offset int64) int16 {
	n.Helper()
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset = offset
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = group, member, generation
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	return ask[*kmsg.OffsetCommitResponse](n, 8, req).Topics[0].Partitions[0].ErrorCode
}

// fetched is the committed offset of t-0.
func (n *inMemory) fetched(group string) int64 {
	n.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = group
	req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: []int32{0}}}
	resp := ask[*kmsg.OffsetFetchResponse](n, 5, req)
	if resp.ErrorCode != 0 {
		n.Fatalf("OffsetFetch: code %d", resp.ErrorCode)
	}
	return resp.Topics[0].Partitions[0].Offset
}

// createTopic creates t.
func (n *inMemory) createTopic(partitions int32) {
	n.Helper()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "t", partitions, 1
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis, req.Topics = 1000, []kmsg.CreateTopicsRequestTopic{topic}
	if code := ask[*kmsg.CreateTopicsResponse](n, 5, req).Topics[0].ErrorCode; code != 0 {
		n.Fatalf("CreateTopics: code %d", code)
	}
}

// slowFS is a file system whose tables cannot be read while the gate is shut.
type slowFS struct {
	vfs.FS
	gate atomic.Pointer[chan struct{}]
}

// shut shuts the gate; what it returns opens it again.
func (fs *slowFS) shut() (open func()) {
	gate := make(chan struct{})
	fs.gate.Store(&gate)
	return func() { close(gate) }
}

func (fs *slowFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	return slowFile{f, fs}, nil
}

type slowFile struct {
	vfs.File
	fs *slowFS
}

func (f slowFile) ReadAt(p []byte, off int64) (int, error) {
	if gate := f.fs.gate.Load(); gate != nil {
		<-*gate
	}
	return f.File.ReadAt(p, off)
}
