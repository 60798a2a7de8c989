package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// operator runs operators' commands against a gateway.
type operator struct {
	*testing.T
	gateway *process
}

// does runs a command line that must end with code and print lines that match a
// pattern: on standard output if it is 0, else on standard error.
func (o *operator) does(code int, pattern string, line string) {
	o.Helper()
	args := append(strings.Fields(line), "--admin", o.gateway.http)
	stdout, stderr, got := runToEnd(o.T, nil, args...)
	text := stdout
	if code != 0 {
		text = stderr
	}
	if got != code || !regexp.MustCompile(`(?s)\A`+pattern+`\z`).MatchString(text) {
		o.Errorf("rollcall %s: exit code %d, want %d with %s\n%s%s", line, got, code, pattern, stdout, stderr)
	}
}

// commit stores an offset of topic orders for a group without members.
func (o *operator) commit(group string, partition int32, offset int64) {
	o.Helper()
	conn, err := net.Dial("tcp", o.gateway.kafka)
	if err != nil {
		o.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		o.Fatal(err)
	}
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 2, group, -1
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "orders", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Partition: partition, Offset: offset}}}}
	if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)); err != nil {
		o.Fatal(err)
	}
	if _, err := bufio.NewReader(conn).ReadByte(); err != nil {
		o.Fatal(err)
	}
}

// TestOperatorCommands goes through the life of a topic and a group as an operator
// sees them.
func TestOperatorCommands(t *testing.T) {
	p := startServe(t, filepath.Join(t.TempDir(), "data"))
	p.ready(t)
	o := &operator{t, p}
	o.does(0, "created topic orders with 3 partitions\n", "topic create orders --partitions 3 --set retention.ms=1000")
	o.does(1, `rollcall: topic "orders": TOPIC_ALREADY_EXISTS: .*\n`, "topic create orders")
	o.does(1, `rollcall: topic "x": INVALID_CONFIG: .*\n`, "topic create x --set retention.ms=never")
	o.does(2, "rollcall: --set \"x\" is not KEY=VALUE\n", "topic create x --set x")
	o.does(0, "TOPIC +PARTITIONS +ID\norders +3 +[-_A-Za-z0-9]{22}\n", "topic list")
	o.does(0, "topic orders has 4 partitions\n", "topic alter orders --partitions 4")
	o.does(1, `rollcall: topic "orders": INVALID_PARTITIONS: .*\n`, "topic alter orders --partitions 4")
	o.does(0, "topic orders: id .*, 4 partitions\n  retention.ms=1000\nPARTITION +START +END\n0 +0 +0\n.*3 +0 +0\n", "topic describe orders")
	o.does(1, `rollcall: topic "none": UNKNOWN_TOPIC_OR_PARTITION: .*\n`, "topic describe none")

	o.commit("billing", 0, 41)
	o.commit("billing", 2, 43)
	o.commit("audit", 1, 7)
	o.does(0, "GROUP +STATE +TYPE +MEMBERS +OFFSETS *\n.*billing +Empty +- +0 +2\n.*", "group list")
	o.does(0, `\{"group":"audit","state":"Empty","protocol_type":"","members":0,"offsets":1,"shard":\d+\}\n`, "group list --prefix a --state empty --output json")
	o.does(0, "group billing: Empty, protocol - \\(-\\), 0 members\nTOPIC +PARTITION +OFFSET +LEADER-EPOCH +METADATA\norders +0 +41 +-?\\d+ +-\norders +2 +43 +-?\\d+ +-\n", "group describe billing")
	o.does(1, `rollcall: group "none": GROUP_ID_NOT_FOUND: .*\n`, "group describe none")
	o.does(0, "would delete group billing \\(Empty, 0 members\\) with 2 committed offsets\n", "group delete billing")
	o.does(0, `.*"offset": 43.*`, "group describe billing --output json")
	o.does(0, "delete group billing \\(Empty, 0 members\\) with 2 committed offsets\n", "group delete billing --execute")
	o.does(1, `rollcall: group "billing": GROUP_ID_NOT_FOUND: .*\n`, "group describe billing")
	o.does(0, "would delete topic orders with 4 partitions and up to 0 records\n", "topic delete orders")
	o.does(0, "delete topic orders with 4 partitions and up to 0 records\n", "topic delete orders --execute")
	o.does(0, "TOPIC +PARTITIONS +ID\n", "topic list")
	o.does(2, "rollcall: rollcall group delete wants GROUP...; see rollcall group delete --help\n", "group delete")
	o.does(2, "rollcall: invalid argument \"xml\" for \"--output\" flag: must be table or json; see rollcall group list --help\n", "group list --output xml")
}

// TestOperatorWithoutGateway says in one line what is wrong.
func TestOperatorWithoutGateway(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	_, stderr, code := runToEnd(t, nil, "group", "list", "--admin", address)
	want := fmt.Sprintf("rollcall: cannot reach the gateway: dial tcp %s: connect: connection refused; is it running, and is --admin its admin address?\n", address)
	if code != exitFailed || stderr != want {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	_, stderr, code = runToEnd(t, nil, "topic", "list", "--admin", "nowhere")
	if code != exitUsage || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestOperatorToken opens a gateway that wants a token.
func TestOperatorToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rollcall.yaml")
	if err := os.WriteFile(file, []byte("admin.token: s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startServe(t, filepath.Join(t.TempDir(), "data"), "--config", file)
	p.ready(t)
	o := &operator{t, p}
	o.does(0, "TOPIC .*", "topic list --config "+file)
	o.does(1, "rollcall: 401 Unauthorized: .*\n", "topic list")
}
