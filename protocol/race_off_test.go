//go:build !race

package protocol

// raced tells whether the race detector is on, which changes what is allocated.
const raced = false
