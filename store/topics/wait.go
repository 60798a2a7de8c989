package topics

import (
	"sync/atomic"
	"time"
)

// Waiter is somebody who waits for records: a parked Fetch.
type Waiter struct {
	// missing is how many bytes are still wanted.
	missing atomic.Int64
	fired   atomic.Bool
	wake    func()
	timer   *time.Timer
	nodes   []waitNode
}

// waitNode is a waiter's place in the list of one partition.
type waitNode struct {
	waiter    *Waiter
	partition *Partition
	// committed: only records that are committed are waited for.
	committed  bool
	prev, next *waitNode
}

// Seen is a partition and the limit that it had when its reader looked.
type Seen struct {
	Partition *Partition
	Limit     int64
	// Committed: the reader reads committed records only.
	Committed bool
}

// Wait calls wake once, from any goroutine: when bytes more have become readable
// in the partitions together, when one of them is gone, or after timeout. It
// returns nil, and does not call wake, if something has come since the reader
// looked. wake must not block. The waiter must be stopped in the end, also after it
// has been woken.
func Wait(parts []Seen, bytes int64, timeout time.Duration, wake func()) *Waiter {
	w := &Waiter{wake: wake, nodes: make([]waitNode, len(parts))}
	w.missing.Store(bytes)
	for i, s := range parts {
		if !w.join(&w.nodes[i], s) {
			w.leave()
			if w.fired.CompareAndSwap(false, true) {
				return nil
			}
			return w // woken already by a partition before this one
		}
	}
	w.timer = time.AfterFunc(timeout, w.fire)
	return w
}

// join puts a node at the head of a partition's list, unless records have come or
// the topic has gone.
func (w *Waiter) join(n *waitNode, s Seen) bool {
	p := s.Partition
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Limit(s.Committed) != s.Limit || p.Topic.deleted.Load() {
		return false
	}
	if p.Topic.log.releasing.Load() {
		w.fire()
	}
	n.waiter, n.partition, n.committed = w, p, s.Committed
	n.next = p.waiting
	if n.next != nil {
		n.next.prev = n
	}
	p.waiting = n
	return true
}

// Stop takes the waiter out of all lists. wake may be running, or have run.
func (w *Waiter) Stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.leave()
}

func (w *Waiter) leave() {
	for i := range w.nodes {
		if n := &w.nodes[i]; n.partition != nil {
			n.leave()
		}
	}
}

func (n *waitNode) leave() {
	p := n.partition
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case n.prev != nil:
		n.prev.next = n.next
	default:
		p.waiting = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	}
	*n = waitNode{}
}

func (w *Waiter) fire() {
	if w.fired.CompareAndSwap(false, true) {
		w.wake()
	}
}
