package topics

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall-mq/rollcall/store"
)

// GroupConfigDefs are the configurations of a group (KIP-848, KIP-932, KIP-1071), by
// name. They are kept and shown; of classic groups, which are the only ones here, none
// has an effect.
var GroupConfigDefs = []ConfigDef{
	{Name: "consumer.assignment.interval.ms", Type: TypeInt, Default: "1000", Broker: []string{"group.consumer.assignment.interval.ms"}, max: math.MaxInt32, within: [2]int64{0, 15000}},
	{Name: "consumer.heartbeat.interval.ms", Type: TypeInt, Default: "5000", Broker: []string{"group.consumer.heartbeat.interval.ms"}, min: 1, max: math.MaxInt32, within: [2]int64{5000, 15000}},
	{Name: "consumer.session.timeout.ms", Type: TypeInt, Default: "45000", Broker: []string{"group.consumer.session.timeout.ms"}, min: 1, max: math.MaxInt32, within: [2]int64{45000, 60000}},
	{Name: "errors.deadletterqueue.copy.record.enable", Type: TypeBoolean, Default: "false", Broker: []string{"errors.deadletterqueue.copy.record.enable"}},
	{Name: "errors.deadletterqueue.topic.name", Type: TypeString, Default: "", Broker: []string{"errors.deadletterqueue.topic.name"}},
	{Name: "share.assignment.interval.ms", Type: TypeInt, Default: "1000", Broker: []string{"group.share.assignment.interval.ms"}, max: math.MaxInt32, within: [2]int64{0, 15000}},
	{Name: "share.auto.offset.reset", Type: TypeString, Default: "latest", Broker: []string{"share.auto.offset.reset"}},
	{Name: "share.delivery.count.limit", Type: TypeInt, Default: "5", Broker: []string{"group.share.delivery.count.limit"}, min: 2, max: math.MaxInt32, within: [2]int64{2, 10}},
	{Name: "share.heartbeat.interval.ms", Type: TypeInt, Default: "5000", Broker: []string{"group.share.heartbeat.interval.ms"}, min: 1, max: math.MaxInt32, within: [2]int64{5000, 15000}},
	{Name: "share.isolation.level", Type: TypeString, Default: "read_uncommitted", Broker: []string{"share.isolation.level"}, oneOf: []string{"read_committed", "read_uncommitted"}},
	{Name: "share.partition.max.record.locks", Type: TypeInt, Default: "2000", Broker: []string{"group.share.partition.max.record.locks"}, min: 100, max: math.MaxInt32, within: [2]int64{100, 4000}},
	{Name: "share.record.lock.duration.ms", Type: TypeInt, Default: "30000", Broker: []string{"group.share.record.lock.duration.ms"}, min: 1000, max: math.MaxInt32, within: [2]int64{15000, 60000}},
	{Name: "share.renew.acknowledge.enable", Type: TypeBoolean, Default: "true", Broker: []string{"share.renew.acknowledge.enable"}},
	{Name: "share.session.timeout.ms", Type: TypeInt, Default: "45000", Broker: []string{"group.share.session.timeout.ms"}, min: 1, max: math.MaxInt32, within: [2]int64{45000, 60000}},
	{Name: "streams.assignment.interval.ms", Type: TypeInt, Default: "1000", Broker: []string{"group.streams.assignment.interval.ms"}, max: math.MaxInt32, within: [2]int64{0, 15000}},
	{Name: "streams.assignor.name", Type: TypeString, Default: "sticky", Broker: []string{"group.streams.assignors"}},
	{Name: "streams.heartbeat.interval.ms", Type: TypeInt, Default: "5000", Broker: []string{"group.streams.heartbeat.interval.ms"}, min: 1, max: math.MaxInt32, within: [2]int64{5000, 15000}},
	{Name: "streams.initial.rebalance.delay.ms", Type: TypeInt, Default: "3000", Broker: []string{"group.streams.initial.rebalance.delay.ms"}, max: math.MaxInt32},
	{Name: "streams.num.standby.replicas", Type: TypeInt, Default: "0", Broker: []string{"group.streams.num.standby.replicas"}, max: math.MaxInt32},
	{Name: "streams.rack.aware.assignment.tags", Type: TypeList, Default: "", Broker: []string{"group.streams.rack.aware.assignment.tags"}},
	{Name: "streams.session.timeout.ms", Type: TypeInt, Default: "45000", Broker: []string{"group.streams.session.timeout.ms"}, min: 1, max: math.MaxInt32, within: [2]int64{45000, 60000}},
}

// Of a group Kafka appends to no list.
var groupConfigs = configKind{false, findGroupDef, checkGroupConfigs}

func findGroupDef(name string) *ConfigDef {
	i := slices.IndexFunc(GroupConfigDefs, func(d ConfigDef) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return &GroupConfigDefs[i]
}

// byDuration is an offset reset to a time in the past, as java.time.Duration reads it.
var byDuration = regexp.MustCompile(`(?i)^by_duration:P(\d+D)?(T(\d+H)?(\d+M)?(\d+(\.\d{0,9})?S)?)?$`)

// checkGroupConfigs says what is wrong with the configurations that a group sets; ""
// if nothing is. First come the types and bounds of all, then what the gateway would
// have to allow, by its defaults (Kafka's class GroupConfig).
func checkGroupConfigs(configs []Config) string {
	for _, c := range configs {
		d := findGroupDef(c.Name)
		if d == nil {
			return "Unknown group config name: " + c.Name
		}
		if msg := d.check(c.Value); msg != "" {
			return msg
		}
		if v := strings.TrimSpace(c.Value); c.Name == "share.auto.offset.reset" && v != "earliest" && v != "latest" && !validDuration(v) {
			return d.fault(v, fmt.Sprintf("Invalid value `%s` for configuration %s. The value must be either 'earliest', 'latest'"+
				" or of the format 'by_duration:<PnDTnHnMn.nS>'.", v, c.Name))
		}
	}
	for _, c := range configs {
		d, v := findGroupDef(c.Name), strings.TrimSpace(c.Value)
		n, _ := strconv.ParseInt(v, 10, 32)
		switch {
		case d.within != [2]int64{} && (n < d.within[0] || n > d.within[1]):
			return fmt.Sprintf("%s must be in the range %d to %d inclusive.", c.Name, d.within[0], d.within[1])
		case c.Name == "streams.num.standby.replicas" && n > 2:
			return c.Name + " must be less than or equal to 2"
		case c.Name == "streams.assignor.name" && v != d.Default:
			return fmt.Sprintf("%s '%s' is not a registered task assignor. Registered assignors are: [%s].", c.Name, v, d.Default)
		}
	}
	return ""
}

func validDuration(v string) bool {
	return byDuration.MatchString(v) && !strings.HasSuffix(strings.ToUpper(v), "T") && len(v) > len("by_duration:P")
}

// GroupConfigs resolves every configuration of a group, be it there or not, in order
// of their names. FromTopic says that the group sets it.
func (l *Log) GroupConfigs(group string) []Value {
	var own []Config
	if v, ok := l.groupConfigs.Load(group); ok {
		own = v.([]Config)
	}
	values := make([]Value, len(GroupConfigDefs))
	for i := range GroupConfigDefs {
		values[i] = resolve(&GroupConfigDefs[i], own, nil)
	}
	return values
}

// ConfiguredGroups are the groups that set configurations, in order of their names.
func (l *Log) ConfiguredGroups() []string {
	var all []string
	l.groupConfigs.Range(func(group, _ any) bool {
		all = append(all, group.(string))
		return true
	})
	slices.Sort(all)
	return all
}

// AlterGroup is [Log.AlterTopic] for a group, which need not be there.
func (l *Log) AlterGroup(group string, a Alteration, only bool, done func(*Refusal, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	configs, r := groupConfigs.apply(l.groupNewest[group], a, nil)
	if r == nil && l.groupNewest[group] == nil && len(configs) > 0 && len(l.groupNewest) >= configuredGroupsMax {
		r = refuse(PolicyViolation, fmt.Sprintf("There would be more than %d groups with configurations.", configuredGroupsMax))
	}
	if r != nil || only {
		done(r, nil)
		return
	}
	if len(configs) == 0 {
		delete(l.groupNewest, group)
	} else {
		l.groupNewest[group] = configs
	}
	l.committer.Submit(store.Op{
		Sync:  true,
		Write: func(b *store.Batch) { writeGroupConfigs(b, group, configs) },
		Done: func(err error) {
			switch {
			case err != nil:
			case len(configs) == 0:
				l.groupConfigs.Delete(group)
			default:
				l.groupConfigs.Store(group, configs)
			}
			done(nil, err)
		},
	})
}

func writeGroupConfigs(b *store.Batch, group string, configs []Config) {
	if len(configs) == 0 {
		b.Delete(groupConfigKey(group))
		return
	}
	b.Set(groupConfigKey(group), appendConfigs([]byte{groupConfigRowVersion}, configs))
}

func (l *Log) loadGroupConfigs() error {
	it, err := l.db.NewIter(&pebble.IterOptions{
		LowerBound: []byte{noTenant, kindGroupConfig},
		UpperBound: []byte{noTenant, kindGroupConfig + 1},
	})
	if err != nil {
		return fmt.Errorf("read the configurations of groups: %w", err)
	}
	for it.First(); it.Valid(); it.Next() {
		r := rowReader{b: it.Value()}
		version := r.byte()
		configs := r.configs()
		if err := r.err(); err != nil || version != groupConfigRowVersion {
			_ = it.Close()
			return fmt.Errorf("read the configurations of a group under key %x: version %d: %w", it.Key(), version, cmp.Or(err, errRow))
		}
		group := string(it.Key()[2:])
		l.groupNewest[group] = configs
		l.groupConfigs.Store(group, configs)
	}
	return it.Close()
}
