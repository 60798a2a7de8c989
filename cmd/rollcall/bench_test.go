package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rollcall-mq/rollcall/cmd/rollcall/bench"
)

// TestBenchBadInput has what users get wrong: one line that says what and what to do.
func TestBenchBadInput(t *testing.T) {
	const addr = "127.0.0.1:1" // where nobody listens
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"", exitUsage, "name a server, for instance: rollcall bench 127.0.0.1:9092"},
		{"localhost", exitUsage, `"localhost" is not [NAME=]HOST:PORT[@PID]`},
		{"a=" + addr + " a=" + addr, exitUsage, `two servers are called "a"`},
		{"--loads commit,produce " + addr, exitUsage, `there is no load "produce", only idle-connections,`},
		{"--rounds 0 " + addr, exitUsage, "--rounds is 0, but must be from 1 to 100"},
		{"--connections 1,x " + addr, exitUsage, "--connections"},
		{"--connections 20000 " + addr, exitUsage, "--connections is 20000, but must be from 1 to 10000"},
		{"--join 5 " + addr, exitUsage, `"5" is not MEMBERSxGROUPS`},
		{"--join 5x6 " + addr, exitUsage, "--join is 5x6, but must be"},
		{"--time 1ms " + addr, exitUsage, "--time is 1ms, but must be from 10ms to 10m0s"},
		{"--timeout -1s " + addr, exitUsage, "--timeout must be more than 0"},
		{"--output xml " + addr, exitUsage, "must be table or json"},
		{addr, exitFailed, "cannot connect to " + addr + ": connect: connection refused"},
		{addr + "@2147483647", exitFailed, "cannot connect to"},
	} {
		stdout, stderr, code := runToEnd(t, nil, append([]string{"bench"}, strings.Fields(test.args)...)...)
		if code != test.code || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, test.want) {
			t.Errorf("bench %s: code %d, %q, %q; want code %d and one line with %q", test.args, code, stdout, stderr, test.code, test.want)
		}
	}
}

// TestBench measures a gateway by the command, once for people and once for programs.
func TestBench(t *testing.T) {
	p := startServe(t, t.TempDir())
	p.ready(t)
	args := []string{"bench", "--time", "20ms", "--rounds", "1", "--loads", "commit", "--connections", "2", "--depth", "1"}
	stdout, stderr, code := runToEnd(t, nil, append(args, "us="+p.kafka)...)
	if lines := strings.Split(stdout, "\n"); code != 0 || stderr != "" || len(lines) != 3 ||
		!strings.HasPrefix(lines[0], "LOAD") || !strings.HasPrefix(lines[1], "commit/2/1  ") || !strings.Contains(lines[1], " requests/s") {
		t.Errorf("code %d, %q\n%s", code, stderr, stdout)
	}
	stdout, stderr, code = runToEnd(t, nil, append(args, "--output", "json", "us="+p.kafka)...)
	var r bench.Result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 || stderr != "" || r.Load != "commit/2/1" || r.Server != "us" || r.PerSecond <= 0 {
		t.Errorf("code %d, %v, %q\n%s", code, err, stderr, stdout)
	}
	stdout, stderr, code = runToEnd(t, nil, append(args, "--timeout", "1ms", p.kafka)...)
	if code != exitFailed || stdout != "" || !strings.Contains(stderr, "not finished after 1ms") {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
}
