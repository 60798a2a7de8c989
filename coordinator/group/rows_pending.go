package group

import "encoding/binary"

// pendingRun are pending offsets of one transaction that follow each other and have
// these in common.
type pendingRun struct {
	position   uint64
	superseded bool
	topics     []OffsetsTopic
}

// runs are the offsets of a transaction.
func (x *pendingTxn) runs() (runs []pendingRun) {
	for _, e := range x.offsets {
		if n := len(runs); n == 0 || runs[n-1].position != e.position || runs[n-1].superseded != e.superseded {
			runs = append(runs, pendingRun{position: e.position, superseded: e.superseded})
		}
		run := &runs[len(runs)-1]
		run.topics = e.appendTo(run.topics)
	}
	return runs
}

// pendingName is the name in the key of a transaction's row.
func pendingName(txn *Transaction) string {
	return string(append(binary.BigEndian.AppendUint64(nil, uint64(txn.Number)), txn.ID...))
}

// appendPendingTxn appends the value of a transaction's row.
func appendPendingTxn(dst []byte, x *pendingTxn) []byte {
	dst = append(dst, rowFormat)
	dst = binary.AppendVarint(dst, x.txn.ProducerID)
	dst = binary.AppendVarint(dst, int64(x.txn.Epoch))
	runs := x.runs()
	dst = binary.AppendUvarint(dst, uint64(len(runs)))
	for i := range runs {
		dst = binary.AppendUvarint(dst, runs[i].position)
		dst = appendBool(dst, runs[i].superseded)
		dst = appendOffsets(dst, runs[i].topics, 0)
	}
	return dst
}

// pendingTxn reads a transaction's row, the value behind the format byte.
func (d *decoder) pendingTxn(name []byte) (txn Transaction, runs []pendingRun) {
	if len(name) < 8 {
		d.fail(errTruncated)
		return txn, nil
	}
	txn = Transaction{
		ID: string(name[8:]), Number: int64(binary.BigEndian.Uint64(name)),
		ProducerID: d.varint(), Epoch: d.varint16(),
	}
	runs = make([]pendingRun, d.count(3))
	offsets := 0
	for i := range runs {
		runs[i] = pendingRun{position: d.uvarint(), superseded: d.bool(), topics: d.offsets(0)}
		for _, t := range runs[i].topics {
			offsets += len(t.Partitions)
		}
		if i > 0 && runs[i].position < runs[i-1].position {
			d.fail(errOrder)
		}
	}
	if d.err == nil && offsets == 0 {
		d.fail(errCount)
	}
	return txn, runs
}

// restore puts a transaction of a checkpoint in place.
func (p *pendings) restore(txn *Transaction, runs []pendingRun) {
	was := p.dirty
	for i := range runs {
		p.stage(txn, runs[i].position, runs[i].superseded, runs[i].topics)
	}
	x := p.find(txn)
	x.dirty, x.stored, p.dirty = false, true, was
}
