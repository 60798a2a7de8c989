// Package group is the state machine of one consumer group: its committed offsets
// and its membership. It is pure and deterministic: time, entropy and
// configuration come in, records, replies and notes go out.
//
// # Rules
//
// Membership:
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
//	     OffsetDelete, DeleteGroups, topics
//	E1   OffsetDelete, unknown group        69
//	E2   members, protocol not consumer     68
//	E3   members, topic subscribed          86 for that topic; not known is subscribed
//	E4   else                               removed
//	E5   DeleteGroups, unknown group        69
//	E6   members                            68
//	E7   Empty                              removed with all it has, pending ids too
//	E8   topic deleted                      its offsets go, live group or not
//	E9   after a load                       offsets of topics that are gone go
//	     Expiry; an offset is kept for offsets.retention.minutes from
//	X1   never a member, or time unknown    its commit
//	X2   Empty                              the time at which the group became Empty
//	X3   consumer, Stable                   its commit, if the topic is not subscribed
//	X4   other states and protocols         never removed
//	X5   a time of its own (O10)            until then, where X1 to X3 let it go
//	X6   Empty without offsets              the group goes
package group
