// Package group breaks the rules of the machine.
package group

import (
	"maps"
	"slices"
	"time"
)

func order(m map[string]int) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	time.Sleep(1)
	names = append(names, sortedNames(m)...)
	names = append(names, slices.Sorted(maps.Keys(m))...)
	return slices.AppendSeq(names, maps.Keys(m))
}

func sortedNames(m map[string]int) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
