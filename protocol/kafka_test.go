package protocol

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestKafkaAgrees sends right and wrong bodies of every API and version to a real
// broker and compares what it refuses, by closing the connection, with what is refused
// here. ROLLCALL_TEST_KAFKA is the address of a plain-text listener of one (with no
// data that matters). It takes ten seconds.
func TestKafkaAgrees(t *testing.T) {
	address := os.Getenv("ROLLCALL_TEST_KAFKA")
	if address == "" {
		t.Skip("ROLLCALL_TEST_KAFKA is not set to the address of a broker")
	}
	// Requests that a broker closes the connection for, or that change it: Produce
	// with acks 0 that fails, ACLs of unknown kinds, SASL, settings of the cluster.
	left := []int16{0, 17, 29, 30, 31, 36, 43, 48, 49, 50, 51, 55, 57}
	table, schemas := everything(t)
	broker := &broker{t: t, address: address}
	for _, r := range table.Ranges() {
		if slices.Contains(left, r.Key) {
			continue
		}
		for version := r.Min; version <= r.Max; version++ {
			h := &Header{Key: r.Key, Version: version}
			h.layout, _ = table.lookup(r.Key, version)
			for name, body := range bodies(schemas[r.Key].name, h.layout) {
				_, err := table.Check(h, body)
				if err == nil {
					_, err = table.Decode(h, body)
				}
				frame := header(r.Key, version, "\x00\x01a")
				if h.layout.flexible {
					frame = append(frame, 0)
				}
				answered := broker.answers(append(frame, body...))
				if answered && err != nil && (strings.HasSuffix(name, " 2^32-1") || strings.HasSuffix(name, " five bytes")) {
					// Kafka reads this length as -2, and takes any negative one for null
					// where null may be. No client sends it.
					continue
				}
				if answered != (err == nil) {
					t.Errorf("%s v%d, %s: answered by Kafka is %v, here: %v\n%x", schemas[r.Key].name, version, name, answered, err, body)
				}
			}
		}
	}
}

// bodies are right and wrong bodies by what is special about them.
func bodies(name string, l *versionLayout) map[string][]byte {
	whole := writer{flexible: l.flexible}
	whole.layout(name, &l.body)
	with := func(b []byte, more ...byte) []byte { return append(slices.Clone(b), more...) }
	all := map[string][]byte{"nothing": whole.dst, "trailing bytes": with(whole.dst, 1, 2, 3)}
	if n := len(whole.dst) - 1; n >= 0 {
		all["the last byte missing"] = whole.dst[:n]
		if l.flexible {
			all["an unknown tag"] = with(whole.dst[:n], 1, 99, 2, 5, 5)
			all["an unknown tag, too long"] = with(whole.dst[:n], 1, 99, 9, 5, 5)
			all["the same tag twice"] = with(whole.dst[:n], 2, 99, 1, 5, 99, 1, 5)
			all["too many tags"] = with(whole.dst[:n], 0xff, 0xff, 3)
		}
	}
	for _, path := range whole.seen {
		for what, length := range wrongLengths(l.flexible, kindAt(&l.body, name, path)) {
			w := writer{flexible: l.flexible, path: path, length: length}
			w.layout(name, &l.body)
			all[path+" "+what] = w.dst
		}
	}
	return all
}

// broker is a connection to Kafka that is opened when one is needed.
type broker struct {
	t       *testing.T
	address string
	nc      net.Conn
}

// answers tells whether the frame is answered; else the connection was closed.
func (b *broker) answers(frame []byte) bool {
	b.t.Helper()
	if b.nc == nil {
		nc, err := net.Dial("tcp", b.address)
		if err != nil {
			b.t.Fatal(err)
		}
		b.nc = nc
	}
	b.nc.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := b.nc.Write(frameOf(frame)); err != nil {
		b.t.Fatal(err)
	}
	var length [4]byte
	_, err := io.ReadFull(b.nc, length[:])
	if err == nil {
		_, err = io.CopyN(io.Discard, b.nc, int64(binary.BigEndian.Uint32(length[:])))
	}
	if err == nil {
		return true
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		b.t.Fatalf("neither an answer nor an end: %x", frame)
	}
	b.nc.Close()
	b.nc = nil
	return false
}
