//go:build !invariants

package protocol

const poison = false
