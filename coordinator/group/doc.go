// Package group is the state machine of one consumer group: its committed offsets
// and its membership. It is pure and deterministic: time, entropy and
// configuration come in, records, replies and notes go out.
//
// # Rules
//
// Membership:
//
// Offsets:
package group
