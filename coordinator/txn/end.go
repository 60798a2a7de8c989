package txn

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
)

// End commits or aborts the transaction of a producer, and calls done with the
// producer that it is from then on, when the transaction is complete. If a group
// cannot be reached, done is called before: the end is decided. v2 is for
// transactions of version 2, whose end gives a new epoch. done must not block.
func (c *Coordinator) End(id string, p Producer, commit, v2 bool, done func(Producer, int16)) {
	t := c.find(id)
	if t == nil {
		done(NoProducer, kerr.InvalidProducerIDMapping.Code)
		return
	}
	defer t.mu.Unlock()
	check := t.checkEnd
	if v2 {
		check = t.checkEndV2
	}
	repeated, code := check(p, commit)
	if code != 0 {
		done(NoProducer, code)
		return
	}
	if repeated {
		now := t.producer()
		c.log.AwaitDurable(func(err error) { done(now, codeOf(err)) })
		return
	}
	markers := c.bumped(t, v2)
	next := t.producer()
	c.decide(t, commit, markers, func(code int16) { done(next, code) })
}

// endedAs tells whether the transaction has ended, and the same way.
func (t *transaction) endedAs(commit bool) bool {
	if commit {
		return t.row.State == topics.TransactionCompleteCommit
	}
	return t.row.State == topics.TransactionCompleteAbort
}

// endingAs tells whether the transaction is about to end that way.
func (t *transaction) endingAs(commit bool) bool {
	if commit {
		return t.row.State == topics.TransactionPrepareCommit
	}
	return t.row.State == topics.TransactionPrepareAbort
}

// checkEnd is for EndTxn up to version 4: why the transaction may not be ended, or
// whether it was before (Kafka's TransactionCoordinator.endTransactionWithTV1).
func (t *transaction) checkEnd(p Producer, commit bool) (repeated bool, code int16) {
	switch {
	case p.ID != t.row.ProducerID:
		return false, kerr.InvalidProducerIDMapping.Code
	case p.Epoch != t.row.Epoch:
		return false, kerr.ProducerFenced.Code
	case t.row.State == topics.TransactionOngoing:
		return false, 0
	case t.endedAs(commit):
		return true, 0
	case t.endingAs(commit):
		return false, kerr.ConcurrentTransactions.Code
	}
	return false, kerr.InvalidTxnState.Code
}

// checkEndV2 is checkEnd for version 5 (Kafka's TransactionCoordinator.endTransaction).
// The epoch tells a repeated request from the next: its end has given a new one. An
// abort is legal at any time.
func (t *transaction) checkEndV2(p Producer, commit bool) (repeated bool, code int16) {
	row := &t.row
	onOverflow := row.V2 && p.ID == row.LastProducerID && p.Epoch == math.MaxInt16-1 && row.Epoch == 0 && row.LastEpoch == p.Epoch
	onBump := row.V2 && p.ID == row.ProducerID && row.Epoch == p.Epoch+1
	current := p.Epoch == row.Epoch
	complete := row.State == topics.TransactionCompleteCommit || row.State == topics.TransactionCompleteAbort
	repeated = (onBump || onOverflow) && (complete || t.preparing())
	switch {
	case p.ID != row.ProducerID && !onOverflow:
		return false, kerr.InvalidProducerIDMapping.Code
	case !repeated && !(current && !(row.V2 && t.preparing())):
		return false, kerr.ProducerFenced.Code
	case row.State == topics.TransactionOngoing, !repeated && !commit && !t.preparing():
		return false, 0
	case t.endingAs(commit):
		return false, kerr.ConcurrentTransactions.Code
	case repeated && t.endedAs(commit):
		return true, 0
	}
	return false, kerr.InvalidTxnState.Code
}

// bumped gives the producer of a transaction of version 2 its next epoch, or a new
// producer id if there is none, and returns whom the markers are of: the epoch that
// follows the transaction's. Guarded by t.mu.
func (c *Coordinator) bumped(t *transaction, v2 bool) (markers Producer) {
	row := &t.row
	row.V2 = v2
	if !v2 {
		return t.producer()
	}
	markers = Producer{row.ProducerID, row.Epoch + 1}
	last := *row
	row.LastEpoch, row.Epoch = last.Epoch, last.Epoch+1
	if exhausted(last.Epoch) {
		row.LastProducerID = last.ProducerID
		row.ProducerID, row.Epoch = c.log.TakeProducerID(), 0
	}
	return markers
}

// fence aborts the open transaction of a producer that is not to write any more: the
// markers have the next epoch, which nobody gets. Guarded by t.mu.
func (c *Coordinator) fence(t *transaction) {
	t.row.LastEpoch = -1
	t.row.Epoch++
	c.decide(t, false, t.producer(), nil)
}

// decide ends the transaction: in its partitions with the same write as the decision,
// in its groups after it. whenDone, if set, is called once. Guarded by t.mu.
func (c *Coordinator) decide(t *transaction, commit bool, markers Producer, whenDone func(code int16)) {
	row := &t.row
	row.UpdatedMs = c.NowMs()
	if row.State == topics.TransactionOngoing {
		row.Committed = commit
	} else { // the abort of nothing
		row.StartMs = row.UpdatedMs
	}
	row.State = completeState(commit)
	if len(t.groups) > 0 {
		row.State = topics.TransactionPrepareAbort
		if commit {
			row.State = topics.TransactionPrepareCommit
		}
	}
	ch := t.change()
	ch.Ended = slices.SortedFunc(maps.Keys(t.partitions), comparePartitions)
	for _, p := range ch.Ended {
		if topic := c.log.TopicByID(p.Topic); topic != nil && topic.Partition(p.Partition) != nil {
			ch.Markers = append(ch.Markers, topics.Marker{
				Partition: topic.Partition(p.Partition), ProducerID: markers.ID, Epoch: markers.Epoch, Commit: commit,
			})
		}
	}
	t.partitions = nil
	ids := t.groupIDs()
	if !t.preparing() {
		c.log.ChangeTransaction(ch, func(err error) {
			if whenDone != nil {
				whenDone(codeOf(err))
			}
		})
		return
	}
	if whenDone != nil {
		t.waiting = append(t.waiting, whenDone)
	}
	c.log.ChangeTransaction(ch, func(err error) {
		c.work.put(func(ctx context.Context) {
			if err != nil {
				t.mu.Lock()
				defer t.mu.Unlock()
				t.answer(codeOf(err))
				return
			}
			c.resolve(ctx, t, ids)
		})
	})
}

func completeState(commit bool) topics.TransactionState {
	if commit {
		return topics.TransactionCompleteCommit
	}
	return topics.TransactionCompleteAbort
}

func comparePartitions(a, b topics.TransactionPartition) int {
	return cmp.Or(bytes.Compare(a.Topic[:], b.Topic[:]), cmp.Compare(a.Partition, b.Partition))
}

// answer answers those that wait for the end. Guarded by t.mu.
func (t *transaction) answer(code int16) {
	for _, f := range t.waiting {
		f(code)
	}
	t.waiting = nil
}

// resolve tells groups how a prepared transaction has ended. It runs in Run.
func (c *Coordinator) resolve(ctx context.Context, t *transaction, ids []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	commit := t.row.State == topics.TransactionPrepareCommit
	r := &resolving{ids: ids, codes: make([]group.Code, len(ids)), done: func(left []string) {
		c.work.put(func(context.Context) { c.resolved(t, commit, left) })
	}}
	r.waiting.Store(int64(len(ids)))
	for i, id := range ids {
		c.groups.Submit(ctx, id, &group.Resolve{Txn: t.name(), Commit: commit}, resolveSink{r, i})
	}
}

// resolving collects the answers of the groups.
type resolving struct {
	ids   []string
	codes []group.Code
	// waiting counts the answers that are not there.
	waiting atomic.Int64
	// done gets the groups in which the end is not known to be durable.
	done func(left []string)
}

// resolveSink takes the answer of one group.
type resolveSink struct {
	r *resolving
	i int
}

// Reply implements [shard.Sink].
func (s resolveSink) Reply(reply group.Reply) {
	r := s.r
	r.codes[s.i] = reply.Code
	if r.waiting.Add(-1) > 0 {
		return
	}
	var left []string
	for i, id := range r.ids {
		if r.codes[i] != group.None {
			left = append(left, id)
		}
	}
	r.done(left)
}

// resolved completes the transaction when all groups have resolved it durably; those
// that are left are told again. It runs in Run.
func (c *Coordinator) resolved(t *transaction, commit bool, left []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.answer(0) // it is decided, whether all know it or not
	if len(left) > 0 {
		time.AfterFunc(resolveRetry, func() {
			c.work.put(func(ctx context.Context) { c.resolve(ctx, t, left) })
		})
		return
	}
	t.row.State, t.row.UpdatedMs = completeState(commit), c.NowMs()
	ended := t.groupIDs()
	t.groups = nil
	ch := t.change()
	ch.EndedGroups = ended
	c.log.ChangeTransaction(ch, func(error) {})
}

// AbortOverdue aborts the transactions that are open for longer than their timeout.
func (c *Coordinator) AbortOverdue() {
	now := c.NowMs()
	for _, t := range c.all() {
		t.mu.Lock()
		if t.row.State == topics.TransactionOngoing && t.row.StartMs+int64(t.row.TimeoutMs) < now {
			c.fence(t)
		}
		t.mu.Unlock()
	}
}

// ExpireIDs forgets the ids that have been without a transaction for too long.
func (c *Coordinator) ExpireIDs() {
	before := c.NowMs() - c.cfg.IDExpiration.Milliseconds()
	for _, t := range c.all() {
		t.mu.Lock()
		if t.row.ProducerID >= 0 && t.row.State != topics.TransactionOngoing && !t.preparing() && t.row.UpdatedMs <= before {
			t.forgotten = true
			c.log.ChangeTransaction(&topics.TransactionChange{ID: t.id}, func(error) {})
			c.mu.Lock()
			delete(c.byID, t.id)
			c.mu.Unlock()
		}
		t.mu.Unlock()
	}
}
