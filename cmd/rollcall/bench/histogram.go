package bench

import (
	"math/bits"
	"time"
)

// A histogram counts latencies to within 1.6 %, in memory that does not grow.
type histogram struct {
	buckets [histogramBuckets]uint32
	count   int
}

// Latencies below 128 ns have a bucket each, and every doubling after that has 64.
const (
	histogramStep    = 64
	histogramBuckets = 36 * histogramStep // up to an hour
)

func (h *histogram) add(d time.Duration) {
	h.buckets[min(bucketOf(d), histogramBuckets-1)]++
	h.count++
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.buckets {
		h.buckets[i] += n
	}
	h.count += other.count
}

// quantile is in microseconds; that of an empty histogram is 0.
func (h *histogram) quantile(q float64) float64 {
	rank := int(q * float64(h.count))
	for i, n := range h.buckets {
		if rank -= int(n); rank < 0 {
			return float64(lowest(i)+lowest(i+1)) / 2 / 1000
		}
	}
	return 0
}

func bucketOf(d time.Duration) int {
	v := uint64(max(d, 0))
	shift := max(bits.Len64(v)-7, 0)
	return shift*histogramStep + int(v>>shift)
}

// lowest is the shortest latency of a bucket, in nanoseconds.
func lowest(bucket int) uint64 {
	if bucket < 2*histogramStep {
		return uint64(bucket)
	}
	shift := bucket/histogramStep - 1
	return uint64(bucket-shift*histogramStep) << shift
}
