package rest

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseTime reads a point in time: RFC 3339, or a duration back from now such as
// 90s, 2h30m or 7d.
func ParseTime(s string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	if d, err := ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%q is neither a time like 2026-01-31T12:00:00Z nor a duration back from now like 2h30m or 7d", s)
}

// ParseDuration is [time.ParseDuration] with days, as in 7d or 1d12h.
func ParseDuration(s string) (time.Duration, error) {
	days, rest, ok := strings.Cut(s, "d")
	if !ok {
		return time.ParseDuration(s)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration", s)
	}
	d := time.Duration(n) * 24 * time.Hour
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	return d + more, err
}

// formatTime shows a Unix time in milliseconds.
func formatTime(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
