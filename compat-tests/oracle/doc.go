// Package oracle runs scenarios of the group protocol against any broker, writes down
// what it answers, and compares two brokers. Apache Kafka is the oracle: its answers
// are in testdata, and Rollcall has to give the same.
//
// # A scenario
//
// A scenario is a text file. A line that begins with # is prose, one that begins with
// < is an answer, and what is indented below belongs to it. Every other line is a step.
// The answers that came while a step was carried out, or soon after it, follow it.
//
//	# A joins alone and leads.
//	member A session=10s
//	> A JoinGroup v9
//	< A JoinGroup ErrorCode=MEMBER_ID_REQUIRED Generation=-1 MemberID=A.1
//
// The steps are
//
//	broker KEY=VALUE ...        the broker's configuration, at the top; see [Defaults]
//	topic NAME N [shared]       make a topic of N partitions, or one for all runs
//	delete-topic NAME           delete it
//	member NAME KEY=VALUE ...   say what a member is like: group, client, instance,
//	                            session, rebalance, type, protocols; may come again
//	> NAME API vN KEY=VALUE ... send a request; NAME,NAME,... sends one for each
//	>> NAME API vN ...          the same on a new connection, if the last request of
//	                            that connection is not answered: a client that gave up
//	every D for D > ...         send it again and again, if the one before is answered;
//	                            answers that are alike are written once
//	close NAME                  close its connection
//	wait D                      let time pass
//	mark, at D                  wait until that time after the last mark, or the begin
//	stop, kill, start           the broker: orderly, as by a crash, and again
//
// A member has a connection of its own and, with NAME/2, more of them. It sends what
// it has learned: its last id, generation and protocol, and as the leader an
// assignment for each member. A request can say otherwise; request.go has the words.
// Values are bare words, "quoted" as in Go, null, sub(TOPIC,...) for the embedded
// consumer subscription, bytes(N) for N bytes, or hex(...). An id is the name of a
// member (its last one), NAME.N for the nth that it got, none, or a quoted text.
//
// Groups and topics get a prefix of the run, so that scenarios can share a broker. It
// does not show in answers; neither do ids (A.1 is the first of A), addresses and the
// order of lists that have none.
//
// # Time
//
// A request counts as held if it is not answered within [Hold]. A step ends when its
// requests are answered and it was quiet for [Quiet]. So steps take a little time, in
// any broker, and scenarios about time say at or every. The driver knows nothing of
// virtual time: in a bubble of testing/synctest the same waits cost nothing.
package oracle
