package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Store counts what the committers of a store write.
type Store struct {
	metrics *Metrics
	seconds *prometheus.HistogramVec
	ops     *prometheus.HistogramVec
	bytes   *prometheus.CounterVec
}

// Store returns the metrics of the store.
func (m *Metrics) Store() *Store {
	return &Store{
		metrics: m,
		seconds: m.histogram("store_commit_seconds", "Time of one write of a committer, its sync included.", timeBuckets, "store"),
		ops:     m.histogram("store_commit_ops", "Writes of shards or partitions that shared one write of a committer.", countBuckets, "store"),
		bytes:   m.counter("store_commit_bytes_total", "Bytes that committers wrote.", "store"),
	}
}

// OnCommit counts one write of the committer of a Pebble, groups or topics.
func (s *Store) OnCommit(name string, ops, bytes int, took time.Duration) {
	s.seconds.WithLabelValues(name).Observe(took.Seconds())
	s.ops.WithLabelValues(name).Observe(float64(ops))
	s.bytes.WithLabelValues(name).Add(float64(bytes))
}

// Free adds a gauge of the free space, as free returns it when it is scraped.
func (s *Store) Free(free func() int64) {
	s.metrics.gaugeFunc("store_free_bytes", "Free space of the file system with the data directory; -1 if it does not tell.",
		func() float64 { return float64(free()) })
}
