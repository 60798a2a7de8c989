package api

import (
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/txn"
	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
)

// TopicConfig is the part of the configuration that the handlers of topics decide
// by, with Kafka's keys in the comments.
type TopicConfig struct {
	// AutoCreate is auto.create.topics.enable.
	AutoCreate bool
	// NumPartitions is num.partitions.
	NumPartitions int32
	// FetchMaxBytes is fetch.max.bytes.
	FetchMaxBytes int32
	// FetchSessionsMax is max.incremental.fetch.session.cache.slots.
	FetchSessionsMax int
	// Effective has the configuration under Kafka's keys, for DescribeConfigs: what
	// was set by the operator, as text.
	Effective map[string]string
}

// TopicHandlers serves the API keys of the embedded topics. The fields must be set
// before Entries is called; none may change after.
type TopicHandlers struct {
	Config  TopicConfig
	Log     *topics.Log
	Txns    *txn.Coordinator
	Auth    Authorizer
	Cluster *ClusterView
	// DiskLow tells whether the disk is nearly full: then nothing is appended.
	DiskLow func() bool
	// Now is the clock of fetch sessions; nil is time.Now.
	Now func() time.Time

	sessions  *fetchSessions
	responses fetchBudget
}

// Entries returns the table's entries of the topic APIs.
func (h *TopicHandlers) Entries() []Entry {
	if h.Now == nil {
		h.Now = time.Now
	}
	if h.DiskLow == nil {
		h.DiskLow = func() bool { return false }
	}
	h.sessions = newFetchSessions(h.Config.FetchSessionsMax)
	return []Entry{
		{Key: 0, Min: 0, Max: 13, Handle: h.produce},
		{Key: 1, Min: 4, Max: 18, Holds: true, Handle: h.fetch},
		{Key: 2, Min: 1, Max: 11, Handle: h.listOffsets},
		{Key: 3, Min: 0, Max: 13, Handle: h.metadata},
		{Key: 19, Min: 2, Max: 7, Handle: h.createTopics},
		{Key: 20, Min: 1, Max: 6, Handle: h.deleteTopics},
		{Key: 21, Min: 0, Max: 2, Handle: h.deleteRecords},
		{Key: 32, Min: 1, Max: 4, Handle: h.describeConfigs},
		{Key: 33, Min: 0, Max: 2, Handle: h.alterConfigs},
		{Key: 37, Min: 0, Max: 3, Handle: h.createPartitions},
		{Key: 44, Min: 0, Max: 1, Handle: h.incrementalAlterConfigs},
		{Key: 74, Min: 0, Max: 1, Handle: h.listConfigResources},
		{Key: 23, Min: 2, Max: 4, Handle: h.offsetForLeaderEpoch},
		{Key: 29, Min: 1, Max: 3, Handle: h.describeACLs},
		{Key: 43, Min: 0, Max: 2, Handle: h.electLeaders},
		{Key: 46, Min: 0, Max: 0, Handle: h.listPartitionReassignments},
		{Key: 48, Min: 0, Max: 1, Handle: h.describeClientQuotas},
		{Key: 50, Min: 0, Max: 0, Handle: h.describeUserSCRAMCredentials},
		{Key: 60, Min: 0, Max: 2, Handle: h.describeCluster},
		{Key: 75, Min: 0, Max: 0, Handle: h.describeTopicPartitions},
	}
}

func (h *TopicHandlers) allowed(c *Call, op Operation, kind Resource, name string) bool {
	return h.Auth.Authorize(c.Session, op, kind, name)
}

// leaderEpochFault compares the leader epoch that a client knows with that of the
// partition; -1 is of a client that knows none.
func leaderEpochFault(p *topics.Partition, known int32) int16 {
	switch {
	case known == -1 || known == p.LeaderEpoch():
		return 0
	case known < p.LeaderEpoch():
		return kerr.FencedLeaderEpoch.Code
	default:
		return kerr.UnknownLeaderEpoch.Code
	}
}

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
