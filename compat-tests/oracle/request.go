package oracle

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// builder makes one request of a member from the words of a step.
//
// Words of all groups' requests: group, id, instance, gen. Of any request:
// cut=N leaves out the last N bytes, extra=HEX adds some. The functions below have
// the other words; a word that no one takes is an error.
type builder struct {
	values
	args
	m       *member
	version int16
	// all: see sent.
	all bool
}

// apis are the requests that a scenario can send, by name.
var apis = map[string]func(*builder) kmsg.Request{
	"JoinGroup":       (*builder).joinGroup,
	"SyncGroup":       (*builder).syncGroup,
	"Heartbeat":       (*builder).heartbeat,
	"LeaveGroup":      (*builder).leaveGroup,
	"OffsetCommit":    (*builder).offsetCommit,
	"OffsetFetch":     (*builder).offsetFetch,
	"OffsetDelete":    (*builder).offsetDelete,
	"FindCoordinator": (*builder).findCoordinator,
	"DescribeGroups":  (*builder).describeGroups,
	"ListGroups":      (*builder).listGroups,
	"DeleteGroups":    (*builder).deleteGroups,
	"ApiVersions":     (*builder).apiVersions,
}

func (b *builder) groupWord() string { return b.group(b.take("group", b.m.group)) }

func (b *builder) idWord() string {
	if word, ok := b.args["id"]; ok {
		delete(b.args, "id")
		return b.id(word)
	}
	return b.m.id()
}

func (b *builder) instanceWord() *string {
	if word, ok := b.args["instance"]; ok {
		delete(b.args, "instance")
		return b.text(word)
	}
	return b.m.instance
}

func (b *builder) genWord() int32 {
	if word, ok := b.args["gen"]; ok {
		delete(b.args, "gen")
		return int32(b.int(word, 32))
	}
	return b.m.generation
}

// joinGroup: session, rebalance (durations), type, protocols=NAME:METADATA,...,
// reason.
func (b *builder) joinGroup() kmsg.Request {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.InstanceID = b.groupWord(), b.idWord(), b.instanceWord()
	req.SessionTimeoutMillis = b.millis(b.take("session", b.m.session.String()))
	req.RebalanceTimeoutMillis = b.millis(b.take("rebalance", b.m.rebalance.String()))
	req.ProtocolType = b.plain(b.take("type", b.m.kind))
	for _, p := range list(b.take("protocols", b.m.protocols)) {
		name, metadata, _ := strings.Cut(p, ":")
		req.Protocols = append(req.Protocols, kmsg.JoinGroupRequestProtocol{Name: b.plain(name), Metadata: b.bytes(metadata)})
	}
	req.Reason = b.text(b.take("reason", "null"))
	return req
}

// syncGroup: type and name of the protocol, assign=ID:BYTES,... or none.
func (b *builder) syncGroup() kmsg.Request {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = b.groupWord(), b.idWord(), b.instanceWord(), b.genWord()
	req.ProtocolType, req.Protocol = b.m.protocolType, b.m.protocol
	if word, ok := b.args["type"]; ok {
		req.ProtocolType = b.text(word)
		delete(b.args, "type")
	}
	if word, ok := b.args["name"]; ok {
		req.Protocol = b.text(word)
		delete(b.args, "name")
	}
	word, ok := b.args["assign"]
	delete(b.args, "assign")
	if !ok && b.m.leads {
		for _, id := range b.m.roster {
			req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{
				MemberID: id, MemberAssignment: []byte("for " + b.run.symbol(id)),
			})
		}
	}
	for _, item := range list(word) {
		id, bytes, _ := strings.Cut(item, ":")
		req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{
			MemberID: b.id(id), MemberAssignment: b.bytes(bytes),
		})
	}
	return req
}

func (b *builder) heartbeat() kmsg.Request {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = b.groupWord(), b.idWord(), b.instanceWord(), b.genWord()
	return req
}

// leaveGroup: members=ID,ID@INSTANCE,... (version 3 and later), reason.
func (b *builder) leaveGroup() kmsg.Request {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = b.groupWord(), b.idWord()
	reason := b.text(b.take("reason", "null"))
	if word, ok := b.args["members"]; ok {
		delete(b.args, "members")
		for _, item := range list(word) {
			id, instance, static := strings.Cut(item, "@")
			m := kmsg.LeaveGroupRequestMember{MemberID: b.id(id), Reason: reason}
			if static {
				m.InstanceID = b.text(instance)
			}
			req.Members = append(req.Members, m)
		}
		return req
	}
	req.Members = []kmsg.LeaveGroupRequestMember{{MemberID: req.MemberID, InstanceID: b.instanceWord(), Reason: reason}}
	return req
}

// offsetCommit: offsets=TOPIC/N:OFFSET:eEPOCH:METADATA,..., retention (ms).
func (b *builder) offsetCommit() kmsg.Request {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = b.groupWord(), b.idWord(), b.instanceWord(), b.genWord()
	req.RetentionTimeMillis = b.int(b.take("retention", "-1"), 64)
	for _, ps := range b.partitions(b.take("offsets", "")) {
		t := kmsg.NewOffsetCommitRequestTopic()
		t.Topic, t.TopicID = b.run.topic(ps[0].topic)
		for _, p := range ps {
			if p.partition == noPartition {
				continue
			}
			rp := kmsg.NewOffsetCommitRequestTopicPartition()
			rp.Partition, rp.Offset, rp.LeaderEpoch, rp.Metadata = p.partition, p.offset, p.epoch, p.metadata
			t.Partitions = append(t.Partitions, rp)
		}
		req.Topics = append(req.Topics, t)
	}
	return req
}

// offsetFetch: offsets=TOPIC/N,... or all or none; groups=GROUP{...};GROUP{...} for
// several (version 8 and later); stable; id and epoch (version 9 and later).
func (b *builder) offsetFetch() kmsg.Request {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = b.has("stable")
	var id *string
	if word, ok := b.args["id"]; ok {
		s := b.id(word)
		id = &s
		delete(b.args, "id")
	}
	epoch := int32(b.int(b.take("epoch", "-1"), 32))
	word, several := b.args["groups"]
	delete(b.args, "groups")
	if !several {
		word = b.take("group", b.m.group) + "{" + b.take("offsets", "all") + "}"
	}
	for _, item := range split(word, ';') {
		name, offsets, _ := strings.Cut(strings.TrimSuffix(item, "}"), "{")
		if name == "" {
			continue
		}
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group, g.MemberID, g.MemberEpoch = b.group(name), id, epoch
		if offsets == "all" {
			b.all = true
		} else {
			g.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
		}
		if offsets != "all" {
			for _, ps := range b.partitions(offsets) {
				t := kmsg.NewOffsetFetchRequestGroupTopic()
				t.Topic, t.TopicID = b.run.topic(ps[0].topic)
				for _, p := range ps {
					t.Partitions = append(t.Partitions, p.partition)
				}
				g.Topics = append(g.Topics, t)
			}
		}
		req.Groups = append(req.Groups, g)
	}
	if b.version < 8 && len(req.Groups) == 1 { // the fields of the older versions
		g := req.Groups[0]
		req.Group = g.Group
		if g.Topics != nil {
			req.Topics = []kmsg.OffsetFetchRequestTopic{}
		}
		for _, t := range g.Topics {
			req.Topics = append(req.Topics, kmsg.OffsetFetchRequestTopic{Topic: t.Topic, Partitions: t.Partitions})
		}
	}
	return req
}

// offsetDelete: offsets=TOPIC/N,...
func (b *builder) offsetDelete() kmsg.Request {
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = b.groupWord()
	for _, ps := range b.partitions(b.take("offsets", "")) {
		t := kmsg.NewOffsetDeleteRequestTopic()
		t.Topic, _ = b.run.topic(ps[0].topic)
		for _, p := range ps {
			if p.partition != noPartition {
				t.Partitions = append(t.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: p.partition})
			}
		}
		req.Topics = append(req.Topics, t)
	}
	return req
}

// findCoordinator: keys=GROUP,... and type.
func (b *builder) findCoordinator() kmsg.Request {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorType = int8(b.int(b.take("type", "0"), 8))
	for _, key := range list(b.take("keys", b.m.group)) {
		req.CoordinatorKeys = append(req.CoordinatorKeys, b.group(key))
	}
	if len(req.CoordinatorKeys) > 0 {
		req.CoordinatorKey = req.CoordinatorKeys[0]
	}
	return req
}

// describeGroups: groups, operations.
func (b *builder) describeGroups() kmsg.Request {
	req := kmsg.NewPtrDescribeGroupsRequest()
	for _, name := range list(b.take("groups", b.m.group)) {
		req.Groups = append(req.Groups, b.group(name))
	}
	req.IncludeAuthorizedOperations = b.has("operations")
	return req
}

// listGroups: states, types.
func (b *builder) listGroups() kmsg.Request {
	req := kmsg.NewPtrListGroupsRequest()
	for _, word := range list(b.take("states", "")) {
		req.StatesFilter = append(req.StatesFilter, b.plain(word))
	}
	for _, word := range list(b.take("types", "")) {
		req.TypesFilter = append(req.TypesFilter, b.plain(word))
	}
	return req
}

// deleteGroups: groups.
func (b *builder) deleteGroups() kmsg.Request {
	req := kmsg.NewPtrDeleteGroupsRequest()
	for _, name := range list(b.take("groups", b.m.group)) {
		req.Groups = append(req.Groups, b.group(name))
	}
	return req
}

// apiVersions: software, number (version 3 and later).
func (b *builder) apiVersions() kmsg.Request {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName = b.plain(b.take("software", "oracle"))
	req.ClientSoftwareVersion = b.plain(b.take("number", "1"))
	return req
}
