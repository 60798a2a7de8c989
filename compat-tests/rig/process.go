package rig

import (
	"fmt"
	"os"
	"strings"
)

// Pid is the id of the server's process.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// RSS is the resident memory of the server's process in bytes.
func (s *Server) RSS() int64 {
	s.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Pid()))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	s.t.Fatal("the process has no VmRSS")
	return 0
}
