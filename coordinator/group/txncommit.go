package group

// stepTxnCommit is TxnOffsetCommit: the partitions that are not refused one by one
// become pending in one record. That the transaction is open and has the group in
// it is for its coordinator to see.
func (m *Machine) stepTxnCommit(ev *TxnCommit) {
	from := m.state()
	code, rule := m.checkTxnCommit(ev)
	if code != None {
		m.note(rule, ev.MemberID, "transactional offset commit refused")
		m.reply(ev.Req, code, nil)
		return
	}
	if m.refuseDiskLow(&ev.Head, ev.MemberID) {
		return
	}
	total, refused := m.countCommit(ev.Topics)
	if total > refused {
		m.env.by = committer(ev.Client, ev.MemberID, ev.Generation)
		m.record(Record{Kind: RecordPending, Txn: ev.Txn, Offsets: m.commitOffsets(ev.Topics, total-refused, -1)})
	}
	m.keep() // O14 begins the group also if nothing is staged
	m.noteFrom(rule, from, ev.MemberID, "transactional offset commit")
	m.replyCommit(ev.Req, ev.MemberID, ev.Topics, total, refused)
}

// checkTxnCommit decides whether the request may commit at all. As in Kafka's
// ClassicGroup.validateOffsetCommit the state does not matter, and a request that
// names no member is not fenced (KIP-447).
func (m *Machine) checkTxnCommit(ev *TxnCommit) (Code, Rule) {
	state := m.state()
	switch {
	case state == Dead && ev.Generation < 0:
		return None, O14
	case state == Dead && ev.GroupIDNotFound:
		return GroupIDNotFound, O15
	case state == Dead:
		return IllegalGeneration, O15
	case ev.Generation < 0 && state == Empty:
		return None, O16
	case ev.Generation < 0 && ev.MemberID == "" && ev.InstanceID == nil:
		return None, O18
	}
	if code := m.checkMember(ev.MemberID, ev.InstanceID, ev.Generation); code != None {
		return code, O17
	}
	return None, O19
}

// stepResolve ends a transaction here, as its coordinator has decided. It may come
// any number of times.
func (m *Machine) stepResolve(ev *Resolve) {
	x := m.pend.find(&ev.Txn)
	if x == nil {
		m.note(O25, "", "nothing is pending of the transaction")
		m.reply(ev.Req, None, nil)
		return
	}
	rule, reason, superseded := O24, "pending offsets dropped", false
	if ev.Commit {
		rule, reason = O22, "pending offsets committed"
		for _, e := range x.offsets {
			superseded = superseded || e.superseded
		}
	}
	m.record(Record{Kind: RecordResolved, Txn: ev.Txn, Commit: ev.Commit})
	m.keep()
	m.note(rule, "", reason)
	if superseded {
		m.note(O23, "", "pending offsets were superseded by later commits")
	}
	m.reply(ev.Req, None, nil)
}

// stepCheckTransactions makes up for ends of transactions that a crash took back.
func (m *Machine) stepCheckTransactions(ev *CheckTransactions) {
	if !m.pend.empty() {
		var ended []Record
		for _, x := range m.pend.txns {
			if len(x.offsets) == 0 {
				continue
			}
			if outcome := ev.Lookup(m.id, x.txn); outcome != TransactionOpen {
				ended = append(ended, Record{Kind: RecordResolved, Txn: x.txn, Commit: outcome == TransactionCommitted})
			}
		}
		for i := range ended {
			m.record(ended[i])
			m.note(E10, "", "transaction "+ended[i].Txn.ID+" has ended")
		}
		m.keep()
	}
	m.reply(ev.Req, None, nil)
}
