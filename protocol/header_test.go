package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func header(key, version int16, rest string) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, 77)
	return append(b, rest...)
}

func TestReadHeader(t *testing.T) {
	table, err := NewTable([]Range{{18, 0, 4}, {12, 0, 4}, {0, 0, 12}, {3, 0, 12}})
	if err != nil {
		t.Fatal(err)
	}
	const id = "\x00\x03abc"
	for _, tc := range []struct {
		name         string
		key, version int16
		rest         string
		problem      RequestProblem
		tooNew       bool
		body         string
	}{
		{"inflexible", 12, 3, id + "body", 0, false, "body"},
		{"flexible", 12, 4, id + "\x00body", 0, false, "body"},
		{"flexible, unknown tags", 12, 4, id + "\x02\x01\x02xx\x09\x00body", 0, false, "body"},
		{"flexible, tags cut off", 12, 4, id + "\x02\x01\x02xx", MalformedHeader, false, ""},
		{"null client id", 12, 0, "\xff\xffbody", 0, false, "body"},
		{"empty client id", 12, 0, "\x00\x00body", 0, false, "body"},
		{"client id -2", 12, 0, "\xff\xfebody", 0, false, "body"},
		{"client id longer than the frame", 12, 0, "\x00\x09body", MalformedHeader, false, ""},
		{"no client id", 12, 0, "", MalformedHeader, false, ""},
		{"unknown key", 999, 0, id, UnknownAPI, false, ""},
		{"key in a gap", 5, 0, id, UnknownAPI, false, ""},
		{"negative key", -1, 0, id, UnknownAPI, false, ""},
		{"version too new", 12, 5, id, UnsupportedVersion, false, ""},
		{"negative version", 12, -1, id, UnsupportedVersion, false, ""},
		{"Produce that is only advertised", 0, 2, id + "body", UnsupportedVersion, false, ""},
		{"Produce that is served", 0, 3, id + "body", 0, false, "body"},
		{"ApiVersions", 18, 4, id + "\x00body", 0, false, "body"},
		{"ApiVersions too new", 18, 99, id + "\x00garbage", 0, true, "garbage"},
		{"ApiVersions too new, empty body", 18, 5, id + "\x00", 0, true, ""},
		{"ApiVersions too new, no tags", 18, 99, id, MalformedHeader, false, ""},
		{"ApiVersions of a negative version", 18, -1, id, 0, true, ""},
	} {
		h, body, err := table.ReadHeader(header(tc.key, tc.version, tc.rest))
		var refused *RequestError
		if tc.problem != 0 {
			if !errors.As(err, &refused) || refused.Problem != tc.problem {
				t.Errorf("%s: %v", tc.name, err)
			}
			continue
		}
		if err != nil || h.Key != tc.key || h.Version != tc.version || h.CorrelationID != 77 || h.TooNew != tc.tooNew || string(body) != tc.body {
			t.Errorf("%s: %+v, body %q, %v", tc.name, h, body, err)
		}
		if (h.ClientID == nil) != (tc.rest[0] == '\xff') {
			t.Errorf("%s: client id %v", tc.name, h.ClientID)
		}
	}
}

func TestApiVersionsTooNew(t *testing.T) {
	table, err := NewTable([]Range{{18, 0, 4}, {3, 0, 12}})
	if err != nil {
		t.Fatal(err)
	}
	got := table.AppendResponse([]byte("before"), 0x01020304, table.ApiVersionsTooNew())
	const want = "before\x00\x00\x00\x10\x01\x02\x03\x04" + "\x00\x23" + "\x00\x00\x00\x01" + "\x00\x12\x00\x00\x00\x04"
	if string(got) != want {
		t.Errorf("got %x, want %x", got, want)
	}
}

// The header of a response is flexible where the request was, but never for
// ApiVersions.
func TestResponseHeaders(t *testing.T) {
	table, _ := everything(t)
	for _, tc := range []struct {
		key, version int16
		header       int
	}{{12, 3, 4}, {12, 4, 5}, {18, 0, 4}, {18, 3, 4}, {18, 4, 4}, {47, 0, 4}, {42, 2, 5}} {
		resp := kmsg.ResponseForKey(tc.key)
		resp.SetVersion(tc.version)
		frame := table.AppendResponse(nil, 7, resp)
		body := resp.AppendTo(nil)
		if got := len(frame) - 4 - len(body); got != tc.header {
			t.Errorf("%s v%d: header of %d bytes, want %d", kmsg.NameForKey(tc.key), tc.version, got, tc.header)
		}
		if n := binary.BigEndian.Uint32(frame); int(n) != len(frame)-4 {
			t.Errorf("length %d of %d bytes", n, len(frame)-4)
		}
	}
}

func TestNewTableRefuses(t *testing.T) {
	for _, ranges := range [][]Range{
		{{18, 0, 4}, {18, 0, 3}}, // twice
		{{4, 0, 7}},              // LeaderAndIsr: no layout
		{{12, 0, 5}},             // Kafka has no such version
		{{8, 1, 9}},              // nor has it this one any more
		{{12, -1, 4}},
		{{12, 4, 3}},
		{{999, 0, 0}},
	} {
		if _, err := NewTable(ranges); err == nil {
			t.Errorf("%v was taken", ranges)
		}
	}
}

// FuzzFrame: whatever comes, in whatever pieces, memory stays within four times the
// bytes, and the frames are the same as when it comes at once.
func FuzzFrame(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x0aabcdefghij\x00\x00\x00\x0b"), uint8(3))
	f.Add([]byte("GET / HTTP/1.1\r\n"), uint8(1))
	f.Add([]byte("\x7f\xff\xff\xff"), uint8(9))
	f.Fuzz(func(t *testing.T, stream []byte, step uint8) {
		books := &ledger{max: 1 << 30}
		cut := func(step int) (frames []string, failure string) {
			b := FrameBuffer{Max: 1 << 20, Budget: books}
			rest := stream
			for {
				frame, ok, err := b.Peek()
				if err != nil {
					return frames, fmt.Sprint(err)
				}
				if ok {
					taken := b.Take()
					if string(frame) != string(taken.Bytes) {
						t.Fatal("took another frame than was shown")
					}
					frames = append(frames, string(frame))
					b.Release(taken)
					continue
				}
				if len(rest) == 0 {
					return frames, ""
				}
				room, err := b.Room()
				if err != nil || len(room) == 0 {
					t.Fatalf("room of %d bytes, %v", len(room), err)
				}
				n := copy(room, rest[:min(len(rest), step)])
				b.Wrote(n)
				rest = rest[n:]
				if len(b.cur.buf) > 4<<10+4*len(stream) {
					t.Fatalf("%d bytes of memory for %d", len(b.cur.buf), len(stream))
				}
			}
		}
		a, failureA := cut(1 << 20)
		b, failureB := cut(1 + int(step))
		if fmt.Sprint(a) != fmt.Sprint(b) || failureA != failureB {
			t.Fatalf("%q %s\n%q %s", a, failureA, b, failureB)
		}
	})
}

// FuzzHeader: a header is refused, or it and its body are within the frame.
func FuzzHeader(f *testing.F) {
	table, _ := everything(f)
	f.Add(header(12, 4, "\x00\x03abc\x00body"))
	f.Add(header(18, 99, "\xff\xff\x01\x00\x00"))
	f.Fuzz(func(t *testing.T, frame []byte) {
		h, body, err := table.ReadHeader(frame)
		if err != nil {
			return
		}
		if MinHeaderBytes+len(h.ClientID)+len(body) > len(frame) {
			t.Fatalf("client id %q and body %q out of %q", h.ClientID, body, frame)
		}
		if !h.TooNew && h.layout == nil {
			t.Fatal("no layout")
		}
	})
}

// FuzzDecode: a body of any API and version is refused, or kmsg takes it too, and
// what it makes of it is encoded to something that is accepted again. (Not to the same
// bytes: a varint can be written in more than one way.)
func FuzzDecode(f *testing.F) {
	table, _ := everything(f)
	for _, r := range table.Ranges() {
		for v := r.Min; v <= r.Max; v++ {
			req := kmsg.RequestForKey(r.Key)
			req.SetVersion(v)
			f.Add(uint8(r.Key), uint8(v), req.AppendTo(nil))
			l, _ := table.lookup(r.Key, v)
			w := writer{flexible: l.flexible}
			w.layout("", &l.body)
			f.Add(uint8(r.Key), uint8(v), w.dst)
		}
	}
	f.Fuzz(func(t *testing.T, key, version uint8, body []byte) {
		h := &Header{Key: int16(key), Version: int16(version)}
		problem := RequestProblem(0)
		if h.layout, problem = table.lookup(h.Key, h.Version); problem != 0 {
			return
		}
		memory, err := table.Check(h, body)
		if err != nil {
			return
		}
		if memory > inflationFree+inflationFactor*len(body) {
			t.Fatalf("%d bytes may become %d", len(body), memory)
		}
		req, err := table.Decode(h, body)
		if err != nil {
			t.Fatalf("passed the check: %v", err)
		}
		again := req.AppendTo(nil)
		if _, err := table.Check(h, again); err != nil {
			t.Fatalf("%x became %x: %v", body, again, err)
		}
	})
}
