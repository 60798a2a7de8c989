package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The names of the servers, in the order of the tables.
const (
	rollcallName  = "rollcall"
	kafkaName     = "kafka"
	kafkaSyncName = "kafka-sync"
	kfakeName     = "kfake"
)

// server is one that can be started, stopped and started again on the same data.
type server interface {
	name() string
	title() string
	addr() string
	pid() int
	// start returns when it accepts connections.
	start(ctx context.Context) error
	// stop ends it in order, or with SIGKILL.
	stop(kill bool) error
}

// servers returns all of them, with their commands in bin and their data below dir.
func servers(bin, dir string, port int) []server {
	return []server{newRollcall(bin, dir, port), newKafka(dir, kafkaName, port+10), newKafka(dir, kafkaSyncName, port+20), newKfake(bin, dir, port+30)}
}

var titles = map[string]string{
	rollcallName:  "Rollcall, syncing",
	kafkaName:     "Kafka, not syncing",
	kafkaSyncName: "Kafka, syncing",
	kfakeName:     "kfake, in memory",
}

// endpoint is what all servers have.
type endpoint struct {
	id   string
	port int
}

func (e endpoint) name() string  { return e.id }
func (e endpoint) title() string { return titles[e.id] }
func (e endpoint) addr() string  { return net.JoinHostPort("127.0.0.1", strconv.Itoa(e.port)) }

// build puts the commands of this repository into dir, Rollcall as make build does.
func build(ctx context.Context, dir string) error {
	for _, b := range []struct{ in, pkg, name, profile string }{
		{"..", "./cmd/rollcall", "rollcall", "cmd/rollcall/cpu.pgo"},
		{".", "./kfake", "kfake", "off"},
	} {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-pgo="+b.profile, "-o", filepath.Join(dir, b.name), b.pkg)
		cmd.Dir, cmd.Env = b.in, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build %s in %s: %w (start this in compat-tests)\n%s", b.pkg, b.in, err, out)
		}
	}
	return nil
}

// child is a server that is a process of ours.
type child struct {
	endpoint
	args []string
	env  []string
	log  string
	cmd  *exec.Cmd
}

func newRollcall(bin, dir string, port int) *child {
	c := &child{endpoint: endpoint{rollcallName, port}, log: filepath.Join(dir, "rollcall.log")}
	c.args = []string{filepath.Join(bin, "rollcall"), "serve", "--listen", c.addr(), "--admin", "", "--data-dir", filepath.Join(dir, "rollcall-data")}
	c.env = []string{"ROLLCALL_GROUP_INITIAL_REBALANCE_DELAY_MS=0"}
	return c
}

func newKfake(bin, dir string, port int) *child {
	return &child{endpoint: endpoint{kfakeName, port}, log: filepath.Join(dir, "kfake.log"), args: []string{filepath.Join(bin, "kfake"), strconv.Itoa(port)}}
}

func (c *child) pid() int { return c.cmd.Process.Pid }

func (c *child) start(ctx context.Context) error {
	log, err := os.Create(c.log)
	if err != nil {
		return err
	}
	defer log.Close()
	c.cmd = exec.Command(c.args[0], c.args[1:]...)
	c.cmd.Env = append(os.Environ(), c.env...)
	c.cmd.Stdout, c.cmd.Stderr = log, log
	// An interrupt is for this command, which then stops its servers in order.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); ; {
		conn, err := net.DialTimeout("tcp", c.addr(), time.Second)
		if err == nil {
			return conn.Close()
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			said, _ := os.ReadFile(c.log) // what there is
			return errors.Join(fmt.Errorf("%s does not listen on %s: %w\n%s", c.id, c.addr(), err, said), c.stop(true))
		}
		<-tick.C
	}
}

func (c *child) stop(kill bool) error {
	sig := syscall.SIGTERM
	if kill {
		sig = syscall.SIGKILL
	}
	_ = c.cmd.Process.Signal(sig) // it may have ended: then Wait says how
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == sig {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.id, err)
	}
	return nil
}

// kafka is an Apache Kafka under the script beside this directory.
type kafka struct {
	endpoint
	dir  string
	conf []string
}

func newKafka(dir, name string, port int) *kafka {
	k := &kafka{endpoint: endpoint{name, port}, dir: filepath.Join(dir, name), conf: []string{"group.initial.rebalance.delay.ms=0"}}
	if name == kafkaSyncName {
		k.conf = append(k.conf, "log.flush.interval.messages=1")
	}
	return k
}

func (k *kafka) script(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join("kafka", "kafka"), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("kafka %s: %w", args[0], err)
	}
	return nil
}

func (k *kafka) start(ctx context.Context) error {
	err := k.script(ctx, append([]string{"start", k.dir, strconv.Itoa(k.port)}, k.conf...)...)
	if err != nil && k.pid() != 0 {
		_ = k.stop(true) // the script was interrupted, or gave up
	}
	return err
}

func (k *kafka) stop(kill bool) error {
	how := "stop"
	if kill {
		how = "kill"
	}
	return k.script(context.Background(), how, k.dir)
}

func (k *kafka) pid() int {
	b, _ := os.ReadFile(filepath.Join(k.dir, "pid"))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid // 0, if it is not there, means to look for it
}
