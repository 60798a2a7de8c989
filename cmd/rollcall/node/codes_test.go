package node

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/coordinator"
)

// groupRequest is a request of group g with one of everything that it can name.
func groupRequest(key, version int16) kmsg.Request {
	req := kmsg.RequestForKey(key)
	reflect.ValueOf(req).MethodByName("Default").Call(nil)
	switch r := req.(type) {
	case *kmsg.OffsetCommitRequest:
		r.Group = "g"
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{p, p}}}
		r.Topics[0].Partitions[1].Partition = 1
	case *kmsg.OffsetFetchRequest:
		r.Group = "g"
		r.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: []int32{0, 1}}}
		r.Groups = []kmsg.OffsetFetchRequestGroup{{Group: "g", MemberEpoch: -1, Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t", Partitions: []int32{0, 1}}}}}
	case *kmsg.JoinGroupRequest:
		r.Group, r.SessionTimeoutMillis, r.RebalanceTimeoutMillis, r.ProtocolType = "g", 10_000, 10_000, "consumer"
		r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte("m")}}
	case *kmsg.HeartbeatRequest:
		r.Group, r.MemberID = "g", "m"
	case *kmsg.LeaveGroupRequest:
		r.Group, r.MemberID = "g", "m"
		r.Members = []kmsg.LeaveGroupRequestMember{{MemberID: "m"}}
	case *kmsg.SyncGroupRequest:
		r.Group, r.MemberID = "g", "m"
		r.ProtocolType, r.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	case *kmsg.DescribeGroupsRequest:
		r.Groups = []string{"g"}
	case *kmsg.DeleteGroupsRequest:
		r.Groups = []string{"g"}
	case *kmsg.OffsetDeleteRequest:
		r.Group = "g"
		r.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{}}}}
	}
	req.SetVersion(version)
	return req
}

// codes lists where in a response which error stands, in order.
func codes(resp kmsg.Response) string {
	var found []string
	var walk func(at string, v reflect.Value)
	walk = func(at string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				walk(at, v.Elem())
			}
		case reflect.Struct:
			for i := range v.NumField() {
				name := v.Type().Field(i).Name
				if name == "ErrorCode" && v.Field(i).Int() != 0 {
					found = append(found, fmt.Sprint(at, v.Field(i).Int()))
				}
				walk(at+name+".", v.Field(i))
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(at, v.Index(i))
			}
		}
	}
	walk("", reflect.ValueOf(resp))
	return strings.Join(found, " ")
}

// refused is what each API of groups answers in each version if nothing of group g
// can be served because of code.
func refused(key, version, code int16) string {
	partition := fmt.Sprintf("Topics.Partitions.%d", code)
	switch {
	case key == 8, key == 9 && version < 2:
		return partition + " " + partition
	case key == 9 && version >= 8, key == 15, key == 42:
		return fmt.Sprintf("Groups.%d", code)
	}
	return fmt.Sprint(code)
}

// groupAPIs are the APIs of classic groups that ask a coordinator, with Kafka's versions.
var groupAPIs = map[int16][2]int16{
	8: {2, 9}, 9: {1, 9}, 11: {0, 9}, 12: {0, 4}, 13: {0, 5}, 14: {0, 5}, 15: {0, 6}, 16: {0, 5}, 42: {0, 3}, 47: {0, 0},
}

// B55 and B100: over the wire, while a shard loads and after it was given up, every API
// of groups says so in every version, in the place and the layout of that version.
// OffsetFetch is never answered with -1 and no error.
func TestB55_B100_CodesOverTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := &slowFS{FS: vfs.NewMem()}
		n := start(t, fs, nil)
		n.createTopic(100)
		n.commitMuch("g", 5)
		shard := coordinator.ShardFor("g", 50)
		for i, more := 0, 0; more < 20; i++ { // so much that to open the store does not read all of it
			if other := fmt.Sprint("g", i); coordinator.ShardFor(other, 50) == shard {
				n.commitMuch(other, 5)
				more++
			}
		}
		n.stop()
		n = start(t, fs, nil)
		n.stop() // what the log had is in tables now

		var open func()
		n = start(t, fs, func() { open = fs.shut() })
		if ready, why := n.Ready(); ready {
			t.Fatalf("ready (%s) although nothing can be read", why)
		}
		n.everywhere(14)
		open()
		synctest.Wait()
		if got := n.fetched("g"); got != 5 {
			t.Errorf("after the load: offset %d, want 5", got)
		}

		for shard := range uint32(50) {
			if err := n.router.Lose(t.Context(), shard); err != nil {
				t.Fatal(err)
			}
		}
		n.everywhere(16)
		n.stop()
	})
}

// commitMuch commits 400 kB.
func (n *inMemory) commitMuch(group string, offset int64) {
	n.Helper()
	random := rand.NewChaCha8([32]byte{})
	topic := kmsg.OffsetCommitRequestTopic{Topic: "t"}
	for i := range int32(100) {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		noise := make([]byte, 2000) // compresses badly
		_, _ = random.Read(noise)
		metadata := hex.EncodeToString(noise)
		p.Partition, p.Offset, p.Metadata = i, offset, &metadata
		topic.Partitions = append(topic.Partitions, p)
	}
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation, req.Topics = group, -1, []kmsg.OffsetCommitRequestTopic{topic}
	if got := codes(ask[*kmsg.OffsetCommitResponse](n, 8, req)); got != "" {
		n.Fatalf("OffsetCommit: %s", got)
	}
}

// everywhere asks each API in each version and wants code.
func (n *inMemory) everywhere(code int16) {
	n.Helper()
	for _, key := range slices.Sorted(maps.Keys(groupAPIs)) {
		for v := groupAPIs[key][0]; v <= groupAPIs[key][1]; v++ {
			want := refused(key, v, code)
			switch {
			case key == 12 && code == 14:
				want = "" // a heartbeat is answered blindly, so that nobody rejoins
			case key == 16 && code == 16:
				want = "" // a node lists the groups that it has
			}
			resp := ask[kmsg.Response](n, v, groupRequest(key, v))
			if got := codes(resp); got != want {
				n.Errorf("%s v%d: errors %q, want %q", kmsg.NameForKey(key), v, got, want)
			}
			if r, ok := resp.(*kmsg.OffsetFetchResponse); ok && v < 2 && r.Topics[0].Partitions[1].Offset != -1 {
				n.Errorf("OffsetFetch v%d: %+v", v, r)
			}
		}
	}
}

// member joins a group alone and syncs.
func (n *inMemory) member(group string) (id string, generation int32) {
	n.Helper()
	join := groupRequest(11, 3).(*kmsg.JoinGroupRequest)
	join.Group = group
	// A consumer that subscribes to t.
	join.Protocols[0].Metadata = []byte("\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff")
	joined := ask[*kmsg.JoinGroupResponse](n, 3, join)
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.MemberID, sync.Generation = group, joined.MemberID, joined.Generation
	if code := ask[*kmsg.SyncGroupResponse](n, 2, sync).ErrorCode; code != 0 || joined.ErrorCode != 0 {
		n.Fatalf("JoinGroup: code %d, SyncGroup: code %d", joined.ErrorCode, code)
	}
	return joined.MemberID, joined.Generation
}

// beat sends heartbeats for some minutes.
func (n *inMemory) beat(group, member string, generation int32, minutes int) {
	n.Helper()
	for range minutes * 12 {
		<-time.After(5 * time.Second)
		req := kmsg.NewPtrHeartbeatRequest()
		req.Group, req.MemberID, req.Generation = group, member, generation
		if code := ask[*kmsg.HeartbeatResponse](n, 3, req).ErrorCode; code != 0 {
			n.Fatalf("Heartbeat: code %d", code)
		}
	}
}

// B61 and B64, at real lengths through the whole server: the retention of ten minutes
// counts from when a group became Empty, not from its last commit, and a restart
// neither shortens nor prolongs it. A group that was never joined counts from its
// commit. A group without offsets is gone.
func TestB61_B64_RetentionInMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		settings := []string{"ROLLCALL_OFFSETS_RETENTION_MINUTES=10", "ROLLCALL_OFFSETS_RETENTION_CHECK_INTERVAL_MS=1000"}
		n := start(t, fs, nil, settings...)
		n.createTopic(1)
		id, generation := n.member("live")
		if a, b := n.commit("live", id, generation, 7), n.commit("simple", "", -1, 7); a != 0 || b != 0 {
			t.Fatalf("codes %d and %d", a, b)
		}
		want := func(when, group string, offset int64) {
			t.Helper()
			if got := n.fetched(group); got != offset {
				t.Errorf("%s: %s is at %d, want %d", when, group, got, offset)
			}
		}
		n.beat("live", id, generation, 9)
		want("minute 9", "simple", 7)
		n.beat("live", id, generation, 2)
		want("minute 11", "simple", -1)
		n.beat("live", id, generation, 49)
		want("minute 60", "live", 7)
		leave := kmsg.NewPtrLeaveGroupRequest()
		leave.Group, leave.MemberID = "live", id
		if code := ask[*kmsg.LeaveGroupResponse](n, 2, leave).ErrorCode; code != 0 {
			t.Fatalf("LeaveGroup: code %d", code)
		}
		time.Sleep(5 * time.Minute)
		n.stop()
		n = start(t, fs, nil, settings...)
		time.Sleep(4 * time.Minute)
		want("minute 69", "live", 7)
		time.Sleep(2 * time.Minute)
		want("minute 71", "live", -1)
		if groups := ask[*kmsg.ListGroupsResponse](n, 4, kmsg.NewPtrListGroupsRequest()).Groups; len(groups) != 0 {
			t.Errorf("still listed: %+v", groups)
		}
		n.stop()
	})
}
