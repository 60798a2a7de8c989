// Package bubble has a simulation of the whole server: a node over Pebble on a file
// system in memory, and clients that speak the Kafka protocol to it over connections
// in memory, all in a bubble of virtual time (testing/synctest). The power fails, with
// any part of what was not synced on the disk; the disk is slow, nearly full, and full;
// connections break; the node is stopped and started. Goroutines run as the scheduler
// lets them, so a seed gives the same clients and the same faults, but not the same run:
// what was seen is saved when a check fails.
package bubble
