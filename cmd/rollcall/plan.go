package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/rollcall-mq/rollcall/gateway/admin/rest"
)

// withHold gives a command --hold.
func withHold(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("hold", false, "also if the group has members: they are removed, what they still commit is refused, and they join again")
}

// resetPlan is what a command is about to do to the committed offsets of groups. It
// is made, checked and shown as a whole before anything is changed; each group is
// then changed at one stroke.
type resetPlan struct {
	gateway *admin
	// replace removes offsets that the plan does not name.
	replace bool
	// fence removes members; without it a group with members is refused.
	fence  bool
	groups []plannedGroup
	// topics are the topics that exist, as far as they were asked for; nil for one
	// that does not.
	topics map[string]*rest.TopicDescription
}

// plannedGroup is the part of a plan about one group.
type plannedGroup struct {
	id      string
	offsets []rest.SetOffset
	// lines are what changes.
	lines []rest.Difference
	// notes are what is not done, and why.
	notes []string
}

// topic returns a topic, nil if there is none.
func (p *resetPlan) topic(ctx context.Context, name string) (*rest.TopicDescription, error) {
	if t, ok := p.topics[name]; ok {
		return t, nil
	}
	t := &rest.TopicDescription{}
	err := p.gateway.call(ctx, http.MethodGet, topicPath(name), nil, t)
	if isNotFound(err) {
		t, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	if p.topics == nil {
		p.topics = map[string]*rest.TopicDescription{}
	}
	p.topics[name] = t
	return t, nil
}

// add plans to give a group offsets. Those of topics and partitions that do not exist
// are left out, with a note.
func (p *resetPlan) add(ctx context.Context, id string, offsets []rest.CommittedOffset) error {
	g := plannedGroup{id: id}
	var description rest.GroupDescription
	err := p.gateway.call(ctx, http.MethodGet, groupPath(id), nil, &description)
	if err != nil && !isNotFound(err) {
		return err
	}
	if len(description.Members) > 0 && !p.fence {
		return fmt.Errorf("group %q has %d members; stop them, or add --hold to remove them while its offsets are set", id, len(description.Members))
	}
	kept := map[string]map[int32]bool{}
	for _, o := range offsets {
		t, err := p.topic(ctx, o.Topic)
		if err != nil {
			return err
		}
		if t == nil || int(o.Partition) >= t.Partitions {
			g.notes = append(g.notes, fmt.Sprintf("%s-%d does not exist; its offset %d is left out", o.Topic, o.Partition, o.Offset))
			continue
		}
		g.offsets = append(g.offsets, rest.SetOffset{
			Topic: o.Topic, Partition: o.Partition, Offset: o.Offset, LeaderEpoch: &o.LeaderEpoch, Metadata: o.Metadata,
		})
		if kept[o.Topic] == nil {
			kept[o.Topic] = map[int32]bool{}
		}
		kept[o.Topic][o.Partition] = true
	}
	switch {
	case len(offsets) == 0 && len(description.Offsets) == 0:
		return fmt.Errorf("group %q has committed nothing, and had not then", id)
	case len(offsets) > 0 && len(g.offsets) == 0 && !p.replace:
		return fmt.Errorf("group %q: %s", id, g.notes[0])
	}
	g.lines = p.changes(description.Offsets, g.offsets, kept)
	p.groups = append(p.groups, g)
	return nil
}

// changes lists what setting offsets changes.
func (p *resetPlan) changes(now []rest.CommittedOffset, set []rest.SetOffset, named map[string]map[int32]bool) (all []rest.Difference) {
	was := map[string]map[int32]int64{}
	for _, o := range now {
		if was[o.Topic] == nil {
			was[o.Topic] = map[int32]int64{}
		}
		was[o.Topic][o.Partition] = o.Offset
		if p.replace && !named[o.Topic][o.Partition] {
			all = append(all, rest.Difference{Topic: o.Topic, Partition: o.Partition, From: &o.Offset})
		}
	}
	for _, o := range set {
		d := rest.Difference{Topic: o.Topic, Partition: o.Partition, To: &o.Offset}
		if before, ok := was[o.Topic][o.Partition]; ok {
			if before == o.Offset {
				continue
			}
			d.From = &before
		}
		all = append(all, d)
	}
	return all
}

// run shows the plan and, if it is to be executed, does it group by group.
func (p *resetPlan) run(cmd *cobra.Command, execute *execution) error {
	for i := range p.groups {
		g := &p.groups[i]
		fmt.Fprintf(cmd.OutOrStdout(), "%s group %s: %d offsets change\n", execute.verb("reset"), g.id, len(g.lines))
		if p.replace && len(g.offsets) == 0 && len(g.lines) > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "rollcall: group %s had committed nothing then: all its offsets go\n", g.id)
		}
		for _, note := range g.notes {
			fmt.Fprintf(cmd.ErrOrStderr(), "rollcall: group %s: %s\n", g.id, note)
		}
		if len(g.lines) > 0 {
			if err := diffTable(cmd.OutOrStdout(), g.lines); err != nil {
				return err
			}
		}
		if !execute.yes || len(g.lines) == 0 {
			continue
		}
		body := rest.NewOffsets{Offsets: g.offsets, Replace: p.replace, Fence: p.fence}
		if err := p.gateway.call(cmd.Context(), http.MethodPut, groupPath(g.id)+"/offsets", &body, nil); err != nil {
			return fmt.Errorf("%w; %d of %d groups were reset before", err, i, len(p.groups))
		}
	}
	return execute.hint(cmd)
}
