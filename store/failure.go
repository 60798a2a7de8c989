package store

import (
	"errors"
	"sync"
)

// ErrClosed is what operations get that come after Close.
var ErrClosed = errors.New("store is closed")

// Failure is the one terminal error of a store. What it holds is never taken
// back: after a failed write Pebble may show what is not on disk, so the only
// way on is to stop the process and let the restart replay what is durable. All
// Pebbles of a store share one, so that nothing is acknowledged after it.
type Failure struct {
	mu       sync.Mutex
	err      error
	failed   chan struct{}
	onFailed []func()
}

// NewFailure returns a Failure that has not happened.
func NewFailure() *Failure { return &Failure{failed: make(chan struct{})} }

// Failed is closed when the store has failed; [Failure.Err] then says why.
func (f *Failure) Failed() <-chan struct{} { return f.failed }

// Err is nil as long as the store works.
func (f *Failure) Err() error {
	select {
	case <-f.failed:
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.err
	default:
		return nil
	}
}

// fail makes err terminal unless another error was first.
func (f *Failure) fail(err error) {
	f.mu.Lock()
	if f.err != nil {
		f.mu.Unlock()
		return
	}
	f.err = err
	calls := f.onFailed
	close(f.failed)
	f.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

// notify has call called once, from any goroutine, when the store fails.
func (f *Failure) notify(call func()) {
	f.mu.Lock()
	failed := f.err != nil
	f.onFailed = append(f.onFailed, call)
	f.mu.Unlock()
	if failed {
		call()
	}
}
