// Package config is the configuration of the rollcall binary: one table of keys
// with Kafka's names and defaults, read from a YAML file, the environment and
// flags, in growing order of precedence.
package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/rollcall-mq/rollcall/gateway"
)

// Config is the effective configuration. Each field is set from the key that the
// table in keys.go binds to it; durations come from keys in milliseconds or
// minutes, sizes are bytes.
type Config struct {
	NodeID     int32
	Listeners  []gateway.Endpoint
	Advertised []gateway.Endpoint
	DataDir    string

	AdminListen string
	AdminToken  string
	LogFormat   string
	LogLevel    string

	MinSessionTimeout     time.Duration
	MaxSessionTimeout     time.Duration
	InitialRebalanceDelay time.Duration
	GroupMaxSize          int
	GroupPendingMax       int

	OffsetMetadataMax       int
	OffsetsRetention        time.Duration
	OffsetsRetentionCheck   time.Duration
	OffsetsCommitTimeout    time.Duration
	OffsetsShards           uint32
	OffsetsHistoryRetention time.Duration
	OffsetsHistoryBytes     int64

	ProducerSnapshotsRetention time.Duration
	ProducerSnapshotsCheck     time.Duration

	StoreSync         bool
	StoreMinFreeBytes int64

	RequestMax        int
	QueuedRequestsMax int64
	ConnectionIdle    time.Duration
	ConnectionsMax    int

	AutoCreateTopics  bool
	DefaultPartitions int
	MessageMax        int
	FetchMax          int
	FetchSessionsMax  int

	RetentionMs      int64
	RetentionMinutes int64
	RetentionHours   int64
	RetentionBytes   int64
	RetentionCheck   time.Duration

	CleanupPolicy      string
	TimestampType      string
	TimestampBeforeMax time.Duration
	TimestampAfterMax  time.Duration
	ProducerExpiration time.Duration

	TransactionTimeoutMax     time.Duration
	TransactionalIDExpiration time.Duration
	TransactionAbortInterval  time.Duration
	TransactionExpireInterval time.Duration

	values map[string]Value
}

// Value is one key's value as text, with where it came from.
type Value struct {
	Key *Key
	// Text is the value in the form in which a file would give it.
	Text string
	// Source is "default", "FILE line N", "environment NAME" or "flag --NAME".
	Source string
}

// Shown is the text of the value for logs and terminals: secrets are masked.
func (v Value) Shown() string {
	if v.Key.Secret && v.Text != "" {
		return "********"
	}
	return v.Text
}

// Effective returns every key with its value and source, in the order of [Keys].
func (c *Config) Effective() []Value {
	all := make([]Value, len(Keys))
	for i := range Keys {
		all[i] = c.values[Keys[i].Name]
	}
	return all
}

// Set returns the keys that were set to something, with their values; for those
// of topics that is what topics without a value of their own follow.
func (c *Config) Set() map[string]string {
	set := map[string]string{}
	for name, v := range c.values {
		if v.Source != sourceDefault && !v.Key.Secret {
			set[name] = v.Text
		}
	}
	return set
}

// sourceDefault is the source of values that nobody set.
const sourceDefault = "default"

// IsDefault tells whether nobody set the value.
func (v Value) IsDefault() bool { return v.Source == sourceDefault }

// Error is everything that is wrong with a configuration, a line each.
type Error struct{ Problems []string }

func (e *Error) Error() string { return strings.Join(e.Problems, "\n") }

func (e *Error) add(format string, args ...any) {
	e.Problems = append(e.Problems, fmt.Sprintf(format, args...))
}

// orNil is for returning e as an error: nil if nothing is wrong.
func (e *Error) orNil() error {
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}

// Input is where a configuration is read from.
type Input struct {
	// File is the path of the YAML file, "" for none.
	File string
	// Environ is the environment as os.Environ returns it.
	Environ []string
	// Flags are the keys that were set by flags, by key name.
	Flags map[string]Flag
}

// Flag is a value given on the command line.
type Flag struct {
	// Name is that of the flag, without dashes.
	Name  string
	Value string
}

// Load reads and checks a configuration. Warnings are about keys that are
// accepted but change nothing. The error, if any, is an [*Error].
func Load(in Input) (c *Config, warnings []string, err error) {
	problems := &Error{}
	values := map[string]Value{}
	for i := range Keys {
		values[Keys[i].Name] = Value{Key: &Keys[i], Text: Keys[i].Default, Source: sourceDefault}
	}
	set := func(name, text, source string) {
		key := find(name)
		if key == nil {
			unknown(problems, &warnings, name, source)
			return
		}
		values[name] = Value{Key: key, Text: text, Source: source}
	}
	if in.File != "" {
		readFile(problems, in.File, set)
	}
	readEnviron(in.Environ, set)
	for i := range Keys {
		if flag, ok := in.Flags[Keys[i].Name]; ok {
			set(Keys[i].Name, flag.Value, "flag --"+flag.Name)
		}
	}
	c = &Config{values: values}
	for i := range Keys {
		v := values[Keys[i].Name]
		if err := v.Key.parse(c, v.Text); err != nil {
			problems.add("%s: %s = %q: %v", v.Source, v.Key.Name, v.Shown(), err)
		}
	}
	if len(problems.Problems) == 0 {
		c.checkTogether(problems)
	}
	return c, warnings, problems.orNil()
}

// checkTogether checks what concerns more than one key.
func (c *Config) checkTogether(problems *Error) {
	refuse := func(key, format string, args ...any) {
		v := c.values[key]
		problems.add("%s: %s = %q: %s", v.Source, key, v.Shown(), fmt.Sprintf(format, args...))
	}
	if c.MinSessionTimeout > c.MaxSessionTimeout {
		refuse("group.min.session.timeout.ms", "must not be above group.max.session.timeout.ms (%s)",
			c.values["group.max.session.timeout.ms"].Text)
	}
	c.checkListeners(problems)
	if c.QueuedRequestsMax < int64(c.RequestMax) {
		refuse("queued.max.request.bytes", "must not be below socket.request.max.bytes (%d)", c.RequestMax)
	}
	if c.AdminListen != "" && !loopback(c.AdminListen) && c.AdminToken == "" {
		refuse("admin.listen", "HTTP on anything but loopback needs a token: set admin.token (or %s)", EnvName("admin.token"))
	}
}

// checkListeners checks listeners and advertised.listeners against each other.
func (c *Config) checkListeners(problems *Error) {
	if len(c.Listeners) == 0 {
		problems.add("%s: listeners must name at least one address", c.values["listeners"].Source)
		return
	}
	if _, err := gateway.Advertise(c.Listeners, c.Advertised); err != nil {
		key := "listeners"
		if len(c.Advertised) > 0 {
			key = "advertised.listeners"
		}
		problems.add("%s: %v", c.values[key].Source, err)
	}
}
