// Command member is one member of a consumer group, or a producer, on one of the pure-Go
// client libraries; it also lends this interface to programs that have one of their own,
// kcat and Apache Kafka's verifiable clients. It reports what it owns and processes on
// standard output.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/rollcall-mq/rollcall/compat-tests/internal/event"
)

// A client is a library or program: consume runs a member until the context ends, produce
// writes what the configuration says.
type client struct {
	module           string // of the library, whose version is reported
	consume, produce func(context.Context, event.Config) error
}

var clients = map[string]client{
	"sarama":     {"github.com/IBM/sarama", consumeSarama, produceSarama},
	"franz-go":   {"github.com/twmb/franz-go", consumeFranz, produceFranz},
	"kafka-go":   {"github.com/segmentio/kafka-go", consumeKafkaGo, produceKafkaGo},
	"kcat":       {"", consumeKcat, produceKcat},
	"verifiable": {"", consumeVerifiable, produceVerifiable},
}

func main() {
	config, ctx := event.Parse()
	c, known := clients[config.Client]
	if !known {
		fmt.Fprintf(os.Stderr, "member: unknown client %q\n", config.Client)
		os.Exit(2)
	}
	if c.module != "" {
		event.Emit(event.Event{Kind: event.Version, Text: versionOf(c.module)})
	}
	run := c.consume
	if config.Produce > 0 {
		run = c.produce
	}
	if err := run(ctx, config); err != nil {
		emitError(err)
		os.Exit(1)
	}
}

// versionOf returns the version of a module that this program is built with.
func versionOf(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if dep.Path == module {
			return dep.Version
		}
	}
	return "unknown"
}

func emitError(err error) { event.Emit(event.Event{Kind: event.Error, Text: err.Error()}) }

func emitRecord(partition int32, offset int64, value []byte) {
	event.Emit(event.Event{Kind: event.Record, Partition: partition, Offset: offset, Text: string(value)})
}

func emitProduced(partition int32, offset int64, value string) {
	event.Emit(event.Event{Kind: event.Produced, Partition: partition, Offset: offset, Text: value})
}
