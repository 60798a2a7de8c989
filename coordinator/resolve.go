package coordinator

import (
	"context"
	"sync/atomic"

	"github.com/rollcall-mq/rollcall/coordinator/group"
)

// Resolve ends a transaction in the groups that take part in it, and calls done once,
// from any goroutine. left are the groups in which that is not known to be durable and
// code is why, of one of them; they are to be sent it again, as often as it takes, before
// the transaction is complete. done must not block.
func Resolve(ctx context.Context, groups Groups, ids []string, txn group.Transaction, commit bool, done func(left []string, code group.Code)) {
	if len(ids) == 0 {
		done(nil, group.None)
		return
	}
	r := &resolving{ids: ids, codes: make([]group.Code, len(ids)), done: done}
	r.waiting.Store(int64(len(ids)))
	for i, id := range ids {
		groups.Submit(ctx, id, &group.Resolve{Txn: txn, Commit: commit}, resolveSink{r, i})
	}
}

// resolving collects the answers of the groups.
type resolving struct {
	ids []string
	// codes has the answer of each group; waiting counts those that are not there.
	codes   []group.Code
	waiting atomic.Int64
	done    func(left []string, code group.Code)
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
	code := group.None
	for i, id := range r.ids {
		if r.codes[i] != group.None {
			left, code = append(left, id), r.codes[i]
		}
	}
	r.done(left, code)
}
