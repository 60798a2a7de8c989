package shard

import "runtime"

// AwaitLine waits until n submitters wait for room in the inbox.
func AwaitLine(s *Shard, n int) {
	for {
		s.in.mu.Lock()
		waiting := len(s.in.line)
		s.in.mu.Unlock()
		if waiting == n {
			return
		}
		runtime.Gosched()
	}
}

// Known tells how many groups the shard has in memory.
func Known(s *Shard) int {
	s.turn.Lock()
	defer s.turn.Unlock()
	return len(s.groups)
}
