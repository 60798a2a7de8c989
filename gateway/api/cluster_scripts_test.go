package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

func init() {
	topicScripts = append(topicScripts,
		topicScript{"describe_cluster", scriptDescribeCluster},
		topicScript{"describe_topic_partitions", scriptDescribeTopicPartitions},
		topicScript{"offset_for_leader_epoch", scriptOffsetForLeaderEpoch},
		topicScript{"nothing_there", scriptNothingThere},
		topicScript{"elect_leaders", scriptElectLeaders},
	)
}

func scriptDescribeCluster(c *conversation) {
	c.words = true
	for v := int16(0); v <= 2; v++ {
		for endpoint := int8(0); endpoint <= 3; endpoint++ {
			if v == 0 && endpoint != 1 {
				continue
			}
			req := kmsg.NewPtrDescribeClusterRequest()
			req.EndpointType, req.IncludeFencedBrokers = endpoint, endpoint == 1
			req.IncludeClusterAuthorizedOperations = v == 1
			c.say("endpoints of type %d", endpoint)
			resp, ok := c.ask(v, req).(*kmsg.DescribeClusterResponse)
			if ok {
				c.say("%d brokers, cluster id %t, controller %d", len(resp.Brokers), resp.ClusterID != "", resp.ControllerID)
			}
		}
	}
}

func scriptDescribeTopicPartitions(c *conversation) {
	c.words = true
	c.topic("described-a", 3)
	c.topic("described-b", 2)
	ask := func(limit int32, cursor *kmsg.DescribeTopicPartitionsRequestCursor, names ...string) {
		req := kmsg.NewPtrDescribeTopicPartitionsRequest()
		req.ResponsePartitionLimit, req.Cursor = limit, cursor
		for _, name := range names {
			req.Topics = append(req.Topics, kmsg.DescribeTopicPartitionsRequestTopic{Topic: name})
		}
		c.ask(0, req)
	}
	at := func(topic string, partition int32) *kmsg.DescribeTopicPartitionsRequestCursor {
		return &kmsg.DescribeTopicPartitionsRequestCursor{Topic: topic, Partition: partition}
	}
	ask(2000, nil, "described-b", "described-a")
	ask(2000, nil, "described-b", "described-b", "described-none", "bad name")
	c.say("limits")
	for _, limit := range []int32{0, -1, 1, 3, 4, 5} {
		ask(limit, nil, "described-b", "described-a")
	}
	c.say("cursors")
	ask(2000, at("described-a", 2), "described-b", "described-a")
	ask(2000, at("described-a", 3), "described-b", "described-a")
	ask(2000, at("described-a", -1), "described-b", "described-a")
	ask(2000, at("described-b", 0), "described-b", "described-a")
	ask(2000, at("described-aa", 1), "described-b", "described-a")
	ask(2000, at("described-c", 0), "described-b", "described-a")
	ask(1, at("described-a", 2), "described-b", "described-a")
	ask(1, nil, "described-a", "described-none")
}

func scriptOffsetForLeaderEpoch(c *conversation) {
	c.topic("leader-epochs", 1)
	ask := func(v int16, topic string, partition, current, epoch int32) {
		req := kmsg.NewPtrOffsetForLeaderEpochRequest()
		req.ReplicaID = -1
		req.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{
			{Partition: partition, CurrentLeaderEpoch: current, LeaderEpoch: epoch}}}}
		c.ask(v, req)
	}
	c.say("of an empty partition")
	ask(4, "leader-epochs", 0, -1, 0)
	c.fill("leader-epochs", someRecords(2))
	for v := int16(2); v <= 4; v++ {
		for _, epoch := range []int32{-2, -1, 0, 1, 7} {
			c.say("epoch %d", epoch)
			ask(v, "leader-epochs", 0, -1, epoch)
		}
		ask(v, "leader-epochs", 0, 0, 0)
		ask(v, "leader-epochs", 0, 1, 0)
		ask(v, "leader-epochs", 0, -2, 0)
		ask(v, "leader-epochs", 5, -1, 0)
		ask(v, "leader-epochs-none", 0, -1, 0)
	}
}

// scriptNothingThere asks for what a small broker has nothing of.
func scriptNothingThere(c *conversation) {
	c.words = true
	c.topic("nothing-there", 1)
	c.say("reassignments")
	list := kmsg.NewPtrListPartitionReassignmentsRequest()
	c.ask(0, list)
	for _, name := range []string{"nothing-there", "nothing-none"} {
		list.Topics = []kmsg.ListPartitionReassignmentsRequestTopic{{Topic: name, Partitions: []int32{0, 9}}}
		c.ask(0, list)
	}
	c.say("client quotas")
	for v := int16(0); v <= 1; v++ {
		c.ask(v, kmsg.NewPtrDescribeClientQuotasRequest())
		for _, entity := range []string{"user", "client-id", "ip", "other", ""} {
			for kind := int8(0); kind <= 3; kind++ {
				req := kmsg.NewPtrDescribeClientQuotasRequest()
				name := "x"
				if entity == "ip" {
					name = "127.0.0.1"
				}
				req.Components = []kmsg.DescribeClientQuotasRequestComponent{{EntityType: entity, MatchType: kmsg.QuotasMatchType(kind)}}
				if kind == 0 {
					req.Components[0].Match = &name
				}
				c.say("%q %d", entity, kind)
				c.ask(v, req)
			}
		}
	}
	c.say("twice the same")
	twice := kmsg.NewPtrDescribeClientQuotasRequest()
	twice.Components = []kmsg.DescribeClientQuotasRequestComponent{{EntityType: "user", MatchType: 2}, {EntityType: "user", MatchType: 1}}
	c.ask(1, twice)
	twice.Components = []kmsg.DescribeClientQuotasRequestComponent{{EntityType: "user", MatchType: 2}, {EntityType: "ip", MatchType: 1}}
	c.ask(1, twice)
	c.say("passwords")
	users := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
	c.ask(0, users)
	for _, names := range [][]string{{"x"}, {"x", "y", "x"}, {""}} {
		users.Users = nil
		for _, name := range names {
			users.Users = append(users.Users, kmsg.DescribeUserSCRAMCredentialsRequestUser{Name: name})
		}
		c.ask(0, users)
	}
	c.say("access lists")
	for v := int16(1); v <= 3; v++ {
		req := kmsg.NewPtrDescribeACLsRequest()
		req.ResourceType, req.ResourcePatternType, req.Operation, req.PermissionType = 1, 1, 1, 1
		c.ask(v, req)
	}
}

func scriptElectLeaders(c *conversation) {
	c.words = true
	c.topic("electing", 2)
	for v := int16(0); v <= 2; v++ {
		for kind := int8(0); kind <= 2; kind++ {
			if v == 0 && kind > 0 {
				continue
			}
			for _, partitions := range [][]int32{{0, 1}, {0, 7}, {}} {
				c.say("kind %d, partitions %d", kind, partitions)
				req := kmsg.NewPtrElectLeadersRequest()
				req.ElectionType = kind
				req.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: "electing", Partitions: partitions}}
				c.ask(v, req)
			}
		}
	}
	req := kmsg.NewPtrElectLeadersRequest()
	req.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: "electing-none", Partitions: []int32{0}}}
	c.ask(2, req)
}
