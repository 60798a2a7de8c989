package api

import "github.com/twmb/franz-go/pkg/kmsg"

func init() {
	topicScripts = append(topicScripts,
		topicScript{"delete_records", scriptDeleteRecords},
		topicScript{"delete_records_refused", scriptDeleteRecordsRefused},
		topicScript{"delete_records_producer", scriptDeleteRecordsProducer},
	)
}

func deleteRecords(topic string, offsets ...int64) *kmsg.DeleteRecordsRequest {
	req := kmsg.NewPtrDeleteRecordsRequest()
	t := kmsg.DeleteRecordsRequestTopic{Topic: topic}
	for i, offset := range offsets {
		t.Partitions = append(t.Partitions, kmsg.DeleteRecordsRequestTopicPartition{Partition: int32(i), Offset: offset})
	}
	req.Topics, req.TimeoutMillis = append(req.Topics, t), 5000
	return req
}

// edges asks for everything that says where a partition begins and ends.
func (c *conversation) edges(topic string) {
	for _, at := range []int64{-2, -1, -3, -4, 0, 15, 25} {
		c.ask(8, listOffsets(topic, -1, at))
	}
}

func scriptDeleteRecords(c *conversation) {
	c.topic("cut", 1, "retention.ms", "-1")
	c.fill("cut", recordsAt(10, 20, 30), recordsAt(40), recordsAt(5, 6))
	c.edges("cut")
	for v := int16(0); v <= 2; v++ {
		c.say("within the first batch, which stays whole")
		c.ask(v, deleteRecords("cut", int64(v)))
	}
	c.edges("cut")
	for _, offset := range []int64{0, 1, 2, 3} {
		c.ask(11, fetchOf("cut", offset))
	}
	c.say("back, and the same again")
	c.ask(2, deleteRecords("cut", 1))
	c.ask(2, deleteRecords("cut", 2))
	c.say("what has the largest time goes")
	c.ask(2, deleteRecords("cut", 4))
	c.ask(8, listOffsets("cut", -1, -2))
	c.ask(8, listOffsets("cut", -1, 6))
	c.ask(11, fetchOf("cut", 3))
	c.ask(11, fetchOf("cut", 4))
	c.say("a producer is told where the log begins")
	c.ask(9, produce("cut", recordsAt(7)))
	c.say("all of it")
	c.ask(2, deleteRecords("cut", -1))
	c.ask(8, listOffsets("cut", -1, -2))
	c.ask(8, listOffsets("cut", -1, -1))
	c.ask(11, fetchOf("cut", 6))
	c.ask(11, fetchOf("cut", 7))
	c.ask(2, deleteRecords("cut", -1))
	c.ask(9, produce("cut", recordsAt(8)))
	c.ask(11, fetchOf("cut", 7))
}

func scriptDeleteRecordsRefused(c *conversation) {
	c.topic("uncut", 1, "retention.ms", "-1")
	c.topic("uncut-compact", 1, "cleanup.policy", "compact")
	c.topic("uncut-both", 1, "cleanup.policy", "compact,delete")
	for _, topic := range []string{"uncut", "uncut-compact", "uncut-both"} {
		c.fill(topic, someRecords(3))
	}
	for v := int16(0); v <= 2; v++ {
		c.say("too far, and a partition that is not there")
		c.ask(v, deleteRecords("uncut", 4))
		missing := deleteRecords("uncut", 0)
		missing.Topics[0].Partitions[0].Partition = 2
		c.ask(v, missing)
		c.say("negative")
		c.ask(v, deleteRecords("uncut", -2))
		c.say("no such topic")
		c.ask(v, deleteRecords("uncut-nothing", 0))
		c.say("compacted")
		c.ask(v, deleteRecords("uncut-compact", 1))
		c.ask(v, deleteRecords("uncut-compact", 9))
		c.ask(v, deleteRecords("uncut-both", 1))
	}
	c.say("nothing to do")
	c.ask(2, deleteRecords("uncut"))
	none := kmsg.NewPtrDeleteRecordsRequest()
	none.Topics = []kmsg.DeleteRecordsRequestTopic{}
	c.ask(2, none)
}

// scriptDeleteRecordsProducer: what is known of a producer outlives its records.
func scriptDeleteRecordsProducer(c *conversation) {
	c.topic("cut-idem", 1, "retention.ms", "-1")
	id := c.initProducerID(4, kmsg.NewPtrInitProducerIDRequest()).ProducerID
	c.ask(9, produce("cut-idem", recordsAt(10, 20).from(id, 0, 0)))
	c.ask(2, deleteRecords("cut-idem", -1))
	c.say("again, a gap, the next")
	c.ask(9, produce("cut-idem", recordsAt(10, 20).from(id, 0, 0)))
	c.ask(9, produce("cut-idem", recordsAt(30).from(id, 0, 3)))
	c.ask(9, produce("cut-idem", recordsAt(30).from(id, 0, 2)))
	c.ask(8, listOffsets("cut-idem", -1, -2))
	c.ask(8, listOffsets("cut-idem", -1, -1))
}
