package api

import "sync/atomic"

const (
	// fetchedBytesMax bounds the records that are on their way to clients at a time,
	// but for fetchedBytesMin or one batch of each Fetch.
	fetchedBytesMax = 256 << 20
	fetchedBytesMin = 64 << 10
)

// fetchBudget shares the memory of responses out among Fetches: clients may ask for
// 50 MiB each and take their time to read it. Whoever comes while much is under way
// gets less at a time.
type fetchBudget struct{ used atomic.Int64 }

// grant returns how many of the bytes that are asked for may be read.
func (b *fetchBudget) grant(want int) int {
	free := fetchedBytesMax - b.used.Load()
	return min(want, int(max(free/4, fetchedBytesMin)))
}

// take counts bytes that were read, or, negative, given back.
func (b *fetchBudget) take(n int) { b.used.Add(int64(n)) }
