package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rollcall-mq/rollcall/compat-tests/internal/event"
)

// A verifiableLine is what Kafka's VerifiableConsumer and VerifiableProducer print, as far
// as it matters here.
type verifiableLine struct {
	Name       string
	Partitions []struct{ Partition int32 }
	Partition  int32
	Offset     int64
	Value      string
	Success    *bool
	Error      string
	Message    string
	Exception  string
}

// verifiable makes a command of one of the two, with a file of settings that ends with
// the returned function. KAFKA_LIB is the directory of Kafka's jars, KAFKA_JAVA the command
// that runs a class of them, an argument a line.
func verifiable(f event.Config, class string, settings ...string) (*exec.Cmd, func(), error) {
	lib := os.Getenv("KAFKA_LIB")
	version := "unknown"
	if jars, _ := filepath.Glob(filepath.Join(lib, "kafka-clients-*.jar")); len(jars) == 1 {
		version = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(jars[0]), "kafka-clients-"), ".jar")
	}
	event.Emit(event.Event{Kind: event.Version, Text: version})
	file, err := os.CreateTemp("", "verifiable")
	if err != nil {
		return nil, nil, err
	}
	remove := func() { _ = os.Remove(file.Name()) }
	settings = append(settings, "client.id="+f.ClientID)
	if _, err := file.WriteString(strings.Join(settings, "\n")); err != nil {
		return nil, remove, err
	}
	java := strings.Split(os.Getenv("KAFKA_JAVA"), "\n")
	args := append(java[1:], "org.apache.kafka.tools."+class, "--bootstrap-server", f.Addr, "--topic", f.Topic, "--command-config", file.Name())
	return exec.Command(java[0], args...), remove, file.Close()
}

// consumeVerifiable knows the assignors of Kafka; the cooperative one says "revoked" for
// what is taken away and "assigned" for what is new, as the others say it for everything.
func consumeVerifiable(ctx context.Context, f event.Config) error {
	assignor := map[string]string{
		"range": "RangeAssignor", "roundrobin": "RoundRobinAssignor", "sticky": "StickyAssignor",
		"cooperative-sticky": "CooperativeStickyAssignor",
	}[f.Strategy]
	isolation := "read_uncommitted"
	if f.Committed {
		isolation = "read_committed"
	}
	cmd, remove, err := verifiable(f, "VerifiableConsumer", "heartbeat.interval.ms="+strconv.Itoa(f.HeartbeatMs),
		"max.poll.interval.ms="+strconv.Itoa(max(f.RebalanceMs, f.SessionMs)), "fetch.max.wait.ms=250", "isolation.level="+isolation)
	if err != nil {
		return err
	}
	defer remove()
	cmd.Args = append(cmd.Args, "--group-id", f.Group, "--session-timeout", strconv.Itoa(f.SessionMs), "--verbose",
		"--reset-policy", "earliest", "--assignment-strategy", "org.apache.kafka.clients.consumer."+assignor)
	if f.InstanceID != "" {
		cmd.Args = append(cmd.Args, "--group-instance-id", f.InstanceID)
	}
	return program{Cmd: cmd, stdout: func(line string) {
		l := readVerifiable(line)
		switch l.Name {
		case "partitions_assigned", "partitions_revoked":
			kind := event.Claim
			if l.Name == "partitions_revoked" {
				kind = event.Release
			}
			for _, p := range l.Partitions {
				event.Emit(event.Event{Kind: kind, Partition: p.Partition})
			}
		case "record_data":
			emitRecord(l.Partition, l.Offset, []byte(l.Value))
		case "offsets_committed":
			if l.Success == nil || !*l.Success {
				emitError(fmt.Errorf("commit: %s", line))
			}
		}
	}}.run(ctx)
}

func produceVerifiable(ctx context.Context, f event.Config) error {
	cmd, remove, err := verifiable(f, "VerifiableProducer", "compression.type="+f.Compression,
		"enable.idempotence="+strconv.FormatBool(f.Idempotent), "linger.ms=10", "retries=10")
	if err != nil {
		return err
	}
	defer remove()
	cmd.Args = append(cmd.Args, "--max-messages", strconv.Itoa(f.Produce), "--value-prefix", strconv.Itoa(f.Prefix),
		"--repeating-keys", strconv.Itoa(f.Produce))
	return program{Cmd: cmd, stdout: func(line string) {
		switch l := readVerifiable(line); l.Name {
		case "producer_send_success":
			emitProduced(l.Partition, l.Offset, l.Value)
		case "producer_send_error":
			emitError(fmt.Errorf("%s: %s", l.Exception, l.Message))
		}
	}}.run(ctx)
}

// readVerifiable reads a line; what is not one of theirs has no name.
func readVerifiable(line string) verifiableLine {
	var l verifiableLine
	if err := json.Unmarshal([]byte(line), &l); err != nil {
		fmt.Fprintln(os.Stderr, line)
		return verifiableLine{}
	}
	return l
}
