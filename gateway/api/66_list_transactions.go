package api

import (
	"regexp"
	"slices"

	"github.com/rollcall-mq/rollcall/coordinator/txn"
	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ListTransactions, key 66, versions 0 to 2 (KIP-664): version 1 has a least duration
// (KIP-994), 2 a pattern of transactional ids (KIP-1152). Nothing is left out.
//
// Differs from Kafka: [transactions-sorted]; [id-pattern].

func (h *TxnHandlers) listTransactions(c *Call) {
	req := c.Msg.(*kmsg.ListTransactionsRequest)
	resp := req.ResponseKind().(*kmsg.ListTransactionsResponse)
	f, ok := h.newTransactionFilter(c, req)
	if !ok {
		resp.ErrorCode = kerr.InvalidRegularExpression.Code
		c.Respond(resp)
		return
	}
	for _, name := range req.StateFilters {
		if state, ok := topics.TransactionStateOf(name); ok {
			f.states = append(f.states, state)
		} else if !slices.Contains([]string{"Dead", "PrepareEpochFence"}, name) { // known, but nothing is ever in it
			resp.UnknownStateFilters = append(resp.UnknownStateFilters, name)
		}
	}
	for _, d := range h.Txns.List() {
		if f.takes(&d) && h.allowed(c, OpDescribe, ResourceTransactionalID, d.ID) {
			resp.TransactionStates = append(resp.TransactionStates, kmsg.ListTransactionsResponseTransactionState{
				TransactionalID: d.ID, ProducerID: d.ProducerID, TransactionState: d.State.String(),
			})
		}
	}
	c.Respond(resp)
}

// transactionFilter is what a client wants to see.
type transactionFilter struct {
	anyState bool
	states   []topics.TransactionState
	ids      []int64
	// startBefore is the latest start, if hasDuration.
	hasDuration bool
	startBefore int64
	pattern     *regexp.Regexp
}

// newTransactionFilter returns false if the pattern is none.
func (h *TxnHandlers) newTransactionFilter(c *Call, req *kmsg.ListTransactionsRequest) (f transactionFilter, ok bool) {
	f.anyState, f.ids = len(req.StateFilters) == 0, req.ProducerIDFilters
	if f.hasDuration = c.Version >= 1 && req.DurationFilterMillis >= 0; f.hasDuration {
		f.startBefore = h.Txns.NowMs() - req.DurationFilterMillis
	}
	if req.TransactionalIDPattern == nil || *req.TransactionalIDPattern == "" {
		return f, true
	}
	pattern, err := regexp.Compile("^(?:" + *req.TransactionalIDPattern + ")$")
	f.pattern = pattern
	return f, err == nil
}

func (f *transactionFilter) takes(d *txn.Description) bool {
	return (f.anyState || slices.Contains(f.states, d.State)) &&
		(len(f.ids) == 0 || slices.Contains(f.ids, d.ProducerID)) &&
		(!f.hasDuration || d.StartMs < f.startBefore) &&
		(f.pattern == nil || f.pattern.MatchString(d.ID))
}
