package admin

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// throttle lets one line of a kind through in a while and counts those between.
type throttle struct {
	every time.Duration
	// next is when the next line may pass, in nanoseconds of the clock since the
	// process began.
	next    atomic.Int64
	dropped atomic.Int64
}

// started is what throttles count from; only differences matter.
var started = time.Now()

// pass tells whether a line may be logged, and adds how many were not.
func (t *throttle) pass(fields ...zap.Field) ([]zap.Field, bool) {
	now := int64(time.Since(started))
	next := t.next.Load()
	if now < next || !t.next.CompareAndSwap(next, now+int64(t.every)) {
		t.dropped.Add(1)
		return nil, false
	}
	if n := t.dropped.Swap(0); n > 0 {
		fields = append(fields, zap.Int64("dropped", n))
	}
	return fields, true
}
