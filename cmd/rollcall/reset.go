package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-mq/rollcall/gateway/admin/rest"
)

// resetTargets are the flags that say where to; exactly one is given.
type resetTargets struct {
	earliest, latest, current bool
	offset, shift             int64
	datetime, duration        string
	like, file                string
}

// targetFlags are the names of those flags; they are Kafka's where Kafka has them.
var targetFlags = []string{"to-earliest", "to-latest", "to-current", "to-offset", "shift-by", "to-datetime", "by-duration", "like-group", "from-file"}

func (t *resetTargets) define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&t.earliest, "to-earliest", false, "to the first record")
	f.BoolVar(&t.latest, "to-latest", false, "behind the last record")
	f.BoolVar(&t.current, "to-current", false, "to what is committed, or behind the last record where nothing is")
	f.Int64Var(&t.offset, "to-offset", 0, "to this `OFFSET`")
	f.Int64Var(&t.shift, "shift-by", 0, "forward by `N` records, backward if it is negative")
	f.StringVar(&t.datetime, "to-datetime", "", "to the first record that is not older than this `TIME` in RFC 3339")
	f.StringVar(&t.duration, "by-duration", "", "to the first record that is not older than this `DURATION` back from now, such as 2h30m or 7d")
	f.StringVar(&t.like, "like-group", "", "to what this other `GROUP` has committed")
	f.StringVar(&t.file, "from-file", "", "to what a `FILE` says: lines of TOPIC PARTITION OFFSET, or TOPIC,PARTITION,OFFSET; - is standard input")
	cmd.MarkFlagsMutuallyExclusive(targetFlags...)
	cmd.MarkFlagsOneRequired(targetFlags...)
}

func groupResetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "reset GROUP...", Short: "Set the committed offsets of groups"}
	targets := &resetTargets{}
	targets.define(cmd)
	connect, execute, hold := withAdmin(cmd), withExecute(cmd), withHold(cmd)
	topics := cmd.Flags().StringArray("topic", nil, "only this `TOPIC`, or TOPIC:0,1,2 for some partitions; may be given again. The default is all that the group has committed")
	patterns := cmd.Flags().StringArray("pattern", nil, "also groups whose id matches this shell `PATTERN`, such as 'billing-*'")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(*patterns) > 0 {
			return nil
		}
		return someArgs(cmd, args)
	}
	cmd.Long += "\n\nOffsets outside of a partition's records are moved to its first or behind its last one."
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		gateway, err := connect()
		if err != nil {
			return err
		}
		ctx := cmd.Context()
		if ids, err = gateway.matching(ctx, ids, *patterns); err != nil {
			return err
		}
		r := &resetter{admin: gateway, targets: targets, now: time.Now(), changed: cmd.Flags().Changed}
		if err := r.prepare(ctx, cmd.InOrStdin(), *topics); err != nil {
			return err
		}
		plan := &resetPlan{gateway: gateway, fence: *hold}
		r.plan = plan
		for _, id := range ids {
			offsets, err := r.target(ctx, id)
			if err != nil {
				return err
			}
			if err := plan.add(ctx, id, offsets); err != nil {
				return err
			}
		}
		return plan.run(cmd, execute)
	}
	return cmd
}

// matching adds the groups that match a pattern to those that are named.
func (a *admin) matching(ctx context.Context, ids, patterns []string) ([]string, error) {
	for _, pattern := range patterns {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, usageError{fmt.Errorf("--pattern %q: %w", pattern, err)}
		}
	}
	if len(patterns) == 0 {
		return ids, nil
	}
	body, err := a.open(ctx, http.MethodGet, "/v1/stream/groups", nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	err = eachGroup(body, func(g *rest.GroupLine) {
		for _, pattern := range patterns {
			if ok, _ := path.Match(pattern, g.Group); ok && !slices.Contains(ids, g.Group) { // the pattern was checked
				ids = append(ids, g.Group)
			}
		}
	})
	if err == nil && len(ids) == 0 {
		err = fmt.Errorf("no group matches %s", strings.Join(patterns, " or "))
	}
	return ids, err
}

// resetter finds where groups are reset to.
type resetter struct {
	*admin
	targets *resetTargets
	plan    *resetPlan
	now     time.Time
	// changed tells which flags were given.
	changed func(flag string) bool
	// scope has the partitions that --topic names, by topic; nil means all of it.
	scope map[string][]int32
	// fixed are the offsets of a file or of another group.
	fixed []rest.CommittedOffset
	// at has the offsets of topics by time.
	at map[string][]rest.PartitionOffsets
}

// prepare reads what does not depend on the group.
func (r *resetter) prepare(ctx context.Context, stdin io.Reader, topics []string) (err error) {
	if r.scope, err = parseScope(topics); err != nil {
		return usageError{err}
	}
	switch t := r.targets; {
	case t.offset < 0:
		return usageError{fmt.Errorf("--to-offset %d: offsets begin at 0", t.offset)}
	case t.like != "":
		r.fixed, err = r.offsets(ctx, t.like, "")
		if err == nil && len(r.fixed) == 0 {
			err = fmt.Errorf("group %q has committed nothing", t.like)
		}
	case t.file != "":
		r.fixed, err = readOffsets(t.file, stdin)
	case t.duration != "":
		if _, err = rest.ParseDuration(t.duration); err != nil {
			err = usageError{fmt.Errorf("--by-duration: %w", err)}
		}
	case t.datetime != "":
		if _, err = time.Parse(time.RFC3339Nano, t.datetime); err != nil {
			err = usageError{fmt.Errorf("--to-datetime: %q is no time like 2026-01-31T12:00:00Z", t.datetime)}
		}
	}
	return err
}

// parseScope reads TOPIC and TOPIC:0,1,2.
func parseScope(topics []string) (map[string][]int32, error) {
	if len(topics) == 0 {
		return nil, nil
	}
	scope := map[string][]int32{}
	for _, text := range topics {
		name, list, some := strings.Cut(text, ":")
		if !some {
			scope[name] = nil
			continue
		}
		for number := range strings.SplitSeq(list, ",") {
			p, err := strconv.ParseInt(number, 10, 32)
			if err != nil || p < 0 {
				return nil, fmt.Errorf("--topic %s: %q is no partition", text, number)
			}
			scope[name] = append(scope[name], int32(p))
		}
	}
	return scope, nil
}

// inScope tells whether --topic leaves a partition in.
func (r *resetter) inScope(topic string, partition int32) bool {
	partitions, ok := r.scope[topic]
	return r.scope == nil || ok && (partitions == nil || slices.Contains(partitions, partition))
}

// target returns the offsets that a group gets.
func (r *resetter) target(ctx context.Context, id string) ([]rest.CommittedOffset, error) {
	if r.fixed != nil {
		return slices.DeleteFunc(slices.Clone(r.fixed), func(o rest.CommittedOffset) bool { return !r.inScope(o.Topic, o.Partition) }), nil
	}
	committed, err := r.offsets(ctx, id, "")
	if err != nil {
		return nil, err
	}
	committed = slices.DeleteFunc(committed, func(o rest.CommittedOffset) bool { return !r.inScope(o.Topic, o.Partition) })
	if committed, err = r.addScope(ctx, committed); err != nil {
		return nil, err
	}
	if len(committed) == 0 {
		return nil, fmt.Errorf("group %q has committed nothing; name topics with --topic", id)
	}
	for i := range committed {
		if err := r.move(ctx, &committed[i]); err != nil {
			return nil, err
		}
	}
	return committed, nil
}

// addScope adds the partitions of --topic for which nothing is committed, with
// offset -1.
func (r *resetter) addScope(ctx context.Context, committed []rest.CommittedOffset) ([]rest.CommittedOffset, error) {
	names := make([]string, 0, len(r.scope))
	for name := range r.scope {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t, err := r.plan.topic(ctx, name)
		if err != nil {
			return nil, err
		}
		if t == nil {
			return nil, fmt.Errorf("topic %q does not exist", name)
		}
		for _, partition := range r.scope[name] {
			if int(partition) >= t.Partitions {
				return nil, fmt.Errorf("--topic: topic %q has no partition %d; it has %d", name, partition, t.Partitions)
			}
		}
		for _, o := range t.Offsets {
			known := slices.ContainsFunc(committed, func(c rest.CommittedOffset) bool { return c.Topic == name && c.Partition == o.Partition })
			if !known && r.inScope(name, o.Partition) {
				committed = append(committed, rest.CommittedOffset{Topic: name, Partition: o.Partition, Offset: -1, LeaderEpoch: -1})
			}
		}
	}
	return committed, nil
}

// move changes a committed offset, -1 if there is none, into its target.
func (r *resetter) move(ctx context.Context, o *rest.CommittedOffset) error {
	topic, err := r.plan.topic(ctx, o.Topic)
	if err != nil || topic == nil || int(o.Partition) >= len(topic.Offsets) {
		return err // the plan says that it is gone
	}
	bounds := topic.Offsets[o.Partition]
	to := o.Offset
	switch t := r.targets; {
	case t.earliest:
		to = bounds.Start
	case t.latest, t.current && o.Offset < 0:
		to = bounds.End
	case r.changed("to-offset"):
		to = t.offset
	case r.changed("shift-by"):
		if o.Offset < 0 {
			return fmt.Errorf("--shift-by: nothing is committed for %s-%d", o.Topic, o.Partition)
		}
		to = o.Offset + t.shift
	case t.datetime != "" || t.duration != "":
		at, err := r.recordsAt(ctx, o.Topic)
		if err != nil {
			return err
		}
		to = at[o.Partition].Start
	}
	to = min(max(to, bounds.Start), bounds.End)
	if to != o.Offset {
		*o = rest.CommittedOffset{Topic: o.Topic, Partition: o.Partition, Offset: to, LeaderEpoch: -1}
	}
	return nil
}

// recordsAt returns where the records of a topic begin that are not older than the
// time of the target.
func (r *resetter) recordsAt(ctx context.Context, topic string) ([]rest.PartitionOffsets, error) {
	if at, ok := r.at[topic]; ok {
		return at, nil
	}
	at := r.targets.datetime
	if d, err := rest.ParseDuration(r.targets.duration); err == nil {
		at = r.now.Add(-d).UTC().Format(time.RFC3339Nano)
	}
	var list struct {
		Offsets []rest.PartitionOffsets `json:"offsets"`
	}
	if err := r.call(ctx, http.MethodGet, topicPath(topic)+"/offsets?"+url.Values{"at": {at}}.Encode(), nil, &list); err != nil {
		return nil, err
	}
	if r.at == nil {
		r.at = map[string][]rest.PartitionOffsets{}
	}
	r.at[topic] = list.Offsets
	return list.Offsets, nil
}

// readOffsets reads a file of offsets. Anything wrong with a line refuses all.
func readOffsets(name string, stdin io.Reader) ([]rest.CommittedOffset, error) {
	var content []byte
	var err error
	if name == "-" {
		content, err = io.ReadAll(stdin)
	} else {
		content, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading offsets: %w", err)
	}
	var all []rest.CommittedOffset
	n := 0
	for line := range strings.Lines(string(content)) {
		n++
		text := strings.TrimSpace(line)
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		o, err := parseOffset(text)
		if err != nil {
			return nil, fmt.Errorf("%s line %d: %w", name, n, err)
		}
		all = append(all, o)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no offsets", name)
	}
	return all, nil
}

// parseOffset reads TOPIC PARTITION OFFSET, or the same with commas.
func parseOffset(text string) (rest.CommittedOffset, error) {
	fields := strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' || c == '\t' })
	if len(fields) != 3 {
		return rest.CommittedOffset{}, fmt.Errorf("%.60q is not TOPIC PARTITION OFFSET", text)
	}
	partition, err := strconv.ParseInt(strings.Trim(fields[1], `"`), 10, 32)
	if err != nil || partition < 0 {
		return rest.CommittedOffset{}, fmt.Errorf("%q is no partition", fields[1])
	}
	offset, err := strconv.ParseInt(strings.Trim(fields[2], `"`), 10, 64)
	if err != nil || offset < 0 {
		return rest.CommittedOffset{}, fmt.Errorf("%q is no offset", fields[2])
	}
	return rest.CommittedOffset{Topic: strings.Trim(fields[0], `"`), Partition: int32(partition), Offset: offset, LeaderEpoch: -1}, nil
}
