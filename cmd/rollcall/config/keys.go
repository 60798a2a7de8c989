package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall-mq/rollcall/gateway"
)

// Key is one configuration key.
type Key struct {
	// Name is Kafka's name where Kafka has the key.
	Name string
	// Section groups keys in docs/configuration.md.
	Section string
	// Type is int, boolean, string or list, for the documentation.
	Type string
	// Default is the value as a file would give it.
	Default string
	// Range says what is accepted, in words.
	Range string
	// Doc says what the key does, in one or two sentences.
	Doc string
	// Own: Kafka has no key of this name.
	Own bool
	// Secret values are masked wherever the configuration is shown.
	Secret bool

	// parse sets the field of the Config that the key is for.
	parse func(c *Config, text string) error
}

// The sections of the documentation, in order.
const (
	sectionNode    = "Node and listeners"
	sectionAdmin   = "Administration and logs"
	sectionGroups  = "Groups"
	sectionOffsets = "Committed offsets"
	sectionStore   = "Store"
	sectionLimits  = "Connections and requests"
	sectionTopics  = "Topics"
)

// Keys are all keys, in the order in which they are documented and shown.
var Keys = []Key{
	number("node.id", sectionNode, 1, 0, math.MaxInt32, func(c *Config) *int32 { return &c.NodeID },
		"The id under which this node appears in Metadata and FindCoordinator."),
	list("listeners", sectionNode, "PLAINTEXT://127.0.0.1:9092", "NAME://HOST:PORT, separated by commas; port 0 takes a free one",
		func(c *Config) *[]gateway.Endpoint { return &c.Listeners },
		"Where Kafka clients connect. Names are free, and unique. A host of 0.0.0.0, [::] or nothing means all interfaces and needs an entry in advertised.listeners."),
	list("advertised.listeners", sectionNode, "", "NAME://HOST:PORT, separated by commas; names of listeners",
		func(c *Config) *[]gateway.Endpoint { return &c.Advertised },
		"What clients of each listener are told to connect to. A listener without an entry advertises its own address; port 0 stands for the port that it listens on."),
	own(text("data.dir", sectionNode, "./rollcall-data", "a directory, made if it does not exist", nonEmpty,
		func(c *Config) *string { return &c.DataDir },
		"Where everything that must survive a restart is kept. One process at a time can use it.")),

	own(text("admin.listen", sectionAdmin, "127.0.0.1:9640", "HOST:PORT, or empty for no HTTP", hostPortOrEmpty,
		func(c *Config) *string { return &c.AdminListen },
		"Where /livez, /readyz, /metrics and /v1/ are served over HTTP. Anything but a loopback address needs admin.token.")),
	own(secret(text("admin.token", sectionAdmin, "", "any text without spaces", noSpaces,
		func(c *Config) *string { return &c.AdminToken },
		"If set, HTTP requests other than for /livez and /readyz must carry it (`Authorization: Bearer TOKEN`)."))),
	own(choice("log.format", sectionAdmin, "console", []string{"console", "json"}, func(c *Config) *string { return &c.LogFormat },
		"How log lines are written to standard error.")),
	own(choice("log.level", sectionAdmin, "info", []string{"debug", "info", "warn", "error"}, func(c *Config) *string { return &c.LogLevel },
		"The least level that is logged.")),

	millis("group.min.session.timeout.ms", sectionGroups, 6000, 1, math.MaxInt32, func(c *Config) *time.Duration { return &c.MinSessionTimeout },
		"The shortest session timeout that a member may ask for."),
	millis("group.max.session.timeout.ms", sectionGroups, 1800000, 1, math.MaxInt32, func(c *Config) *time.Duration { return &c.MaxSessionTimeout },
		"The longest session timeout that a member may ask for."),
	millis("group.initial.rebalance.delay.ms", sectionGroups, 3000, 0, math.MaxInt32, func(c *Config) *time.Duration { return &c.InitialRebalanceDelay },
		"How long the first round of an empty group waits for more members; each newcomer starts the wait anew, up to the rebalance timeout."),
	number("group.max.size", sectionGroups, math.MaxInt32, 1, math.MaxInt32, func(c *Config) *int { return &c.GroupMaxSize },
		"The most members of a group."),
	own(number("group.max.pending.members", sectionGroups, 10000, 1, math.MaxInt32, func(c *Config) *int { return &c.GroupPendingMax },
		"The most member ids of a group that were handed out and not yet joined with.")),

	number("offset.metadata.max.bytes", sectionOffsets, 4096, 0, math.MaxInt32, func(c *Config) *int { return &c.OffsetMetadataMax },
		"The longest metadata of a committed offset, in UTF-16 units, as Kafka counts them."),
	minutes("offsets.retention.minutes", sectionOffsets, 10080, 1, math.MaxInt32, func(c *Config) *time.Duration { return &c.OffsetsRetention },
		"How long offsets are kept after their group became empty, or after the commit for groups without members."),
	millis("offsets.retention.check.interval.ms", sectionOffsets, 600000, 1, math.MaxInt32, func(c *Config) *time.Duration { return &c.OffsetsRetentionCheck },
		"How often expired offsets are looked for."),
	millis("offsets.commit.timeout.ms", sectionOffsets, 5000, 1, math.MaxInt32, func(c *Config) *time.Duration { return &c.OffsetsCommitTimeout },
		"The longest that an answer waits for the disk before the client is told to try again."),
	number("offsets.topic.num.partitions", sectionOffsets, 50, 1, 10000, func(c *Config) *uint32 { return &c.OffsetsShards },
		"The number of shards. It is fixed when the data directory is created; another value later is refused."),
	own(millis("offsets.history.retention.ms", sectionOffsets, 604800000, 0, math.MaxInt64, func(c *Config) *time.Duration { return &c.OffsetsHistoryRetention },
		"How long the log of all changes to groups and offsets is kept; 0 keeps none beyond what recovery needs.")),
	own(number("offsets.history.retention.bytes", sectionOffsets, 1<<30, 0, math.MaxInt64, func(c *Config) *int64 { return &c.OffsetsHistoryBytes },
		"The most bytes of that log, over all shards.")),
	own(millis("producer.snapshots.retention.ms", sectionOffsets, 86400000, 1, 2592000000, func(c *Config) *time.Duration { return &c.ProducerSnapshotsRetention },
		"How long a snapshot of offsets lives that a producer registered over HTTP without a ttl_ms.")),
	own(millis("producer.snapshots.check.interval.ms", sectionOffsets, 3600000, 1, math.MaxInt32, func(c *Config) *time.Duration { return &c.ProducerSnapshotsCheck },
		"How often expired snapshots of producers are removed.")),

	own(boolean("store.sync", sectionStore, true, func(c *Config) *bool { return &c.StoreSync },
		"Whether an answer waits until what it confirms is synced to disk. With false it is synced within a second, and a power failure, or the end of the process by kill -9 or a crash, can take back the commits and records that were acknowledged in the second before; a stop takes back none.")),
	own(number("store.min.free.bytes", sectionStore, 512<<20, 0, math.MaxInt64, func(c *Config) *int64 { return &c.StoreMinFreeBytes },
		"Below this much free space new commits and records are refused and /readyz is 503, so that the disk never fills up.")),
	number("socket.request.max.bytes", sectionLimits, 104857600, 1024, 1<<30, func(c *Config) *int { return &c.RequestMax },
		"The largest request; a longer one closes its connection."),
	number("queued.max.request.bytes", sectionLimits, 256<<20, 1<<20, math.MaxInt64, func(c *Config) *int64 { return &c.QueuedRequestsMax },
		"The most bytes of requests in memory at once, beyond the first 16 KiB of each. (Kafka's default is no limit.)"),
	millis("connections.max.idle.ms", sectionLimits, 600000, 1, math.MaxInt64, func(c *Config) *time.Duration { return &c.ConnectionIdle },
		"A connection without traffic for this long is closed."),
	number("max.connections", sectionLimits, math.MaxInt32, 1, math.MaxInt32, func(c *Config) *int { return &c.ConnectionsMax },
		"The most connections at a time."),

	boolean("auto.create.topics.enable", sectionTopics, true, func(c *Config) *bool { return &c.AutoCreateTopics },
		"Whether asking for the metadata of a topic that does not exist creates it, if the client allows that."),
	number("num.partitions", sectionTopics, 1, 1, 100000, func(c *Config) *int { return &c.DefaultPartitions },
		"The number of partitions of topics that are created without one."),
	choice("log.cleanup.policy", sectionTopics, "delete", []string{"delete", "compact", "compact,delete", "delete,compact"}, func(c *Config) *string { return &c.CleanupPolicy },
		"The cleanup.policy of topics without one of their own. With compact every record must have a key."),
	number("log.retention.hours", sectionTopics, 168, -1, math.MaxInt32, func(c *Config) *int64 { return &c.RetentionHours },
		"After how many hours records are deleted, for topics without a retention.ms of their own; -1 is never."),
	number("log.retention.minutes", sectionTopics, 10080, -1, math.MaxInt32, func(c *Config) *int64 { return &c.RetentionMinutes },
		"The same in minutes; if it is set, log.retention.hours is not looked at."),
	number("log.retention.ms", sectionTopics, 604800000, -1, math.MaxInt64, func(c *Config) *int64 { return &c.RetentionMs },
		"The same in milliseconds; if it is set, neither of the others is looked at."),
	number("log.retention.bytes", sectionTopics, -1, -1, math.MaxInt64, func(c *Config) *int64 { return &c.RetentionBytes },
		"How many bytes of records each partition keeps when older ones are deleted, for topics without a retention.bytes of their own; -1 is no bound."),
	millis("log.retention.check.interval.ms", sectionTopics, 300000, 1, math.MaxInt32, func(c *Config) *time.Duration { return &c.RetentionCheck },
		"How often records to delete are looked for."),
	choice("log.message.timestamp.type", sectionTopics, "CreateTime", []string{"CreateTime", "LogAppendTime"}, func(c *Config) *string { return &c.TimestampType },
		"Whether records carry the time of their producer or that of their arrival, for topics without a message.timestamp.type of their own."),
	millis("log.message.timestamp.before.max.ms", sectionTopics, math.MaxInt64, 0, math.MaxInt64, func(c *Config) *time.Duration { return &c.TimestampBeforeMax },
		"The oldest that a record's time may be when it arrives, for topics without a value of their own."),
	millis("log.message.timestamp.after.max.ms", sectionTopics, 3600000, 0, math.MaxInt64, func(c *Config) *time.Duration { return &c.TimestampAfterMax },
		"The furthest in the future that a record's time may be when it arrives, for topics without a value of their own."),
	millis("producer.id.expiration.ms", sectionTopics, 86400000, 1, math.MaxInt32, func(c *Config) *time.Duration { return &c.ProducerExpiration },
		"After how long a producer that sends nothing is forgotten."),
	millis("transaction.max.timeout.ms", sectionTopics, 900000, 1, math.MaxInt32, func(c *Config) *time.Duration { return &c.TransactionTimeoutMax },
		"The longest that a producer may ask its transactions to stay open."),
	millis("transactional.id.expiration.ms", sectionTopics, 604800000, 1, math.MaxInt32, func(c *Config) *time.Duration { return &c.TransactionalIDExpiration },
		"After how long without a transaction a transactional id is forgotten."),
	millis("transaction.abort.timed.out.transaction.cleanup.interval.ms", sectionTopics, 10000, 1, math.MaxInt32, func(c *Config) *time.Duration { return &c.TransactionAbortInterval },
		"How often transactions that are open for too long are looked for, to be aborted."),
	millis("transaction.remove.expired.transaction.cleanup.interval.ms", sectionTopics, 3600000, 1, math.MaxInt32, func(c *Config) *time.Duration { return &c.TransactionExpireInterval },
		"How often transactional ids to forget are looked for."),
	number("message.max.bytes", sectionTopics, 1048588, 0, math.MaxInt32, func(c *Config) *int { return &c.MessageMax },
		"The largest record batch that a topic accepts, unless its own max.message.bytes says otherwise."),
	number("fetch.max.bytes", sectionTopics, 57671680, 1024, math.MaxInt32, func(c *Config) *int { return &c.FetchMax },
		"The most bytes that a Fetch returns, whatever it asks for."),
	number("max.incremental.fetch.session.cache.slots", sectionTopics, 1000, 0, math.MaxInt32, func(c *Config) *int { return &c.FetchSessionsMax },
		"The most incremental fetch sessions that are remembered."),
}

// find returns the key of a name, nil if there is none.
func find(name string) *Key {
	i := slices.IndexFunc(Keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return nil
	}
	return &Keys[i]
}

type integer interface {
	~int | ~int32 | ~int64 | ~uint32
}

// number makes a key for an integer between low and high.
func number[T integer](name, section string, def, low, high int64, field func(*Config) *T, doc string) Key {
	return Key{
		Name: name, Section: section, Type: "int", Default: strconv.FormatInt(def, 10), Range: between(low, high), Doc: doc,
		parse: func(c *Config, text string) error {
			n, err := parseInt(text, low, high)
			*field(c) = T(n)
			return err
		},
	}
}

// millis makes a key for a duration in milliseconds.
func millis(name, section string, def, low, high int64, field func(*Config) *time.Duration, doc string) Key {
	return duration(time.Millisecond, name, section, def, low, high, field, doc)
}

// minutes makes a key for a duration in minutes.
func minutes(name, section string, def, low, high int64, field func(*Config) *time.Duration, doc string) Key {
	return duration(time.Minute, name, section, def, low, high, field, doc)
}

func duration(unit time.Duration, name, section string, def, low, high int64, field func(*Config) *time.Duration, doc string) Key {
	return Key{
		Name: name, Section: section, Type: "int", Default: strconv.FormatInt(def, 10), Range: between(low, high), Doc: doc,
		parse: func(c *Config, text string) error {
			n, err := parseInt(text, low, high)
			*field(c) = time.Duration(min(n, math.MaxInt64/int64(unit))) * unit
			return err
		},
	}
}

func boolean(name, section string, def bool, field func(*Config) *bool, doc string) Key {
	return Key{
		Name: name, Section: section, Type: "boolean", Default: strconv.FormatBool(def), Range: "true or false", Doc: doc,
		parse: func(c *Config, text string) error {
			switch strings.ToLower(text) {
			case "true":
				*field(c) = true
			case "false":
				*field(c) = false
			default:
				return errors.New("must be true or false")
			}
			return nil
		},
	}
}

func text(name, section, def, accepted string, check func(string) error, field func(*Config) *string, doc string) Key {
	return Key{
		Name: name, Section: section, Type: "string", Default: def, Range: accepted, Doc: doc,
		parse: func(c *Config, text string) error {
			*field(c) = text
			return check(text)
		},
	}
}

func choice(name, section, def string, accepted []string, field func(*Config) *string, doc string) Key {
	words := strings.Join(accepted, ", ")
	return text(name, section, def, "one of "+words, func(value string) error {
		if !slices.Contains(accepted, value) {
			return fmt.Errorf("must be one of %s", words)
		}
		return nil
	}, field, doc)
}

func list(name, section, def, accepted string, field func(*Config) *[]gateway.Endpoint, doc string) Key {
	return Key{
		Name: name, Section: section, Type: "list", Default: def, Range: accepted, Doc: doc,
		parse: func(c *Config, text string) (err error) {
			*field(c), err = parseEndpoints(text)
			return err
		},
	}
}

// own marks a key that Kafka does not have.
func own(k Key) Key {
	k.Own = true
	return k
}

// secret marks a key whose value is never shown.
func secret(k Key) Key {
	k.Secret = true
	return k
}

func parseInt(text string, low, high int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return low, fmt.Errorf("must be a whole number, %s", between(low, high))
	}
	if err != nil || n < low || n > high {
		return low, fmt.Errorf("must be %s", between(low, high))
	}
	return n, nil
}

// between says a range in words; bounds that only a type sets are left out.
func between(low, high int64) string {
	if high == math.MaxInt64 {
		return "at least " + strconv.FormatInt(low, 10)
	}
	return fmt.Sprintf("%d to %d", low, high)
}

func nonEmpty(value string) error {
	if value == "" {
		return errors.New("must not be empty")
	}
	return nil
}

func noSpaces(value string) error {
	if strings.ContainsAny(value, " \t\r\n") {
		return errors.New("must not contain spaces")
	}
	return nil
}

func hostPortOrEmpty(value string) error {
	if value == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		return errors.New("must be HOST:PORT, or empty")
	}
	return checkPort(port)
}

func checkPort(port string) error {
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q is not a port number (0 to 65535)", port)
	}
	return nil
}

// byDistance orders the names of keys by their distance from a name, then by name.
func byDistance(name string) []string {
	names := make([]string, len(Keys))
	for i := range Keys {
		names[i] = Keys[i].Name
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(distance(name, a), distance(name, b)), cmp.Compare(a, b))
	})
	return names
}
