package api

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { time.Sleep(1) })
	time.Sleep(1)
	wait()
}

// wait runs in a bubble.
func wait() { time.Sleep(1) }
