//go:build invariants

package protocol

// poison overwrites blocks that are given back, so that a test sees whoever still
// reads a frame after its request was answered.
const poison = true
