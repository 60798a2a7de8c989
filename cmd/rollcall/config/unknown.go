package config

import "strings"

// foreign are keys of Kafka's that Rollcall knows and has no use for. Those whose
// absence changes what a user gets are refused; those that only tune Kafka's
// insides are accepted with a warning, so that a broker's settings can be kept.
var foreign = map[string]struct {
	refused bool
	why     string
}{
	"broker.id":                      {true, "set node.id"},
	"log.dir":                        {true, "set data.dir"},
	"log.dirs":                       {true, "set data.dir"},
	"security.inter.broker.protocol": {true, "there are no other brokers"},
	"authorizer.class.name":          {true, "there is no authorization: every client may do everything"},
	"super.users":                    {true, "there is no authorization: every client may do everything"},
	"sasl.enabled.mechanisms":        {true, "there is no authentication: listeners are plain text"},
	"listener.security.protocol.map": {true, "listeners are plain text, whatever their names"},
	"offsets.commit.required.acks":   {true, "Kafka 4.0 removed it; see store.sync"},
	"group.coordinator.new.enable":   {true, "Kafka 4.1 removed it"},

	"max.connections.per.ip": {true, "max.connections counts all addresses"},

	"offsets.topic.replication.factor":                 {false, "there is one copy of everything"},
	"default.replication.factor":                       {false, "there is one copy of everything"},
	"min.insync.replicas":                              {false, "there is one copy of everything"},
	"process.roles":                                    {false, "one process does everything"},
	"controller.quorum.voters":                         {false, "one process does everything"},
	"controller.listener.names":                        {false, "one process does everything"},
	"inter.broker.listener.name":                       {false, "there are no other brokers"},
	"offsets.load.buffer.size":                         {false, "the store reads in its own units"},
	"offsets.topic.segment.bytes":                      {false, "the store has no segments"},
	"offsets.topic.compression.codec":                  {false, "the store compresses in its own way"},
	"group.coordinator.threads":                        {false, "each shard has a goroutine"},
	"group.coordinator.background.threads":             {false, "each shard has a goroutine"},
	"group.coordinator.append.linger.ms":               {false, "commits that arrive during a sync share the next one"},
	"group.coordinator.cached.buffer.max.bytes":        {false, "buffers are sized by what is in flight"},
	"num.network.threads":                              {false, "each connection has a goroutine"},
	"num.io.threads":                                   {false, "each connection has a goroutine"},
	"background.threads":                               {false, "each shard has a goroutine"},
	"queued.max.requests":                              {false, "see queued.max.request.bytes"},
	"socket.send.buffer.bytes":                         {false, "the system's default is used"},
	"socket.receive.buffer.bytes":                      {false, "the system's default is used"},
	"log.flush.interval.messages":                      {false, "see store.sync"},
	"log.flush.interval.ms":                            {false, "see store.sync"},
	"log.segment.bytes":                                {false, "the store has no segments"},
	"num.recovery.threads.per.data.dir":                {false, "all shards recover at the same time"},
	"transaction.state.log.replication.factor":         {false, "there is one copy of everything"},
	"transaction.state.log.min.isr":                    {false, "there is one copy of everything"},
	"share.coordinator.state.topic.min.isr":            {false, "there is one copy of everything"},
	"share.coordinator.state.topic.replication.factor": {false, "there is one copy of everything"},
}

// refusedPrefixes begin names of keys that promise security which is not there.
var refusedPrefixes = []string{"ssl.", "sasl.", "listener.name."}

// unknown reports a key that is not in the table.
func unknown(problems *Error, warnings *[]string, name, source string) {
	if f, ok := foreign[name]; ok {
		if f.refused {
			problems.add("%s: %s is not used by Rollcall: %s", source, name, f.why)
		} else {
			*warnings = append(*warnings, source+": "+name+" has no effect: "+f.why)
		}
		return
	}
	for _, prefix := range refusedPrefixes {
		if strings.HasPrefix(name, prefix) {
			problems.add("%s: %s is not used by Rollcall: listeners are plain text", source, name)
			return
		}
	}
	nearest := byDistance(name)[0]
	if d := distance(name, nearest); d <= max(2, len(name)/3) {
		problems.add("%s: unknown key %q; did you mean %s?", source, name, nearest)
		return
	}
	problems.add("%s: unknown key %q; `rollcall config show` lists all keys", source, name)
}

// distance is the number of bytes to insert, delete, replace or swap with their
// neighbour that make b out of a.
func distance(a, b string) int {
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = min(change, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
