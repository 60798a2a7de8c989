// Package event is what a member program tells its test: one JSON object a line on
// standard output, in the order in which things happened to it.
package event

import (
	"encoding/json"
	"os"
	"sync"
	"time"
)

// The kinds of events.
const (
	Version  = "version"  // Text is the version of the client library
	Claim    = "claim"    // the member owns the partition from now on
	Release  = "release"  // it has stopped working on the partition
	Record   = "record"   // it has processed the record at Offset, whose value is Text
	Produced = "produced" // the record with the value Text was acknowledged at Offset
	Error    = "error"    // its client library reported an error
)

// Event is one line. Nanos is a clock that all processes of a machine share.
type Event struct {
	Kind       string `json:"kind"`
	Nanos      int64  `json:"nanos"`
	Member     string `json:"member,omitempty"`
	Generation int32  `json:"generation,omitempty"`
	Partition  int32  `json:"partition"`
	Offset     int64  `json:"offset,omitempty"`
	Text       string `json:"text,omitempty"`
}

var (
	mu  sync.Mutex
	out = json.NewEncoder(os.Stdout)
)

// Emit writes one event, stamped with the time.
func Emit(e Event) {
	mu.Lock()
	defer mu.Unlock()
	e.Nanos = time.Now().UnixNano()
	_ = out.Encode(e) // a test that went away is noticed by the closed pipe's signal
}
