// Package store opens the data directory: the two Pebbles groups/ and topics/,
// their format and the committer of each.
package store
