// Command member is one member of a consumer group on one of the pure-Go client
// libraries. It reports what it owns and processes on standard output.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/rollcall-mq/rollcall/compat-tests/internal/event"
)

func main() {
	flags, ctx := event.Parse()
	run := map[string]func(context.Context, event.Flags) error{
		"sarama":   runSarama,
		"franz-go": runFranz,
		"kafka-go": runKafkaGo,
	}[flags.Client]
	if run == nil {
		fmt.Fprintf(os.Stderr, "member: unknown client %q\n", flags.Client)
		os.Exit(2)
	}
	if err := run(ctx, flags); err != nil {
		event.Emit(event.Event{Kind: event.Error, Text: err.Error()})
		os.Exit(1)
	}
}
