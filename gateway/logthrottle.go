package gateway

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

const (
	// warningsMax warnings are logged in each warningPeriod: hostile clients are
	// worth a line, not a full disk.
	warningsMax   = 20
	warningPeriod = 10 * time.Second
)

// logThrottle counts lines.
type logThrottle struct {
	since   atomic.Int64 // start of the period, in nanoseconds
	lines   atomic.Int64
	dropped atomic.Int64
}

// allow tells whether one more line may be logged, and how many were not since the
// last one that was.
func (t *logThrottle) allow(now time.Time) (dropped int64, ok bool) {
	since := t.since.Load()
	if now.UnixNano()-since >= int64(warningPeriod) && t.since.CompareAndSwap(since, now.UnixNano()) {
		t.lines.Store(0)
	}
	if t.lines.Add(1) > warningsMax {
		t.dropped.Add(1)
		return 0, false
	}
	return t.dropped.Swap(0), true
}

// warn logs a warning unless there were too many of late.
func (s *Server) warn(message string, fields ...zap.Field) {
	dropped, ok := s.warnings.allow(time.Now())
	if !ok {
		return
	}
	if dropped > 0 {
		fields = append(fields, zap.Int64("dropped", dropped))
	}
	s.log.Warn(message, fields...)
}
