// Package group is the state machine of one consumer group: its committed offsets
// and its membership. It is pure and deterministic: time, entropy and
// configuration come in, records, replies and notes go out.
//
// # Hard and soft state
//
// Hard state survives a restart and changes only in [Machine.Apply]: the committed
// and pending offsets and the last snapshot of the membership ([Membership]). Soft state is the
// live membership and changes only in [Machine.Step]:
//
//	state, since         the group's state and when it was entered     from the snapshot
//	generation           grows when a join phase ends, only then       from the snapshot
//	recovered            the next generation passes the ceiling        set, if there are members
//	protocol type, name  as selected when the generation was formed    from the snapshot
//	members, leader      in join order, with all their protocols       from the snapshot
//	assignments          of the current generation, in Stable only     from the snapshot
//	topics               subscribed to when the generation was formed  computed anew
//	session timers       last heard and for how long                   full sessions
//	parked requests      at most one join and one sync per member      none
//	pending ids          handed out, not joined                        none
//	join and sync timer  the deadline of the phase                     none
//
// The last column is what [Loaded] makes of it after a restart. A group exists
// while it has offsets, a snapshot, members, pending ids or a join phase, and when
// all that is gone until the next run of the expiry of offsets.
//
// # Rules
//
// A rule is a cell of this table. Its id stands in the code at the branch that
// carries it out, in the [Note] that the branch emits, and in the script that shows
// it. Numbers are error codes; before the cells of a JoinGroup come J2
// and J3, before those of a SyncGroup and a Heartbeat S2 to S5 and H1 to H3.
//
//	                      unknown  Empty   Preparing  Completing  Stable
//	JoinGroup
//	  new member          J8       J8      J9         J7          J10
//	  member, unchanged   J1       J14     J15        J6          J19, leader J17
//	  member, changed     J1       J14     J15        J16         J18, leader J17
//	  static replacement  -        -       J23        J22         J20, J21, J24
//	SyncGroup, follower   S1       S1      S6         S7          S10
//	SyncGroup, leader     S1       S1      S6         S8, S9, S11 S10
//	Heartbeat             H1       H1      H4         H5          H6
//	LeaveGroup            L1       L2, L3  L2 to L5   L2 to L5    L2 to L5
//	session timeout       -        -       T1, T2     T1          T1
//	pending id times out  -        T3      T3         T3          T3
//	join timer            -        -       R2, T4     -           -
//	sync timer            -        -       -          T5          T5
//	DescribeGroups        D1       D2      D2         D2          D2
//	ListGroups            D3       D4      D4         D4          D4
//
// JoinGroup:
//
//	J1   unknown group, with a member id     25
//	J2   group.max.size reached              81; the id, a member too, is forgotten
//	J3   protocol type or protocols differ   23
//	J4   dynamic, no id, version 4 or later  79 with an id, which is pending
//	J5   too many pending ids                81 (a limit of ours)
//	J6   unchanged, Completing               answered at once with this generation
//	J7   new member, Completing              the late joiner: parked, the round begins again
//	J8   new member, Empty                   parked, the initial delay begins
//	J9   new member, Preparing               parked
//	J10  new member, Stable                  parked, a round begins
//	J11  pending id, with an instance id     -1
//	J12  instance id not known, with an id   25
//	J13  instance id of another member       82
//	J14  member id not known                 25
//	J15  member, Preparing                   parked, what it offers is taken over
//	J16  changed, Completing                 parked, the round begins again
//	J17  leader, Stable                      parked, a round begins
//	J18  follower, changed, Stable           parked, a round begins
//	J19  follower, unchanged, Stable         answered at once with this generation
//	J20  replacement, Stable                 answered at once, a snapshot is written
//	J21  the same, but the vote changes      parked, a round begins
//	J22  replacement, Completing             parked, the round begins again
//	J23  replacement, Preparing              parked
//	J24  replacement, Stable, disk low       15
//	J25  the member's join is parked         the earlier one gets 27
//
// SyncGroup:
//
//	S1   unknown or Empty                    25
//	S2   member or instance id               25, 82
//	S3   older generation in a rebalance     27 (Kafka: 22)
//	S4   another generation                  22
//	S5   protocol type or name differs       23
//	S6   Preparing                           27
//	S7   follower, Completing                parked
//	S8   leader, Completing                  Stable: a snapshot is written, all are answered
//	S9   the same, assigned by us            the leader sent nothing and the type has an [Assignor]
//	S10  Stable                              the assignment, as often as asked; the session is not renewed
//	S11  leader, Completing, disk low        15, nothing changes
//	S12  the member's sync is parked         the earlier one gets 27
//
// Heartbeat:
//
//	H1   member or instance id               25, 82
//	H2   older generation in a rebalance     27, the session is not renewed (Kafka: 22)
//	H3   another generation                  22
//	H4   Preparing                           27, the session is renewed
//	H5   Completing                          0, the session is renewed
//	H6   Stable                              0, the session is renewed
//
// LeaveGroup; one round at most for all members of a request:
//
//	L1   unknown group                       25 for each
//	L2   member or instance id               25, 82
//	L3   pending id                          0, forgotten
//	L4   member                              0, removed; what it has parked gets 25
//	L5   instance id without a member id     0, removed
//
// Rounds:
//
//	R1   a round begins                      assignments are cleared, parked syncs get 27
//	R2   end of a window of the delay        another one, if members came and the first one's time lasts
//	R3   join phase ends with members        generation + 1, Completing, parked joins are answered
//	R4   join phase ends without members     generation + 1, Empty, a snapshot is written
//	R5   dynamic member that did not join    removed at the end of the join phase
//	R6   only absent static members          the join phase goes on
//	R7   generation passes the ceiling       the last snapshot is written again with a higher one
//	R8   first generation after a restart    ceiling + 1
//	R9   static member that did not join     keeps its place
//	R10  the leader did not join             the first member that did leads
//
// Timers; equal deadlines expire in the order session, pending id, join, sync, and
// then by member:
//
//	T1   session timeout                     removed; a round, or the end of a join phase that waited
//	T2   new member parked for 5 minutes     25, removed
//	T3   pending id not used                 forgotten; it may end a join phase, also in the initial delay
//	T4   the join phase's time is up         it ends with those that are there
//	T5   no sync in time                     removed, static members too; a round
//	T6   the process was stopped             sessions are extended
//
// Ownership:
//
//	M1   loaded with members                 Stable
//	M2   loaded without members              Empty
//	M3   loaded, beyond group.max.size       a round begins
//	M4   lost                                what is parked gets 16
//
// DescribeGroups and ListGroups:
//
//	D1   describe, unknown group             69
//	D2   describe                            metadata in Stable only
//	D3   list, unknown group                 69
//	D4   list                                one line
//
// Offsets, by request and what it meets (numbers in brackets are error codes):
//
//	     OffsetCommit
//	O1   generation < 0, unknown group      stored, the group begins (a simple group)
//	O2   generation >= 0, unknown group     22, or 69 from version 9 on
//	O3   generation < 0, Empty              stored, whatever ids it names
//	O4   member, instance or generation     25, 82, 22 in that order
//	O5   no ids at all, members exist       25
//	O6   CompletingRebalance                27, behind O4
//	O7   PreparingRebalance, Stable         stored, the session is renewed
//	O8   metadata too large (UTF-16 units)  12 for that partition, the others are stored
//	O9   disk almost full                   15, nothing changes
//	O10  retention time (versions 2 to 4)   stored with a time of its own to expire
//	     OffsetFetch
//	O11  listed partitions                  in request order, -1 without an error if there is no offset
//	O12  all                                those with an offset, in order
//	O13  another topic of that name         as if there were no offset
//	     TxnOffsetCommit; O8 and O9 too
//	O14  generation < 0, unknown group      pending, the group begins (a simple group)
//	O15  generation >= 0, unknown group     22, or 69 from version 6 on
//	O16  generation < 0, Empty              pending, whatever ids it names
//	O17  member, instance or generation     25, 82, 22 in that order
//	O18  no ids at all, members exist       pending, nothing fences it
//	O19  a member                           pending in any state, the session is not renewed
//	     OffsetFetch that requires stable offsets
//	O20  listed, an offset is pending       88 for that partition
//	O21  all, an offset is pending          88 if there is a committed one, else left out
//	     Resolve: the transaction is
//	O22  committed                          its pending offsets are committed
//	O23  committed, after a later commit    but not those that were written before another
//	O24  aborted                            its pending offsets are dropped
//	O25  not pending here (any more)        nothing changes
//	     OffsetDelete, DeleteGroups, topics; offsets are committed and pending ones
//	E1   OffsetDelete, unknown group        69
//	E2   members, protocol not consumer     68
//	E3   members, topic subscribed          86 for that topic; not known is subscribed
//	E4   else                               removed
//	E5   DeleteGroups, unknown group        69
//	E6   members                            68
//	E7   Empty                              removed with all it has, pending ids too
//	E8   topic deleted                      its offsets go, live group or not
//	E9   after a load                       offsets of topics that are gone go
//	E10  after a load                       what is pending of transactions that have ended is resolved
//	     Expiry; an offset is kept for offsets.retention.minutes from
//	X1   never a member, or time unknown    its commit
//	X2   Empty                              the time at which the group became Empty
//	X3   consumer, Stable                   its commit, if the topic is not subscribed
//	X4   other states and protocols         never removed
//	X5   a time of its own (O10)            until then, where X1 to X3 let it go
//	X6   Empty without offsets              the group goes
//	X7   an offset is pending               the partition's committed one stays
//	X8   Empty, only pending offsets        the group stays
//	     Reset by an operator
//	F1   disk almost full                   15, nothing changes
//	F2   members, not to be fenced          68
//	F3   metadata too large                 12, nothing changes
//	F4   members, to be fenced              removed, what they have parked gets 25; Empty
//	F5   else, or then                      the offsets are set at one stroke
package group
