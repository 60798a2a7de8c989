package txn

import (
	"slices"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/store/topics"
)

// known is the newest transaction of an id as groups see it.
type known struct {
	number    int64
	open      bool // its end will come, decided or not
	committed bool
	groups    []string
}

// publish makes known what the transaction has become. Guarded by t.mu.
func (t *transaction) publish() {
	t.known.Store(&known{
		number:    t.row.Number,
		open:      t.row.State == topics.TransactionOngoing || t.preparing(),
		committed: t.row.Committed,
		groups:    t.groupIDs(),
	})
}

// Outcome tells what became of a transaction in which a group has offsets pending. It
// waits for no transaction's lock, whose holder may wait for the shard that asks. Of
// transactions before the newest nothing is kept: they were complete, so that only a
// store which does not sync can have lost what the group was told.
func (c *Coordinator) Outcome(groupID string, x group.Transaction) group.Outcome {
	c.mu.Lock()
	t := c.byID[x.ID]
	c.mu.Unlock()
	if t == nil {
		return group.TransactionAborted
	}
	switch k := t.known.Load(); {
	case k == nil || k.number != x.Number:
		return group.TransactionAborted
	case k.open && slices.Contains(k.groups, groupID):
		return group.TransactionOpen
	case !k.open && k.committed:
		return group.TransactionCommitted
	}
	return group.TransactionAborted
}
