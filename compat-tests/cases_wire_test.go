package compat

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

func TestWireCases(t *testing.T) {
	play(t, forRaw(t), []wireCase{
		{"B96 ApiVersions from the future", apiVersionsFromTheFuture},
		{"B97 ApiVersions framing", apiVersionsFraming},
		{"B99 unknown keys and broken bodies", unknownAndBroken},
		{"B100 errors in every version", errorsInEveryVersion},
		{"B104 null and negative lengths", nullAndNegativeLengths},
		{"B112 TLS and HTTP on a plain port", otherProtocols},
		{"B119 arrays larger than the frame", hugeArrays},
		{"B120 frame lengths", frameLengths},
		{"pipelined requests are answered in order", pipelined},
	})
}

// frame puts a length in front of its parts.
func frame(parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// header is a request header with correlation id 77 and client id "x".
func header(key, version int16, flexible bool) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = append(b, 0, 0, 0, 77, 0, 1, 'x')
	if flexible {
		b = append(b, 0)
	}
	return b
}

func apiVersionsFromTheFuture(t *testing.T, srv *rig.Server, _ string) {
	for _, version := range []int16{6, 99, 32767} {
		c := rig.Dial(t, srv.Addr)
		c.Bytes(frame(header(18, version, true), []byte("what a later version may hold")))
		b, err := c.ReadFrame(5 * time.Second)
		if err != nil {
			t.Fatalf("v%d: %v", version, err)
		}
		resp := kmsg.NewPtrApiVersionsResponse()
		if err := resp.ReadFrom(b[4:]); err != nil || binary.BigEndian.Uint32(b) != 77 || len(resp.AppendTo(nil)) != len(b)-4 {
			t.Fatalf("v%d: %x is not in the layout of version 0: %v", version, b, err)
		}
		if resp.ErrorCode != errUnsupportedVersion || len(resp.ApiKeys) != 1 || resp.ApiKeys[0].ApiKey != 18 || resp.ApiKeys[0].MaxVersion < 4 {
			t.Errorf("v%d: %+v", version, resp)
		}
		req := kmsg.NewPtrApiVersionsRequest()
		if resp := rig.Do[*kmsg.ApiVersionsResponse](c, req); resp.ErrorCode != 0 {
			t.Errorf("the next ApiVersions: %+v", resp)
		}
	}
}

func apiVersionsFraming(t *testing.T, srv *rig.Server, _ string) {
	c := rig.Dial(t, srv.Addr)
	for version := int16(0); version <= 4; version++ {
		for _, k := range []struct {
			name, number string
			want         int16
		}{{"librdkafka", "2.3.0", 0}, {"", "", errInvalidRequest}, {"bad name!", "1", errInvalidRequest}} {
			req := kmsg.NewPtrApiVersionsRequest()
			req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = version, k.name, k.number
			resp := rig.Do[*kmsg.ApiVersionsResponse](c, req)
			want := k.want
			if version < 3 {
				want = 0
			}
			if resp.ErrorCode != want || (want != 0) != (len(resp.ApiKeys) == 0) {
				t.Errorf("v%d, %q: code %d with %d keys", version, k.name, resp.ErrorCode, len(resp.ApiKeys))
			}
			for _, a := range resp.ApiKeys {
				if a.MinVersion > a.MaxVersion {
					t.Errorf("v%d: inverted row %+v", version, a)
				}
			}
		}
	}
}

func unknownAndBroken(t *testing.T, srv *rig.Server, g string) {
	other := rig.Dial(t, srv.Addr)
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group = 9, g
	body := join.AppendTo(nil)
	for what, b := range map[string][]byte{
		"unknown key":    frame(header(999, 0, false), body),
		"negative key":   frame(header(-1, 0, false), body),
		"JoinGroup v99":  frame(header(11, 99, true), body),
		"Metadata v99":   frame(header(3, 99, true), body),
		"negative":       frame(header(3, -1, true), body),
		"truncated body": frame(header(11, 9, true), body[:len(body)/2]),
	} {
		c := rig.Dial(t, srv.Addr)
		c.Send(kmsg.NewPtrApiVersionsRequest())
		c.Bytes(b)
		rig.Answer[*kmsg.ApiVersionsResponse](c)
		c.Closed(5 * time.Second)
		if rig.Do[*kmsg.ApiVersionsResponse](other, kmsg.NewPtrApiVersionsRequest()).ErrorCode != 0 {
			t.Errorf("%s: another connection suffers", what)
		}
	}
	c := rig.Dial(t, srv.Addr)
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group = 4, g
	c.Bytes(frame(header(12, 4, true), req.AppendTo(nil), []byte("trailing")))
	if b, err := c.ReadFrame(5 * time.Second); err != nil {
		t.Errorf("trailing bytes after a complete body: %x, %v", b, err)
	}
}

func errorsInEveryVersion(t *testing.T, srv *rig.Server, g string) {
	c := rig.Dial(t, srv.Addr)
	versions := rig.Do[*kmsg.ApiVersionsResponse](c, kmsg.NewPtrApiVersionsRequest())
	for _, k := range versions.ApiKeys {
		switch k.ApiKey {
		case 8, 9, 10, 11, 12, 13, 14, 15, 16, 42, 47:
		default:
			continue
		}
		for v := k.MinVersion; v <= k.MaxVersion; v++ {
			req := kmsg.RequestForKey(k.ApiKey)
			req.SetVersion(v)
			switch r := req.(type) {
			case *kmsg.OffsetCommitRequest:
				r.Group, r.Generation = g, 5
				p := kmsg.NewOffsetCommitRequestTopicPartition()
				r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "none", Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
			case *kmsg.OffsetFetchRequest:
				r.Group = g
				r.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "none", Partitions: []int32{0}}}
			case *kmsg.SyncGroupRequest:
				r.Group, r.MemberID, r.Generation = g, "nobody", 3
			case *kmsg.DescribeGroupsRequest:
				r.Groups = []string{g}
			case *kmsg.DeleteGroupsRequest:
				r.Groups = []string{g}
			case *kmsg.HeartbeatRequest:
				r.Group = g
			case *kmsg.LeaveGroupRequest:
				r.Group, r.MemberID = g, "nobody"
			}
			c.Send(req)
			if _, err := c.Receive(5 * time.Second); err != nil {
				t.Errorf("%s v%d: %v", kmsg.NameForKey(k.ApiKey), v, err)
				c = rig.Dial(t, srv.Addr)
			}
		}
	}
}

func nullAndNegativeLengths(t *testing.T, srv *rig.Server, _ string) {
	str := func(n int16, s string) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(n)), s...) }
	i32 := func(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	for what, b := range map[string][]byte{
		"Heartbeat v0, group -1":              frame(header(12, 0, false), str(-1, ""), i32(1), str(1, "m")),
		"Heartbeat v0, group -2":              frame(header(12, 0, false), str(-2, ""), i32(1), str(1, "m")),
		"Heartbeat v0, group 32767":           frame(header(12, 0, false), str(32767, "abc")),
		"Heartbeat v4, compact null":          frame(header(12, 4, true), []byte{0}, i32(1), []byte{2, 'm', 0, 0}),
		"Heartbeat v4, compact 2^32-1":        frame(header(12, 4, true), []byte{0xff, 0xff, 0xff, 0xff, 0x0f}, i32(1)),
		"Heartbeat v4, endless varint":        frame(header(12, 4, true), bytes.Repeat([]byte{0xff}, 10), i32(1)),
		"JoinGroup v0, protocols null":        frame(header(11, 0, false), str(1, "g"), i32(6000), str(0, ""), str(1, "c"), i32(-1)),
		"JoinGroup v0, protocols -2":          frame(header(11, 0, false), str(1, "g"), i32(6000), str(0, ""), str(1, "c"), i32(-2)),
		"JoinGroup v0, metadata null":         frame(header(11, 0, false), str(1, "g"), i32(6000), str(0, ""), str(1, "c"), i32(1), str(1, "r"), i32(-1)),
		"SyncGroup v0, assignments null":      frame(header(14, 0, false), str(1, "g"), i32(1), str(1, "m"), i32(-1)),
		"OffsetFetch v1, topics null":         frame(header(9, 1, false), str(1, "g"), i32(-1)),
		"OffsetCommit v2, topics null":        frame(header(8, 2, false), str(1, "g"), i32(1), str(1, "m"), make([]byte, 8), i32(-1)),
		"DescribeGroups v0, groups null":      frame(header(15, 0, false), i32(-1)),
		"DescribeGroups v0, a group of -1":    frame(header(15, 0, false), i32(1), str(-1, "")),
		"DeleteGroups v0, groups -2":          frame(header(42, 0, false), i32(-2)),
		"LeaveGroup v3, members null":         frame(header(13, 3, false), str(1, "g"), i32(-1)),
		"client id of -2":                     frame([]byte{0, 12, 0, 0, 0, 0, 0, 77, 0xff, 0xfe}),
		"header that ends in the client id":   frame([]byte{0, 12, 0, 0, 0, 0, 0, 77, 0, 9, 'x'}),
		"OffsetDelete, partitions of a -1 id": frame(header(47, 0, false), str(-1, ""), i32(0)),
	} {
		t.Run(what, func(t *testing.T) {
			c := rig.Dial(t, srv.Addr)
			c.Bytes(b)
			c.Closed(5 * time.Second)
		})
	}
}

func otherProtocols(t *testing.T, srv *rig.Server, _ string) {
	for _, b := range []string{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x15\x03\x03\x00\x02\x02\x28"} {
		c := rig.Dial(t, srv.Addr)
		c.Bytes([]byte(b))
		c.Closed(5 * time.Second)
	}
}

func hugeArrays(t *testing.T, srv *rig.Server, _ string) {
	n := []byte{0x03, 0x3c, 0x00, 0x00} // 54,263,808 elements
	compact := []byte{0x80, 0x80, 0xf0, 0x19}
	for what, b := range map[string][]byte{
		"Metadata v0":             frame(header(3, 0, false), n),
		"Metadata v9":             frame(header(3, 9, true), compact),
		"OffsetCommit topics":     frame(header(8, 2, false), []byte{0, 1, 'g', 0, 0, 0, 1, 0, 1, 'm'}, make([]byte, 8), n),
		"OffsetCommit partitions": frame(header(8, 2, false), []byte{0, 1, 'g', 0, 0, 0, 1, 0, 1, 'm'}, make([]byte, 8), []byte{0, 0, 0, 1, 0, 1, 't'}, n),
		"SyncGroup assignments":   frame(header(14, 0, false), []byte{0, 1, 'g', 0, 0, 0, 1, 0, 1, 'm'}, n),
		"JoinGroup protocols":     frame(header(11, 0, false), []byte{0, 1, 'g', 0, 0, 23, 112, 0, 0, 0, 1, 'c'}, n),
		"DescribeGroups v5":       frame(header(15, 5, true), compact),
	} {
		t.Run(what, func(t *testing.T) {
			for range 50 {
				c := rig.Dial(t, srv.Addr)
				c.Bytes(b)
				c.Closed(5 * time.Second)
			}
		})
	}
}

func frameLengths(t *testing.T, srv *rig.Server, _ string) {
	for _, n := range []int32{-1, 0, 7, 104_857_601, 0x7fffffff} {
		c := rig.Dial(t, srv.Addr)
		c.Bytes(append(binary.BigEndian.AppendUint32(nil, uint32(n)), "\x00\x03\x00\x00\x00\x00\x00\x01"...))
		c.Closed(5 * time.Second)
	}
	if srv.External() {
		return // 100 half frames of 90 MiB take Kafka down
	}
	for range 100 {
		c := rig.Dial(t, srv.Addr)
		c.Bytes(append(binary.BigEndian.AppendUint32(nil, 90<<20), header(3, 0, false)...))
		c.Quiet(time.Millisecond)
	}
	c := rig.Dial(t, srv.Addr)
	if resp := rig.Do[*kmsg.ApiVersionsResponse](c, kmsg.NewPtrApiVersionsRequest()); resp.ErrorCode != 0 {
		t.Errorf("%+v", resp)
	}
}

func pipelined(t *testing.T, srv *rig.Server, g string) {
	topic := newTopic(t, srv)
	c := rig.Dial(t, srv.Addr)
	for i := range 200 {
		if i%3 == 0 {
			c.Send(kmsg.NewPtrApiVersionsRequest())
			continue
		}
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Version, req.Group, req.Generation = 8, g+strings.Repeat("x", i%5), -1
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Offset = int64(i)
		req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
		c.Send(req)
	}
	for i := range 200 {
		if i%3 == 0 {
			rig.Answer[*kmsg.ApiVersionsResponse](c)
		} else if code := rig.Answer[*kmsg.OffsetCommitResponse](c).Topics[0].Partitions[0].ErrorCode; code != 0 {
			t.Errorf("commit %d: code %d", i, code)
		}
	}
}
