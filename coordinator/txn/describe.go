package txn

import (
	"slices"

	"github.com/rollcall-mq/rollcall/store/topics"
)

// Description is what an administrator sees of a transactional id.
type Description struct {
	ID string
	topics.Transaction
	// Partitions and Groups take part in what is not complete yet.
	Partitions []topics.TransactionPartition
	Groups     []string
}

// Describe returns one transactional id, and false if it is not known.
func (c *Coordinator) Describe(id string) (Description, bool) {
	t := c.find(id)
	if t == nil {
		return Description{}, false
	}
	defer t.mu.Unlock()
	return t.describe(), true
}

// List returns all transactional ids, in their order.
func (c *Coordinator) List() []Description {
	var all []Description
	for _, t := range c.all() {
		t.mu.Lock()
		if t.row.ProducerID >= 0 {
			all = append(all, t.describe())
		}
		t.mu.Unlock()
	}
	return all
}

// describe is guarded by t.mu.
func (t *transaction) describe() Description {
	d := Description{ID: t.id, Transaction: t.row}
	for p := range t.partitions {
		d.Partitions = append(d.Partitions, p)
	}
	for g := range t.groups {
		d.Groups = append(d.Groups, g)
	}
	slices.SortFunc(d.Partitions, comparePartitions)
	slices.Sort(d.Groups)
	return d
}
