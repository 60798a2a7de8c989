//go:build invariants

package group

func init() { checkAlways = true }
