package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
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
	o.does(2, "rollcall: --partitions 0: a topic has one at least\n", "topic create x --partitions 0")
	o.does(2, "rollcall: --set \"x\" is not KEY=VALUE\n", "topic create x --set x")
	o.does(0, "TOPIC +PARTITIONS +ID\norders +3 +[-_A-Za-z0-9]{22}\n", "topic list")
	o.does(0, "topic orders has 4 partitions\n", "topic alter orders --partitions 4")
	o.does(1, `rollcall: topic "orders": INVALID_PARTITIONS: .*\n`, "topic alter orders --partitions 4")
	o.does(0, "topic orders has cleanup.policy=compact\ntopic orders has retention.ms=2000\n",
		"topic alter orders --set retention.ms=2000 --set cleanup.policy=compact")
	o.does(0, "topic orders has cleanup.policy=delete\ntopic orders has retention.ms=1000\n",
		"topic alter orders --set retention.ms=1000 --unset cleanup.policy")
	o.does(1, `rollcall: topic "orders": INVALID_CONFIG: .*Not a number.*\n`, "topic alter orders --partitions 9 --set retention.ms=never")
	o.does(2, "rollcall: nothing to change: .*\n", "topic alter orders")
	o.does(2, "rollcall: x is both --set and --unset\n", "topic alter orders --set x=1 --unset x")
	o.does(0, "topic orders: id .*, 4 partitions\n  retention.ms=1000\nPARTITION +START +END\n0 +0 +0\n.*3 +0 +0\n", "topic describe orders")
	o.does(1, `rollcall: topic "none": UNKNOWN_TOPIC_OR_PARTITION: .*\n`, "topic describe none")

	o.commit("billing", 0, 41)
	o.commit("billing", 2, 43)
	o.commit("audit", 1, 7)
	o.does(0, "GROUP +STATE +TYPE +MEMBERS +OFFSETS *\n.*billing +Empty +- +0 +2\n.*", "group list")
	o.does(0, `\{"group":"audit","state":"Empty","protocol_type":"","members":0,"offsets":1,"shard":\d+\}\n`, "group list --prefix a --state empty --output json")
	o.does(0, "group billing: Empty, protocol - \\(-\\), 0 members\nTOPIC +PARTITION +OFFSET +LEADER-EPOCH +METADATA\norders +0 +41 +-?\\d+ +-\norders +2 +43 +-?\\d+ +-\n", "group describe billing")
	o.does(1, `rollcall: group "none": GROUP_ID_NOT_FOUND: .*\n`, "group describe none")
	o.does(0, "would delete group billing \\(Empty\\) with 2 committed offsets\n", "group delete billing")
	o.does(0, `.*"offset": 43.*`, "group describe billing --output json")
	o.does(0, "delete group billing \\(Empty\\) with 2 committed offsets\n", "group delete billing --execute")
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

// TestServeProfile writes a profile of a whole run.
func TestServeProfile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "cpu.prof")
	p := startServe(t, filepath.Join(dir, "data"), "--cpu-profile", file)
	p.ready(t)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.wait(t)
	if info, err := os.Stat(file); err != nil || info.Size() == 0 {
		t.Errorf("the profile: %v, %v", info, err)
	}
	_, stderr, code := runToEnd(t, nil, "serve", "--cpu-profile", filepath.Join(dir, "none", "cpu.prof"))
	if code != exitFailed || !strings.HasPrefix(stderr, "rollcall: --cpu-profile: ") {
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
	o.does(1, "rollcall: the gateway wants its admin.token; set ROLLCALL_ADMIN_TOKEN, or give its file with --config\n", "topic list")
}

// moment returns a time that no commit shares.
func moment() string {
	<-time.After(3 * time.Millisecond)
	defer func() { <-time.After(3 * time.Millisecond) }()
	return time.Now().UTC().Format(time.RFC3339Nano)
}

// TestOperatorHistory commits, looks back, and restores.
func TestOperatorHistory(t *testing.T) {
	p := startServe(t, filepath.Join(t.TempDir(), "data"))
	p.ready(t)
	o := &operator{t, p}
	o.does(0, ".*", "topic create orders --partitions 3")
	before := moment()
	o.commit("billing", 0, 41)
	o.commit("billing", 1, 5)
	first := moment()
	o.commit("billing", 0, 45)
	o.commit("billing", 2, 7)
	second := moment()

	const head = "TIME +CHANGE +TOPIC +PARTITION +OFFSET +CLIENT +HOST +MEMBER +GENERATION\n"
	const line = `\S+Z +commit +orders +%d +%d +- +/127.0.0.1 +- +-1` + "\n"
	all := head + fmt.Sprintf(line+line+line+line, 0, 41, 1, 5, 0, 45, 2, 7)
	o.does(0, all, "offsets history billing --since 1h")
	o.does(0, head+fmt.Sprintf(line+line, 0, 41, 0, 45), "offsets history billing --topic orders --partition 0")
	o.does(0, head+fmt.Sprintf(line+line, 0, 45, 2, 7), "offsets history billing --since "+first)
	o.does(0, head+fmt.Sprintf(line, 2, 7), "offsets history billing --limit 1")
	o.does(0, head, "offsets history billing --topic other")
	o.does(1, `rollcall: group "nobody": GROUP_ID_NOT_FOUND: .*\n`, "offsets history nobody")
	o.does(1, `rollcall: group "nobody": GROUP_ID_NOT_FOUND: .*\n`, "offsets as-of nobody "+first)
	o.does(1, "rollcall: group \"nobody\" has committed nothing, and had not then\n", "offsets restore nobody --as-of "+first)
	o.does(1, `rollcall: since: "yesterday" is neither .*\n`, "offsets history billing --since yesterday")

	const offsets = "TOPIC +PARTITION +OFFSET +LEADER-EPOCH +METADATA\n"
	o.does(0, offsets, "offsets as-of billing "+before)
	o.does(0, offsets+"orders +0 +41 .*orders +1 +5 .*", "offsets as-of billing "+first)
	const diff = "TOPIC +PARTITION +FROM +TO +BY\n"
	o.does(0, diff+"orders +0 +41 +45 +\\+4\norders +2 +- +7 +-\n", "offsets diff billing --from "+first)
	o.does(0, diff+"orders +0 +- +41 +-\norders +1 +- +5 +-\n", "offsets diff billing --from "+before+" --to "+first)

	plan := "group billing: 2 offsets change\n" + diff + "orders +2 +7 +- +-\norders +0 +45 +41 +-4\n"
	o.does(0, "would reset "+plan, "offsets restore billing --as-of "+first)
	o.does(0, diff, "offsets diff billing --from "+second)
	o.does(0, "reset "+plan, "offsets restore billing --execute --as-of "+first)
	o.does(0, offsets+"orders +0 +41 .*orders +1 +5 [^o]*", "offsets as-of billing 0s")
	o.does(0, diff+"orders +0 +45 +41 +-4\norders +2 +7 +- +-\n", "offsets diff billing --from "+second)
	o.does(0, "reset group billing: 0 offsets change\n", "offsets restore billing --execute --as-of "+first)
	o.does(0, `.*"kind": "delete-offsets",.*"principal": "User:admin",\s*"client_id": "rollcall-admin".*`, "offsets history billing --output json")
}

// TestOperatorSnapshots takes a snapshot of offsets and goes back to it.
func TestOperatorSnapshots(t *testing.T) {
	p := startServe(t, filepath.Join(t.TempDir(), "data"))
	p.ready(t)
	o := &operator{t, p}
	o.does(0, ".*", "topic create orders --partitions 3")
	o.commit("billing", 0, 41)
	o.commit("audit", 1, 7)
	o.does(0, "snapshot all has 2 offsets of 2 groups\n", "offsets snapshot create all")
	o.does(0, "snapshot some has 1 offsets of 1 groups\n", "offsets snapshot create some --prefix b")
	o.does(0, "snapshot one has 1 offsets of 1 groups\n", "offsets snapshot create one --group audit --group audit")
	o.does(1, "rollcall: there is a snapshot \"all\"\n", "offsets snapshot create all")
	o.does(0, "SNAPSHOT +TAKEN +GROUPS +OFFSETS\nall +\\S+ +2 +2\none .*some .*", "offsets snapshot list")
	o.commit("billing", 0, 99)
	o.commit("billing", 1, 99)
	o.does(0, "would reset group billing: 2 offsets .*", "offsets restore billing --snapshot all")
	o.does(0, "reset group billing: .*reset group audit: 0 offsets .*", "offsets restore billing audit --snapshot all --execute")
	o.does(0, "[^9]*orders +0 +41 [^9]*", "group describe billing")
	o.does(1, "rollcall: snapshot \"one\" has no offsets of group \"billing\"\n", "offsets restore billing --snapshot one")
	o.does(1, "rollcall: there is no snapshot \"none\"\n", "offsets restore billing --snapshot none")
	o.does(2, "rollcall: .*", "offsets restore billing")
	o.does(0, "would delete snapshot all with 2 offsets of 2 groups\n", "offsets snapshot delete all")
	o.does(0, "delete snapshot all .*", "offsets snapshot delete all --execute")
	o.does(1, "rollcall: there is no snapshot \"all\"\n", "offsets snapshot delete all")
}

// TestOperatorProducers registers a snapshot for a producer.
func TestOperatorProducers(t *testing.T) {
	p := startServe(t, filepath.Join(t.TempDir(), "data"))
	p.ready(t)
	o := &operator{t, p}
	file := filepath.Join(t.TempDir(), "offsets")
	if err := os.WriteFile(file, []byte("orders 0 42\norders 1 43\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.does(0, "CREATED version 1\n", "producers register job --ttl 2h --from-file "+file)
	o.does(0, "ALREADY_EXISTS version 1\n", "producers register job --from-file "+file)
	o.does(1, "rollcall: INVALID_PRODUCER_ID: .*\n", "producers register a.b --from-file "+file)
	o.does(1, "rollcall: validation failed; body.ttl_ms: .*\n", "producers register long --ttl 31d --from-file "+file)
	o.does(0, "PRODUCER +VERSION +OFFSETS +EXPIRES\njob +1 +2 +\\S+\n", "producers list")
	o.does(0, "producer job: version 1, expires \\S+\nTOPIC +PARTITION +OFFSET\norders +0 +42\norders +1 +43\n", "producers describe job")
	o.does(0, "would delete the snapshot of producer job, version 1 with 2 offsets\n", "producers delete job")
	o.does(0, "delete the snapshot .*", "producers delete job --execute")
	o.does(1, "rollcall: producer \"job\" has no snapshot\n", "producers delete job")
}

// TestOperatorReset has every target of a reset.
func TestOperatorReset(t *testing.T) {
	p := startServe(t, filepath.Join(t.TempDir(), "data"))
	p.ready(t)
	o := &operator{t, p}
	o.does(0, ".*", "topic create orders --partitions 3")
	o.produce(0, 10)
	middle := moment()
	o.produce(0, 10)
	o.produce(1, 5)
	o.commit("a", 0, 7)
	o.commit("b", 0, 3)
	o.commit("b", 1, 4)
	file := filepath.Join(t.TempDir(), "offsets")
	write := func(content string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ flags, want string }{
		{"--to-earliest", "orders +0 +7 +0 +-7\n"},
		{"--to-latest", "orders +0 +7 +20 +\\+13\n"},
		{"--to-latest --topic orders", "orders +0 +7 +20 +\\+13\norders +1 +- +5 +-\norders +2 +- +0 +-\n"},
		{"--to-latest --topic orders:1,2", "orders +1 +- +5 +-\norders +2 +- +0 +-\n"},
		{"--to-current --topic orders:0,1", "orders +1 +- +5 +-\n"},
		{"--to-offset 12", "orders +0 +7 +12 +\\+5\n"},
		{"--to-offset 99", "orders +0 +7 +20 +\\+13\n"},
		{"--shift-by 2", "orders +0 +7 +9 +\\+2\n"},
		{"--shift-by=-100", "orders +0 +7 +0 +-7\n"},
		{"--to-datetime " + middle, "orders +0 +7 +10 +\\+3\n"},
		{"--by-duration 1h", "orders +0 +7 +0 +-7\n"},
		{"--by-duration 0s", "orders +0 +7 +20 +\\+13\n"},
		{"--like-group b", "orders +0 +7 +3 +-4\norders +1 +- +4 +-\n"},
		{"--like-group b --topic orders:1", "orders +1 +- +4 +-\n"},
	} {
		o.does(0, "would reset group a: .*\n.*BY\n"+test.want, "group reset a "+test.flags)
	}
	write("# topic partition offset\norders 0 11\n\"orders\",1,2\n")
	o.does(0, "would reset group a: 2 offsets .*\n.*BY\norders +0 +7 +11 +\\+4\norders +1 +- +2 +-\n", "group reset a --from-file "+file)
	write("orders 0 11\norders 1\n")
	o.does(1, "rollcall: "+file+" line 2: \"orders 1\" is not TOPIC PARTITION OFFSET\n", "group reset a --execute --from-file "+file)
	write("orders 0 11\norders 9 1\ngone 0 1\n")
	o.does(0, "would reset group a: 1 offsets .*", "group reset a --from-file "+file)
	write("gone 0 1\n")
	o.does(1, "rollcall: group \"a\": gone-0 does not exist; its offset 1 is left out\n", "group reset a --from-file "+file)
	o.does(1, "rollcall: --topic: topic \"orders\" has no partition 9; it has 3\n", "group reset a --to-earliest --topic orders:9")
	o.does(2, "rollcall: --to-offset -5: offsets begin at 0\n", "group reset a --to-offset -5")
	o.does(1, "rollcall: no group matches x\\*\n", "group reset --to-earliest --pattern x*")
	o.does(1, "rollcall: group \"c\" has committed nothing; name topics with --topic\n", "group reset c --to-earliest")
	o.does(2, "rollcall: .*none of the others can be.*", "group reset a --to-earliest --to-latest")
	o.does(2, "rollcall: at least one of the flags .*", "group reset a")

	o.does(0, "(would reset group [ab]: .*){2}", "group reset --to-latest --pattern [ab]")
	o.does(0, "(reset group [ab]: .*){2}", "group reset --to-latest --pattern [ab] --execute")
	o.does(0, ".*orders +0 +20 .*", "group describe a")
	o.does(0, ".*orders +0 +20 .*orders +1 +5.*", "group describe b")
	o.does(0, "reset group new: .*", "group reset new --to-earliest --topic orders --execute")
	o.does(0, ".*orders +2 +0 .*", "group describe new")
}

// produce writes n records to a partition of topic orders.
func (o *operator) produce(partition int32, n int) {
	o.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(o.gateway.kafka), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		o.Fatal(err)
	}
	defer client.Close()
	for range n {
		if err := client.ProduceSync(o.Context(), &kgo.Record{Topic: "orders", Partition: partition, Value: []byte("x")}).FirstErr(); err != nil {
			o.Fatal(err)
		}
	}
}
