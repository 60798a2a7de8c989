package txn

import (
	"context"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Support is what a request's version knows of transactions.
type Support uint8

// What Produce and TxnOffsetCommit know, by their versions.
const (
	// Explicit: what takes part was said before; INVALID_TXN_STATE if it was not.
	Explicit Support = iota
	// Abortable: the same, but TRANSACTION_ABORTABLE.
	Abortable
	// Implicit: what is written to takes part (KIP-890).
	Implicit
)

// notIn is the code for what does not take part.
func (s Support) notIn() int16 {
	if s == Abortable {
		return kerr.TransactionAbortable.Code
	}
	return kerr.InvalidTxnState.Code
}

// checkProducer tells why the producer may not add anything now, in the order of
// Kafka's TransactionCoordinator.handleAddPartitionsToTransaction. A transaction that
// is nil is of an id that is not known. Guarded by t.mu.
func (t *transaction) checkProducer(id string, p Producer) int16 {
	switch {
	case id == "":
		return kerr.InvalidRequest.Code
	case t == nil || p.ID != t.row.ProducerID:
		return kerr.InvalidProducerIDMapping.Code
	case p.Epoch != t.row.Epoch:
		return kerr.ProducerFenced.Code
	case t.preparing():
		return kerr.ConcurrentTransactions.Code
	}
	return 0
}

// begin makes the transaction open, if it is not. Guarded by t.mu.
func (c *Coordinator) begin(t *transaction, v2 bool) {
	now := c.NowMs()
	if t.row.State != topics.TransactionOngoing {
		t.row.State = topics.TransactionOngoing
		t.row.Number++
		t.row.Committed = false
		t.row.StartMs = now
	}
	t.row.V2, t.row.UpdatedMs = v2, now
}

// has tells whether a partition takes part. Guarded by t.mu.
func (t *transaction) has(p topics.TransactionPartition) bool {
	_, in := t.partitions[p]
	return in && t.row.State == topics.TransactionOngoing
}

// missing returns which of the partitions do not take part, each once. Guarded by
// t.mu.
func (t *transaction) missing(parts []topics.TransactionPartition) (missing []topics.TransactionPartition) {
	seen := map[topics.TransactionPartition]bool{}
	for _, p := range parts {
		if !t.has(p) && !seen[p] {
			seen[p] = true
			missing = append(missing, p)
		}
	}
	return missing
}

// add lets partitions take part. Guarded by t.mu.
func (c *Coordinator) add(t *transaction, parts []topics.TransactionPartition, v2 bool, done func(error)) {
	c.begin(t, v2)
	ch := t.change()
	ch.Added = parts
	for _, p := range parts {
		t.addPartition(p)
	}
	c.log.ChangeTransaction(ch, done)
}

// AddPartitions lets partitions take part in the transaction, which begins if it has
// not, and calls done when that is durable. done must not block.
func (c *Coordinator) AddPartitions(id string, p Producer, parts []topics.TransactionPartition, done func(code int16)) {
	t := c.find(id)
	if t != nil {
		defer t.mu.Unlock()
	}
	if code := t.checkProducer(id, p); code != 0 {
		done(code)
		return
	}
	durable := func(err error) { done(codeOf(err)) }
	if missing := t.missing(parts); len(missing) > 0 {
		c.add(t, missing, false, durable)
		return
	}
	c.log.AwaitDurable(durable)
}

// Verify tells whether a partition takes part in the open transaction of a producer
// (Kafka's TransactionCoordinator.handleVerifyPartitionsInTransaction).
func (c *Coordinator) Verify(id string, p Producer, part topics.TransactionPartition) (code int16) {
	t := c.find(id)
	if t != nil {
		defer t.mu.Unlock()
	}
	if code := t.checkProducer(id, p); code != 0 {
		return code
	}
	if !t.has(part) {
		return kerr.TransactionAbortable.Code
	}
	return 0
}

// Append appends the batches of a transactional producer. Those that may not be
// written, or whose partition does not take part, are refused; the others go to the
// log, for which see [topics.Log.Append].
func (c *Coordinator) Append(id string, s Support, appends []topics.Append, done func()) (refused int) {
	t := c.find(id)
	if t != nil {
		defer t.mu.Unlock()
	}
	var missing []topics.TransactionPartition
	for i := range appends {
		a := &appends[i]
		producer, epoch, transactional := a.Producer()
		if !transactional {
			continue
		}
		part := topics.TransactionPartition{Topic: a.Partition.Topic.ID, Partition: a.Partition.Index}
		switch code := t.checkProducer(id, Producer{producer, epoch}); {
		case code != 0:
			a.Refuse(topics.Code(producing(code, s)))
		case t.has(part):
		case s != Implicit:
			a.Refuse(topics.Code(s.notIn()))
		default:
			missing = append(missing, part)
		}
	}
	if len(missing) > 0 {
		c.add(t, t.missing(missing), true, func(error) {})
	}
	return c.log.Append(appends, done)
}

// producing turns the coordinator's refusal into what a producer or a member gets, as
// Kafka's AddPartitionsToTxnManager and ReplicaManager do.
func producing(code int16, s Support) int16 {
	switch {
	case code == kerr.ProducerFenced.Code:
		return kerr.InvalidProducerEpoch.Code
	case code == kerr.ConcurrentTransactions.Code && s != Implicit:
		return kerr.NotEnoughReplicas.Code
	}
	return code
}

// AddGroup lets a group take part in the transaction, which begins if it has not, and
// calls done when that is durable. done must not block.
func (c *Coordinator) AddGroup(id string, p Producer, groupID string, done func(code int16)) {
	t := c.find(id)
	if t != nil {
		defer t.mu.Unlock()
	}
	if code := t.checkProducer(id, p); code != 0 {
		done(code)
		return
	}
	c.joinGroup(t, groupID, false, func(_ context.Context, code int16) { done(code) })
}

// joinGroup lets a group take part, and calls f from Run, under t.mu, when it does
// durably, or the transaction has ended meanwhile. Guarded by t.mu.
func (c *Coordinator) joinGroup(t *transaction, groupID string, v2 bool, f func(context.Context, int16)) {
	_, in := t.groups[groupID]
	if !in && len(t.groups) >= GroupsMax {
		f(context.Background(), kerr.InvalidTxnState.Code)
		return
	}
	c.begin(t, v2)
	number := t.row.Number
	joined := func(err error) {
		c.work.put(func(ctx context.Context) {
			t.mu.Lock()
			defer t.mu.Unlock()
			code := codeOf(err)
			switch {
			case code != 0:
			case t.row.Number != number || t.row.State != topics.TransactionOngoing:
				code = kerr.InvalidTxnState.Code
			default:
				t.groups[groupID] = true
			}
			f(ctx, code)
		})
	}
	if in {
		c.log.AwaitDurable(joined)
		return
	}
	t.addGroup(groupID, false)
	ch := t.change()
	ch.AddedGroups = []string{groupID}
	c.log.ChangeTransaction(ch, joined)
}

// CommitOffsets stages the offsets of a TxnOffsetCommit in a group. The reply goes to
// sink; what the transaction refuses is answered there, too, without a Body. ev.Txn is
// filled in.
func (c *Coordinator) CommitOffsets(ctx context.Context, id string, p Producer, groupID string, s Support, ev *group.TxnCommit, sink shard.Sink) {
	t := c.find(id)
	if t != nil {
		defer t.mu.Unlock()
	}
	if code := t.checkProducer(id, p); code != 0 {
		if code == kerr.ProducerFenced.Code {
			code = kerr.InvalidProducerEpoch.Code
		}
		sink.Reply(group.Reply{Code: group.Code(code)})
		return
	}
	durable, in := t.groups[groupID]
	switch {
	case !in && s != Implicit:
		sink.Reply(group.Reply{Code: group.Code(s.notIn())})
	case durable:
		c.stage(ctx, t, groupID, ev, sink)
	default:
		c.joinGroup(t, groupID, s == Implicit, func(ctx context.Context, code int16) {
			switch {
			case code != 0:
				sink.Reply(group.Reply{Code: group.Code(code)})
			case p != t.producer():
				sink.Reply(group.Reply{Code: group.Code(kerr.InvalidProducerEpoch.Code)})
			default:
				c.stage(ctx, t, groupID, ev, sink)
			}
		})
	}
}

// stage hands the offsets to the group. Guarded by t.mu.
func (c *Coordinator) stage(ctx context.Context, t *transaction, groupID string, ev *group.TxnCommit, sink shard.Sink) {
	ev.Txn = t.name()
	c.groups.Submit(ctx, groupID, ev, sink)
}

// name is what groups know the transaction by. Guarded by t.mu.
func (t *transaction) name() group.Transaction {
	return group.Transaction{ID: t.id, Number: t.row.Number, ProducerID: t.row.ProducerID, Epoch: t.row.Epoch}
}
