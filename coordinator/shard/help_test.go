package shard_test

import (
	"testing"
	"testing/synctest"

	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// slowListener stops in the first turn that it hears of.
type slowListener struct {
	shard.NopListener
	in, out chan struct{}
}

func (l *slowListener) OnTurn(uint32, shard.Turn) {
	select {
	case l.in <- struct{}{}:
		<-l.out
	default:
	}
}

// TestHelperSeesWhatCameMeanwhile: a submitter does a turn itself; an event that
// comes while it is at it, and whose submitter can therefore not help, is stepped.
func TestHelperSeesWhatCameMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowListener{in: make(chan struct{}, 1), out: make(chan struct{})}
		cfg := config()
		cfg.Listener = l
		r := run(t, shardtest.NewLog(), cfg)
		synctest.Wait()
		go r.send("first", "a", fetch())
		<-l.in
		l.in <- struct{}{} // No second stop.
		r.submit("second", "b", fetch())
		r.book.wantOrder(t, "first")
		close(l.out)
		synctest.Wait()
		r.book.wantOrder(t, "first", "second")
	})
}

// TestHelperAnswersBeforeSubmitReturns: what a heartbeat or a fetch costs is one
// turn on the goroutine that brings it.
func TestHelperAnswersBeforeSubmitReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, shardtest.NewLog(), config())
		synctest.Wait()
		if a := r.send("fetch", "a", fetch()); a.came() != 1 {
			t.Error("the reply has not come")
		}
		if a := r.send("commit", "a", commit(1)); a.came() != 0 {
			t.Error("a commit did not leave its turn to Run")
		}
		synctest.Wait()
		r.book.wantOrder(t, "fetch", "commit")
	})
}
