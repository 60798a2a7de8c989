package group

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// runOffsets carries out one command that is about offsets, and returns false if
// it is none.
func (c *command) runOffsets() bool {
	s := c.s
	switch c.name {
	case "commit":
		c.commit()
	case "txn-commit":
		c.txnCommit()
	case "resolve":
		c.s.step(&Resolve{Txn: c.txn(), Commit: c.words()[1] == "commit"}, nil, "resolve")
	case "fetch":
		c.fetch()
	case "delete-offsets":
		ev := &DeleteOffsets{Client: Client{ID: "admin"}}
		for _, t := range c.partitions() {
			ev.Topics = append(ev.Topics, DeleteOffsetsTopic{Name: t.Name, Partitions: t.Partitions})
		}
		s.step(ev, nil, "delete-offsets")
	case "reset":
		words := c.words()
		c.s.step(&Reset{
			Client: Client{ID: "admin"}, Topics: c.commitTopics(),
			Replace: slices.Contains(words, "replace"), Fence: slices.Contains(words, "fence"),
		}, nil, "reset")
	case "delete":
		s.step(&DeleteGroup{Client: Client{ID: "admin"}}, nil, "delete")
	case "expire":
		s.step(&ExpireOffsets{}, nil, "")
	case "topic-deleted":
		s.step(&TopicDeleted{Name: c.words()[0], ID: topicID(c.number("id", 0))}, nil, "")
	case "check-topics":
		exist := c.ids("exist")
		s.step(&CheckTopics{Lookup: func(name string) (TopicID, bool) {
			id, ok := exist[name]
			return id, ok
		}}, nil, "")
	case "check-transactions":
		open, committed := c.txnList("open"), c.txnList("committed")
		s.step(&CheckTransactions{Lookup: func(_ string, txn Transaction) Outcome {
			switch {
			case slices.Contains(open, formatTxn(&txn)):
				return TransactionOpen
			case slices.Contains(committed, formatTxn(&txn)):
				return TransactionCommitted
			}
			return TransactionAborted
		}}, nil, "")
	case "checkpoint":
		for _, r := range s.world.checkpoint(s.t) {
			s.printRow(r)
		}
		s.printState()
	default:
		return false
	}
	return true
}

func (s *script) printRow(r Row) {
	d := decoder{buf: r.Key}
	_, kind, err := d.rowKey()
	if err != nil {
		s.t.Fatal(err)
	}
	what := map[byte]string{rowMembership: "membership", rowOffsets: "offsets " + string(d.buf)}[kind]
	if kind == rowPending {
		txn, _ := (&decoder{buf: r.Value}).pendingTxn(d.buf)
		what = "pending " + formatTxn(&txn)
	}
	if r.Value == nil {
		s.printf("row %s removed\n", what)
		return
	}
	s.printf("row %s\n", what)
}

func (c *command) commit() {
	var x *client
	ev := &Commit{Client: Client{ID: "committer", Host: "/10.0.0.3"}, Generation: -1, Retention: -1}
	if words := c.words(); words[0] != "-" {
		x = c.s.client(words[0])
		ev.Client.ID = x.name
		ev.MemberID, ev.InstanceID, ev.Generation = c.who(x)
	} else {
		ev.MemberID, ev.InstanceID, ev.Generation = c.who(&client{generation: -1})
	}
	ev.GroupIDNotFound = c.number("v", 8) >= 9
	ev.Retention = int64(c.number("retention", -1))
	ev.Topics = c.commitTopics()
	c.s.step(ev, x, "commit")
}

// txnCommit is a TxnOffsetCommit of the transaction named behind the member.
func (c *command) txnCommit() {
	var x *client
	ev := &TxnCommit{Client: Client{ID: "copier", Host: "/10.0.0.4"}}
	who := c.words()[0]
	if who != "-" {
		x = c.s.client(who)
		ev.MemberID, ev.InstanceID, ev.Generation = c.who(x)
	} else {
		ev.MemberID, ev.InstanceID, ev.Generation = c.who(&client{generation: -1})
	}
	ev.GroupIDNotFound = c.number("v", 5) >= 6
	ev.Txn = c.txn()
	ev.Topics = c.commitTopics()
	c.s.step(ev, x, "txn-commit")
}

// txn is the transaction of a command: an id and a number, as in a/1.
func (c *command) txn() Transaction {
	for _, word := range c.words() {
		if id, number, ok := strings.Cut(word, "/"); ok {
			n, err := strconv.Atoi(number)
			if err != nil {
				c.fail("%v", err)
			}
			return Transaction{ID: id, Number: int64(n), ProducerID: 1000 + int64(id[0]), Epoch: int16(n)}
		}
	}
	c.fail("no transaction")
	return Transaction{}
}

// txnList is a list of transactions.
func (c *command) txnList(key string) []string {
	vals, _ := c.values(key)
	return vals
}

func formatTxn(txn *Transaction) string { return fmt.Sprintf("%s/%d", txn.ID, txn.Number) }

// commitTopics are the offsets of a commit.
func (c *command) commitTopics() (topics []CommitTopic) {
	meta, _ := c.value("meta")
	ids := c.ids("ids")
	epoch := int32(c.number("epoch", -1))
	for _, a := range c.args {
		topic, partition, ok := cutPartition(a.Key)
		if !ok || len(a.Vals) == 0 {
			continue
		}
		c.values(a.Key) // marks it as known
		offset, err := strconv.ParseInt(a.Vals[0], 10, 64)
		if err != nil {
			c.fail("%v", err)
		}
		p := CommitPartition{Partition: partition, Offset: offset, LeaderEpoch: epoch, Metadata: meta}
		if len(a.Vals) > 1 {
			p.Metadata = a.Vals[1]
		}
		if n := len(topics); n == 0 || topics[n-1].Name != topic {
			topics = append(topics, CommitTopic{Name: topic, ID: ids[topic]})
		}
		last := &topics[len(topics)-1]
		last.Partitions = append(last.Partitions, p)
	}
	return topics
}

func (c *command) fetch() {
	ev := &Fetch{Topics: c.partitions()}
	words := c.words()
	ev.All = len(ev.Topics) == 0 && !slices.Contains(words, "none")
	ev.RequireStable = slices.Contains(words, "stable")
	c.s.step(ev, nil, "fetch")
}

// partitions are the arguments of the form t-0, by topic as long as neighbours are
// of one.
func (c *command) partitions() []FetchTopic {
	ids := c.ids("ids")
	var topics []FetchTopic
	for _, word := range c.words() {
		topic, partition, ok := cutPartition(word)
		if !ok {
			continue
		}
		if n := len(topics); n == 0 || topics[n-1].Name != topic {
			topics = append(topics, FetchTopic{Name: topic, ID: ids[topic]})
		}
		last := &topics[len(topics)-1]
		last.Partitions = append(last.Partitions, partition)
	}
	return topics
}

// ids reads a list of topics with their ids.
func (c *command) ids(key string) map[string]TopicID {
	ids := map[string]TopicID{}
	vals, _ := c.values(key)
	for _, v := range vals {
		name, id, _ := strings.Cut(v, ":")
		n, err := strconv.Atoi(id)
		if err != nil {
			c.fail("%v", err)
		}
		ids[name] = topicID(n)
	}
	return ids
}

func topicID(n int) TopicID { return TopicID{byte(n)} }

// cutPartition splits t-0.
func cutPartition(word string) (topic string, partition int32, ok bool) {
	i := strings.LastIndexByte(word, '-')
	if i <= 0 {
		return "", 0, false
	}
	n, err := strconv.Atoi(word[i+1:])
	return word[:i], int32(n), err == nil
}

func formatFetch(b *strings.Builder, r *FetchReply) {
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			fmt.Fprintf(b, " %s-%d", t.Name, p.Partition)
			formatOffset(b, OffsetsPartition{Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Expire: -1, Metadata: p.Metadata}, 0)
			if p.Code != None {
				fmt.Fprintf(b, "(%s)", codeName(p.Code))
			}
		}
	}
}

// formatOffset writes an offset, and what else there is: @ the leader epoch, the
// metadata, ! the time of its own until it expires.
func formatOffset(b *strings.Builder, p OffsetsPartition, wall Time) {
	fmt.Fprintf(b, "=%d", p.Offset)
	if p.LeaderEpoch != -1 {
		fmt.Fprintf(b, "@%d", p.LeaderEpoch)
	}
	if p.Metadata != "" {
		fmt.Fprintf(b, "%q", p.Metadata)
	}
	if p.Expire != -1 {
		fmt.Fprintf(b, "!%+d", p.Expire-wall)
	}
}
