package node

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/coordinator"
	"github.com/rollcall-mq/rollcall/gateway/memnet"
)

// client is a connection that asks one thing at a time.
type client struct {
	*testing.T
	net.Conn
}

func dial(t *testing.T, network *memnet.Listener) *client {
	t.Helper()
	conn, err := network.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &client{t, conn}
}

func (c *client) send(req kmsg.Request) {
	c.Helper()
	if _, err := c.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)); err != nil {
		c.Error(err)
	}
}

// receive reads the answer to a request of a version that is not flexible.
func (c *client) receive(req kmsg.Request) kmsg.Response {
	c.Helper()
	var head [8]byte
	_, err := io.ReadFull(c, head[:])
	body := make([]byte, max(0, int(binary.BigEndian.Uint32(head[:]))-4))
	if err == nil {
		_, err = io.ReadFull(c, body)
	}
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	if err == nil {
		err = resp.ReadFrom(body)
	}
	if err != nil {
		c.Error(err)
	}
	return resp
}

func (c *client) ask(req kmsg.Request) kmsg.Response {
	c.Helper()
	c.send(req)
	return c.receive(req)
}

// member joins a group alone and returns its heartbeat.
func (c *client) member(group string, session time.Duration) *kmsg.HeartbeatRequest {
	c.Helper()
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.ProtocolType = 3, group, "consumer"
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = int32(session.Milliseconds()), 60_000
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
	joined := c.ask(join).(*kmsg.JoinGroupResponse)
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.MemberID, sync.Generation = 2, group, joined.MemberID, joined.Generation
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: joined.MemberID}}
	if resp := c.ask(sync).(*kmsg.SyncGroupResponse); joined.ErrorCode != 0 || resp.ErrorCode != 0 {
		c.Errorf("join %d, sync %d", joined.ErrorCode, resp.ErrorCode)
	}
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Version, beat.Group, beat.MemberID, beat.Generation = 2, group, joined.MemberID, joined.Generation
	return beat
}

// shardMate returns the name of a group in the same shard as another, or not in it.
func shardMate(group string, same bool) string {
	for i := 0; ; i++ {
		name := fmt.Sprint("quiet", i)
		if (coordinator.ShardFor(name, 50) == coordinator.ShardFor(group, 50)) == same {
			return name
		}
	}
}

// TestStalledDiskEvictsNobody lets the disk stand still for longer than a session,
// with so many commits under way that their shard stands still, too. Heartbeats of
// other shards are answered meanwhile; those of that shard are when the disk goes on,
// and nobody has lost its place.
func TestStalledDiskEvictsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Pointer[chan struct{}]
		disk := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if gate := hangs.Load(); gate != nil && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				<-*gate
			}
			return nil
		})
		n, network := startInMemory(t, errorfs.Wrap(vfs.NewMem(), disk))
		n.Run()
		synctest.Wait()

		const partitions, session = 2500, 10 * time.Second
		admin := dial(t, network)
		create := kmsg.NewPtrCreateTopicsRequest()
		create.Version = 2
		create.Topics = []kmsg.CreateTopicsRequestTopic{{Topic: "t", NumPartitions: partitions, ReplicationFactor: 1}}
		admin.ask(create)
		beside, apart := dial(t, network), dial(t, network)
		besideBeat := beside.member(shardMate("busy", true), session)
		apartBeat := apart.member(shardMate("busy", false), session)

		gate := make(chan struct{})
		hangs.Store(&gate)
		commit := kmsg.NewPtrOffsetCommitRequest()
		commit.Version, commit.Group, commit.Generation = 6, "busy", -1
		metadata := strings.Repeat("m", 4096)
		commit.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t"}}
		for i := range int32(partitions) {
			commit.Topics[0].Partitions = append(commit.Topics[0].Partitions, kmsg.OffsetCommitRequestTopicPartition{Partition: i, Metadata: &metadata})
		}
		var busy []*client
		for range 4 {
			c := dial(t, network)
			go c.send(commit)
			busy = append(busy, c)
		}
		synctest.Wait()
		answer := make(chan int16, 1)
		go func() { answer <- beside.ask(besideBeat).(*kmsg.HeartbeatResponse).ErrorCode }()
		for range 15 {
			time.Sleep(2 * time.Second)
			began := time.Now()
			if code := apart.ask(apartBeat).(*kmsg.HeartbeatResponse).ErrorCode; code != 0 || time.Since(began) > time.Second {
				t.Errorf("heartbeat in another shard: code %d after %v", code, time.Since(began))
			}
		}
		if len(answer) > 0 {
			t.Error("the shard of the commits does not stand still: the test needs more of them")
		}
		hangs.Store(nil)
		close(gate)
		if code := <-answer; code != 0 {
			t.Errorf("heartbeat when the disk goes on: code %d", code)
		}
		for range 5 {
			time.Sleep(3 * time.Second)
			if code := beside.ask(besideBeat).(*kmsg.HeartbeatResponse).ErrorCode; code != 0 {
				t.Errorf("heartbeat afterwards: code %d", code)
			}
		}
		for _, c := range append(busy, admin, beside, apart) {
			c.Close()
		}
		n.Stop(t.Context())
	})
}
