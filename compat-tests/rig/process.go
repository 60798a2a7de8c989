package rig

import (
	"fmt"
	"os"
	"strings"
)

// Pid is the id of the server's process.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Written is how many bytes the server's process has caused to be written to the disk,
// in whole pages of the file system.
func (s *Server) Written() int64 {
	s.t.Helper()
	return s.proc("io", "write_bytes: %d")
}

// RSS is the resident memory of the server's process in bytes.
func (s *Server) RSS() int64 {
	s.t.Helper()
	return s.proc("status", "VmRSS: %d kB") << 10
}

// proc reads a number of a line of a file below /proc.
func (s *Server) proc(file, line string) int64 {
	s.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", s.Pid(), file))
	if err != nil {
		s.t.Fatal(err)
	}
	for l := range strings.Lines(string(b)) {
		var n int64
		if found, _ := fmt.Sscanf(l, line, &n); found == 1 {
			return n
		}
	}
	s.t.Fatalf("/proc/%d/%s has no %q", s.Pid(), file, line)
	return 0
}
