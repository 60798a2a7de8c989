package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/rollcall-mq/rollcall/compat-tests/internal/event"
)

// kcat makes a command with the settings as librdkafka's properties.
func kcat(f event.Config, properties ...string) *exec.Cmd {
	args := []string{"-b", f.Addr}
	for _, p := range append([]string{"client.id=" + f.ClientID}, properties...) {
		args = append(args, "-X", p)
	}
	return exec.Command("kcat", args...)
}

// emitKcatVersion reports what `kcat -V` says of itself and of its librdkafka.
func emitKcatVersion() {
	out, _ := exec.Command("kcat", "-V").CombinedOutput() // without it the version is unknown
	version := "unknown"
	if m := regexp.MustCompile(`Version (\S+) \(.*(librdkafka \S+)`).FindSubmatch(out); m != nil {
		version = fmt.Sprintf("%s, %s", m[1], m[2])
	}
	event.Emit(event.Event{Kind: event.Version, Text: version})
}

var (
	kcatRebalanced = regexp.MustCompile(`^% Group \S+ rebalanced \(memberid (\S*)\): (assigned|revoked): (.*)$`)
	kcatPartition  = regexp.MustCompile(`\[(\d+)\]`)
)

func consumeKcat(ctx context.Context, f event.Config) error {
	emitKcatVersion()
	isolation := "read_uncommitted"
	if f.Committed {
		isolation = "read_committed"
	}
	p := program{Cmd: kcat(f, "partition.assignment.strategy="+f.Strategy, "auto.offset.reset=earliest", "isolation.level="+isolation,
		"session.timeout.ms="+strconv.Itoa(f.SessionMs), "max.poll.interval.ms="+strconv.Itoa(max(f.RebalanceMs, f.SessionMs)),
		"heartbeat.interval.ms="+strconv.Itoa(f.HeartbeatMs), "fetch.wait.max.ms=250", "auto.commit.interval.ms=500")}
	p.Args = append(p.Args, "-G", f.Group, "-u", "-E", "-f", `%p %o %s\n`, f.Topic)
	p.stdout = func(line string) {
		var partition int32
		var offset int64
		var value string
		if n, _ := fmt.Sscan(line, &partition, &offset, &value); n != 3 {
			emitError(fmt.Errorf("kcat printed %q", line))
			return
		}
		emitRecord(partition, offset, []byte(value))
	}
	p.stderr = func(line string) {
		m := kcatRebalanced.FindStringSubmatch(line)
		if m == nil {
			fmt.Fprintln(os.Stderr, line)
			return
		}
		kind := map[string]string{"assigned": event.Claim, "revoked": event.Release}[m[2]]
		for _, part := range kcatPartition.FindAllStringSubmatch(m[3], -1) {
			number, _ := strconv.ParseInt(part[1], 10, 32) // the pattern has digits only
			event.Emit(event.Event{Kind: kind, Member: m[1], Partition: int32(number)})
		}
	}
	return p.run(ctx)
}

// produceKcat leaves it to kcat where each record goes; it does not say where that was.
func produceKcat(ctx context.Context, f event.Config) error {
	emitKcatVersion()
	p := program{Cmd: kcat(f, "enable.idempotence="+strconv.FormatBool(f.Idempotent), "acks=-1")}
	p.Args = append(p.Args, "-P", "-t", f.Topic, "-z", f.Compression)
	if f.Transactional != "" {
		p.Args = append(p.Args, "-X", "transactional.id="+f.Transactional)
	}
	var lines strings.Builder
	for n := range f.Produce {
		fmt.Fprintln(&lines, f.Value(n))
	}
	p.Stdin = strings.NewReader(lines.String())
	if err := p.run(ctx); err != nil {
		return err
	}
	for n := range f.Produce {
		emitProduced(-1, -1, f.Value(n))
	}
	return nil
}
