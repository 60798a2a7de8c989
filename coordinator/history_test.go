package coordinator

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/coordinator/shard/shardtest"
)

// TestTrimHistory commits for two hours of virtual time under three limits and looks
// at what is left of the change logs.
func TestTrimHistory(t *testing.T) {
	const batches = 2 * 60
	for _, test := range []struct {
		name     string
		history  History
		min, max int
	}{
		{"all fits", History{Retention: 3 * time.Hour, Bytes: 1 << 30}, batches, batches},
		{"an hour", History{Retention: time.Hour, Bytes: 1 << 30}, 58, 61},
		{"2000 bytes", History{Retention: 3 * time.Hour, Bytes: 2000}, 50, 75},
		{"off", History{Retention: 0, Bytes: 1 << 30}, 0, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := shardtest.NewLog()
				r, ended := started(t, shard.Config{Group: group.Config{OffsetsRetention: 1 << 40}}, 4, log)
				ctx, cancel := context.WithCancel(t.Context())
				trimmed := make(chan struct{})
				go func() {
					defer close(trimmed)
					r.TrimHistory(ctx, test.history, func(n uint32, err error) { t.Errorf("shard %d: %v", n, err) })
				}()
				for i := range batches {
					if got := ask(r, fmt.Sprint("g", i%8), commit(int64(i))); got.Code != group.None {
						t.Fatal(got)
					}
					time.Sleep(time.Minute)
				}
				time.Sleep(2 * trimInterval) // a fold, then a trim
				synctest.Wait()
				left := 0
				for n := range r.Shards() {
					left += len(log.Batches(n))
				}
				if left < test.min || left > test.max {
					t.Errorf("%d batches are left, want %d to %d", left, test.min, test.max)
				}
				cancel()
				<-trimmed
				stop(t, r, ended)
			})
		})
	}
}
