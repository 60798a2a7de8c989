package topics

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ConfigType is the type of a configuration value, with Kafka's numbers.
type ConfigType int8

// The types that topic and broker configurations have.
const (
	TypeBoolean ConfigType = 1
	TypeString  ConfigType = 2
	TypeInt     ConfigType = 3
	TypeShort   ConfigType = 4
	TypeLong    ConfigType = 5
	TypeDouble  ConfigType = 6
	TypeList    ConfigType = 7
	TypeClass   ConfigType = 8
)

// ConfigDef is one configuration that a topic has.
type ConfigDef struct {
	Name string
	Type ConfigType
	// Default is the value if neither topic nor gateway sets another.
	Default string
	// Broker are the gateway's keys that set the value for all topics that do not
	// set it themselves, the strongest first. Their unit may be coarser than the
	// topic's (hours, minutes); see brokerValue.
	Broker []string
	// min and max bound numbers, oneOf everything else.
	min, max float64
	oneOf    []string
	// within is what Kafka's brokers let a group set, if that is narrower.
	within [2]int64
}

// ConfigDefs are the configurations of a topic, by name. They are Kafka's, so that
// tools which set or read back any of them work; those that speak of segments,
// replicas or tiers have no effect here.
var ConfigDefs = []ConfigDef{
	{Name: "cleanup.policy", Type: TypeList, Default: "delete", Broker: []string{"log.cleanup.policy"}, oneOf: []string{"compact", "delete"}},
	{Name: "compression.gzip.level", Type: TypeInt, Default: "-1", Broker: []string{"compression.gzip.level"}, min: -1, max: 9},
	{Name: "compression.lz4.level", Type: TypeInt, Default: "9", Broker: []string{"compression.lz4.level"}, min: 1, max: 17},
	{Name: "compression.type", Type: TypeString, Default: "producer", Broker: []string{"compression.type"},
		oneOf: []string{"uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"}},
	{Name: "compression.zstd.level", Type: TypeInt, Default: "3", Broker: []string{"compression.zstd.level"}, min: -131072, max: 22},
	{Name: "delete.retention.ms", Type: TypeLong, Default: "86400000", Broker: []string{"log.cleaner.delete.retention.ms"}, max: math.MaxInt64},
	{Name: "errors.deadletterqueue.group.enable", Type: TypeBoolean, Default: "false"},
	{Name: "file.delete.delay.ms", Type: TypeLong, Default: "60000", Broker: []string{"log.segment.delete.delay.ms"}, max: math.MaxInt64},
	{Name: "flush.messages", Type: TypeLong, Default: "9223372036854775807", Broker: []string{"log.flush.interval.messages"}, min: 1, max: math.MaxInt64},
	{Name: "flush.ms", Type: TypeLong, Default: "9223372036854775807", Broker: []string{"log.flush.interval.ms"}, max: math.MaxInt64},
	{Name: "follower.replication.throttled.replicas", Type: TypeList},
	{Name: "index.interval.bytes", Type: TypeInt, Default: "4096", Broker: []string{"log.index.interval.bytes"}, max: math.MaxInt32},
	{Name: "leader.replication.throttled.replicas", Type: TypeList},
	{Name: "local.retention.bytes", Type: TypeLong, Default: "-2", Broker: []string{"log.local.retention.bytes"}, min: -2, max: math.MaxInt64},
	{Name: "local.retention.ms", Type: TypeLong, Default: "-2", Broker: []string{"log.local.retention.ms"}, min: -2, max: math.MaxInt64},
	{Name: "max.compaction.lag.ms", Type: TypeLong, Default: "9223372036854775807", Broker: []string{"log.cleaner.max.compaction.lag.ms"}, min: 1, max: math.MaxInt64},
	{Name: "max.decompressed.message.bytes", Type: TypeInt, Default: "2147483639", Broker: []string{"max.decompressed.message.bytes"}, min: 1, max: math.MaxInt32},
	{Name: "max.message.bytes", Type: TypeInt, Default: "1048588", Broker: []string{"message.max.bytes"}, max: math.MaxInt32},
	{Name: "message.timestamp.after.max.ms", Type: TypeLong, Default: "3600000", Broker: []string{"log.message.timestamp.after.max.ms"}, max: math.MaxInt64},
	{Name: "message.timestamp.before.max.ms", Type: TypeLong, Default: "9223372036854775807", Broker: []string{"log.message.timestamp.before.max.ms"}, max: math.MaxInt64},
	{Name: "message.timestamp.type", Type: TypeString, Default: "CreateTime", Broker: []string{"log.message.timestamp.type"}, oneOf: []string{"CreateTime", "LogAppendTime"}},
	{Name: "min.cleanable.dirty.ratio", Type: TypeDouble, Default: "0.5", Broker: []string{"log.cleaner.min.cleanable.ratio"}, max: 1},
	{Name: "min.compaction.lag.ms", Type: TypeLong, Default: "0", Broker: []string{"log.cleaner.min.compaction.lag.ms"}, max: math.MaxInt64},
	{Name: "min.insync.replicas", Type: TypeInt, Default: "1", Broker: []string{"min.insync.replicas"}, min: 1, max: math.MaxInt32},
	{Name: "preallocate", Type: TypeBoolean, Default: "false", Broker: []string{"log.preallocate"}},
	{Name: "remote.copy.lag.bytes", Type: TypeLong, Default: "-1", Broker: []string{"log.remote.copy.lag.bytes"}, min: -1, max: math.MaxInt64},
	{Name: "remote.copy.lag.ms", Type: TypeLong, Default: "0", Broker: []string{"log.remote.copy.lag.ms"}, min: -1, max: math.MaxInt64},
	{Name: "remote.log.copy.disable", Type: TypeBoolean, Default: "false"},
	{Name: "remote.log.delete.on.disable", Type: TypeBoolean, Default: "false"},
	{Name: "remote.storage.enable", Type: TypeBoolean, Default: "false"},
	{Name: "retention.bytes", Type: TypeLong, Default: "-1", Broker: []string{"log.retention.bytes"}, min: -1, max: math.MaxInt64},
	{Name: "retention.ms", Type: TypeLong, Default: "604800000", Broker: []string{"log.retention.ms", "log.retention.minutes", "log.retention.hours"}, min: -1, max: math.MaxInt64},
	{Name: "segment.bytes", Type: TypeInt, Default: "1073741824", Broker: []string{"log.segment.bytes"}, min: 1 << 20, max: math.MaxInt32},
	{Name: "segment.index.bytes", Type: TypeInt, Default: "10485760", Broker: []string{"log.index.size.max.bytes"}, min: 4, max: math.MaxInt32},
	{Name: "segment.jitter.ms", Type: TypeLong, Default: "0", Broker: []string{"log.roll.jitter.ms", "log.roll.jitter.hours"}, max: math.MaxInt64},
	{Name: "segment.ms", Type: TypeLong, Default: "604800000", Broker: []string{"log.roll.ms", "log.roll.hours"}, min: 1, max: math.MaxInt64},
	{Name: "unclean.leader.election.enable", Type: TypeBoolean, Default: "false", Broker: []string{"unclean.leader.election.enable"}},
}

// Config is one setting of a topic.
type Config struct{ Name, Value string }

// Value is what a topic's configuration resolves to.
type Value struct {
	*ConfigDef
	Value string
	// FromTopic: set by the topic itself; FromBroker, else, names the gateway's key
	// that was set; neither: it is the default.
	FromTopic  bool
	FromBroker string
}

// Parsed is the value without space and with small letters where they do not count, as
// Kafka describes it.
func (v *Value) Parsed() string {
	switch v.Type {
	case TypeList:
		return strings.Join(listItems(strings.TrimSpace(v.Value)), ",")
	case TypeBoolean:
		return strings.ToLower(strings.TrimSpace(v.Value))
	}
	return strings.TrimSpace(v.Value)
}

func findDef(name string) *ConfigDef {
	i, ok := slices.BinarySearchFunc(ConfigDefs, name, func(d ConfigDef, n string) int { return strings.Compare(d.Name, n) })
	if !ok {
		return nil
	}
	return &ConfigDefs[i]
}

// check says what is wrong with a value, in Kafka's words (class ConfigDef); "" if
// nothing is. Space around it does not count.
func (d *ConfigDef) check(value string) string {
	v := strings.TrimSpace(value)
	switch d.Type {
	case TypeBoolean:
		return d.checkBoolean(value, strings.ToLower(v))
	case TypeInt, TypeLong:
		bits, kind := 64, "LONG"
		if d.Type == TypeInt {
			bits, kind = 32, "INT"
		}
		n, err := strconv.ParseInt(v, 10, bits)
		if err != nil {
			return d.fault(value, "Not a number of type "+kind)
		}
		return d.checkNumber(v, float64(n))
	case TypeDouble:
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return d.fault(value, "Not a number of type DOUBLE")
		}
		return d.checkNumber(v, n)
	case TypeList:
		return d.checkList(listItems(v))
	}
	return d.checkOneOf(v)
}

func (d *ConfigDef) fault(value, why string) string {
	return fmt.Sprintf("Invalid value %s for configuration %s: %s", value, d.Name, why)
}

func (d *ConfigDef) checkBoolean(value, v string) string {
	if v != "true" && v != "false" {
		return d.fault(value, "Expected value to be either true or false")
	}
	if d.Name == "remote.storage.enable" && v == "true" {
		return "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
	}
	return ""
}

// checkNumber compares a number with the bounds. What is not a number passes, as in
// Kafka.
func (d *ConfigDef) checkNumber(v string, n float64) string {
	bound := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	switch {
	case d.Name == "compression.gzip.level" && (n == 0 || n < d.min || n > d.max):
		return d.fault(v, "Value must be between 1 and 9 or equal to -1")
	case n < d.min:
		return d.fault(v, "Value must be at least "+bound(d.min))
	case n > d.max:
		return d.fault(v, "Value must be no more than "+bound(d.max))
	}
	return ""
}

func (d *ConfigDef) checkOneOf(v string) string {
	if d.oneOf != nil && !slices.Contains(d.oneOf, v) {
		return d.fault(v, "String must be one of: "+strings.Join(d.oneOf, ", "))
	}
	return ""
}

func (d *ConfigDef) checkList(items []string) string {
	for _, item := range items {
		if msg := d.checkOneOf(item); msg != "" {
			return msg
		}
		if strings.HasSuffix(d.Name, ".throttled.replicas") && !throttled(item) {
			return d.fault("["+strings.Join(items, ", ")+"]", d.Name+" must be the literal '*' or a list of replicas"+
				" in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...")
		}
	}
	return ""
}

// throttled tells whether an item says which replicas to throttle: all, or a pair of
// a partition and a broker.
func throttled(v string) bool {
	partition, broker, pair := strings.Cut(v, ":")
	_, err := strconv.ParseUint(partition, 10, 31)
	_, err2 := strconv.ParseUint(broker, 10, 31)
	return v == "*" || pair && err == nil && err2 == nil
}

// listItems are the items of a list, none in an empty one.
func listItems(v string) []string {
	if v == "" {
		return nil
	}
	items := strings.Split(v, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items
}

// CheckConfigs says what is wrong with the configurations that a topic sets; "" if
// nothing is.
func CheckConfigs(configs []Config) string {
	lag := map[string]int64{"min.compaction.lag.ms": 0, "max.compaction.lag.ms": math.MaxInt64}
	for _, c := range configs {
		d := findDef(c.Name)
		if d == nil {
			return "Unknown topic config name: " + c.Name
		}
		if msg := d.check(c.Value); msg != "" {
			return msg
		}
		if _, ok := lag[c.Name]; ok {
			lag[c.Name], _ = strconv.ParseInt(strings.TrimSpace(c.Value), 10, 64)
		}
	}
	if lag["max.compaction.lag.ms"] < lag["min.compaction.lag.ms"] {
		return fmt.Sprintf("conflict topic config setting min.compaction.lag.ms (%d) > max.compaction.lag.ms (%d)",
			lag["min.compaction.lag.ms"], lag["max.compaction.lag.ms"])
	}
	return ""
}

// resolve returns the value of a configuration: the topic's own, else the gateway's,
// else the default.
func resolve(d *ConfigDef, topic []Config, broker map[string]string) Value {
	for _, c := range topic {
		if c.Name == d.Name {
			return Value{ConfigDef: d, Value: c.Value, FromTopic: true}
		}
	}
	for _, key := range d.Broker {
		if v, ok := brokerValue(key, broker); ok {
			return Value{ConfigDef: d, Value: v, FromBroker: key}
		}
	}
	return Value{ConfigDef: d, Value: d.Default}
}

// brokerValue returns what the gateway sets under key, in the topic's unit.
func brokerValue(key string, broker map[string]string) (string, bool) {
	v, ok := broker[key]
	if !ok {
		return "", false
	}
	unit := int64(1)
	switch {
	case strings.HasSuffix(key, ".hours"):
		unit = 3_600_000
	case strings.HasSuffix(key, ".minutes"):
		unit = 60_000
	}
	if n, err := strconv.ParseInt(v, 10, 64); err == nil && unit > 1 && n > 0 {
		v = strconv.FormatInt(n*unit, 10)
	}
	return v, true
}

// Settings are the configurations of a topic that the store acts on.
type Settings struct {
	MaxMessageBytes int
	// MaxDecompressedBytes bounds a single record of a compressed batch.
	MaxDecompressedBytes int64
	// Compacted: the cleanup policy has compact, so every record needs a key.
	Compacted bool
	// Deleted: it has delete, so RetentionMs and RetentionBytes bound what is kept; -1
	// is no bound.
	Deleted                     bool
	RetentionMs, RetentionBytes int64
	// When a compacted topic is compacted: the dirty part of it that is enough, and
	// between what ages of records.
	DirtyRatioMin                      float64
	CompactionLagMin, CompactionLagMax int64
	// DeleteRetentionMs is how long tombstones stay.
	DeleteRetentionMs int64
	LogAppendTime     bool
	// TimestampBeforeMax and TimestampAfterMax bound how far a producer's clock may
	// be behind and ahead of ours, in milliseconds.
	TimestampBeforeMax, TimestampAfterMax int64
}

func settingsOf(topic []Config, broker map[string]string) Settings {
	value := func(name string) string { return resolve(findDef(name), topic, broker).Value }
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(strings.TrimSpace(value(name)), 10, 64)
		return n
	}
	ratio, _ := strconv.ParseFloat(strings.TrimSpace(value("min.cleanable.dirty.ratio")), 64)
	return Settings{
		MaxMessageBytes:      int(number("max.message.bytes")),
		MaxDecompressedBytes: number("max.decompressed.message.bytes"),
		Compacted:            strings.Contains(value("cleanup.policy"), "compact"),
		Deleted:              strings.Contains(value("cleanup.policy"), "delete"),
		RetentionMs:          number("retention.ms"),
		RetentionBytes:       number("retention.bytes"),
		DirtyRatioMin:        ratio,
		CompactionLagMin:     number("min.compaction.lag.ms"),
		CompactionLagMax:     number("max.compaction.lag.ms"),
		DeleteRetentionMs:    number("delete.retention.ms"),
		LogAppendTime:        strings.TrimSpace(value("message.timestamp.type")) == "LogAppendTime",
		TimestampBeforeMax:   number("message.timestamp.before.max.ms"),
		TimestampAfterMax:    number("message.timestamp.after.max.ms"),
	}
}
