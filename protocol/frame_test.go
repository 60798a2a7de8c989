package protocol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestFrameLengths(t *testing.T) {
	for _, tc := range []struct {
		bytes   string
		problem FrameProblem
		text    string
	}{
		{"\xff\xff\xff\xff", FrameNegative, "-1"},
		{"\x80\x00\x00\x00", FrameNegative, "negative"},
		{"\x00\x00\x00\x00", FrameTooShort, "0 bytes"},
		{"\x00\x00\x00\x07", FrameTooShort, "7 bytes"},
		{"\x00\x00\x00\x09", FrameTooShort, "9 bytes"},
		{"\x00\x00\x00\x0a", 0, ""},
		{"\x06\x40\x00\x00", 0, ""}, // 104857600
		{"\x06\x40\x00\x01", FrameTooLarge, "104857601"},
		{"\x7f\xff\xff\xff", FrameTooLarge, "2147483647"},
		{"\x16\x03\x01\x00", FrameTLS, "TLS"},
		{"\x16\x03\x03\x02", FrameTLS, "TLS"},
		{"\x16\x02\x03\x02", FrameTooLarge, "limit"},
		{"GET ", FrameHTTP, `"GET "`},
		{"POST", FrameHTTP, "HTTP"},
	} {
		f := FrameBuffer{Max: MaxFrameBytes}
		write(t, &f, tc.bytes)
		_, ok, err := f.Peek()
		var frameErr *FrameError
		switch {
		case ok:
			t.Errorf("%q: a frame out of four bytes", tc.bytes)
		case tc.problem == 0 && err != nil:
			t.Errorf("%q: %v", tc.bytes, err)
		case tc.problem != 0 && (!errors.As(err, &frameErr) || frameErr.Problem != tc.problem || !strings.Contains(err.Error(), tc.text)):
			t.Errorf("%q: %v", tc.bytes, err)
		}
		if len(f.cur.buf) != blockSizes[0] {
			t.Errorf("%q: %d bytes of memory", tc.bytes, len(f.cur.buf))
		}
	}
}

// write puts bytes into the buffer, as much as fits at a time.
func write(t testing.TB, f *FrameBuffer, s string) {
	t.Helper()
	for s != "" {
		room, err := f.Room()
		if err != nil {
			t.Fatal(err)
		}
		if len(room) == 0 {
			t.Fatal("no room")
		}
		n := copy(room, s)
		f.Wrote(n)
		s = s[n:]
	}
}

func frameOf(payload []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...)
}

// ledger is a budget that keeps the books.
type ledger struct {
	max, reserved, unfinished int
	refused                   int
}

func (l *ledger) Reserve(n int) bool {
	if n <= 0 {
		panic("reserve of nothing")
	}
	if l.reserved+n > l.max {
		l.refused++
		return false
	}
	l.reserved += n
	return true
}
func (l *ledger) Unfinished(n int) { l.unfinished = n }
func (l *ledger) Release(n int)    { l.reserved -= n }

// Frames of all sizes, cut anywhere, given back in any order, come out as they went
// in; at the end no memory is held and the books are even.
func TestFramesSurviveAnyCut(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		books := &ledger{max: 1 << 30}
		f := FrameBuffer{Max: MaxFrameBytes, Budget: books}
		var stream []byte
		var want [][]byte
		for range 1 + r.IntN(30) {
			payload := make([]byte, MinHeaderBytes+r.IntN(1<<r.IntN(18)))
			for i := range payload {
				payload[i] = byte(r.Uint32())
			}
			want = append(want, payload)
			stream = append(stream, frameOf(payload)...)
		}
		type out struct {
			frame Frame
			want  []byte
		}
		var outs []out
		for len(stream) > 0 {
			room, err := f.Room()
			if err != nil {
				t.Fatal(err)
			}
			n := copy(room, stream[:min(len(stream), 1+r.IntN(1<<r.IntN(17)))])
			f.Wrote(n)
			stream = stream[n:]
			for {
				frame, ok, err := f.Peek()
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				if !bytes.Equal(frame, want[0]) {
					t.Fatalf("seed %d: a frame of %d bytes came out wrong", seed, len(want[0]))
				}
				outs = append(outs, out{f.Take(), want[0]})
				want = want[1:]
			}
			for len(outs) > 0 && r.IntN(3) == 0 {
				if !bytes.Equal(outs[0].frame.Bytes, outs[0].want) {
					t.Fatalf("seed %d: a frame changed while it was out", seed)
				}
				f.Release(outs[0].frame)
				outs = outs[1:]
			}
			f.Rest()
		}
		for _, o := range outs {
			if !bytes.Equal(o.frame.Bytes, o.want) {
				t.Fatalf("seed %d: a frame changed while it was out", seed)
			}
			f.Release(o.frame)
		}
		if len(want) != 0 || f.cur != nil || books.reserved != 0 || books.unfinished != 0 {
			t.Fatalf("seed %d: %d frames missing, memory %v, books %+v", seed, len(want), f.cur, books)
		}
	}
}

// A length of 90 MiB costs what its few bytes cost; every further byte is paid for
// when it comes; and what is outside the budget gets through when it is used up.
func TestMemoryFollowsTheBytes(t *testing.T) {
	books := &ledger{max: 3 << 20}
	f := FrameBuffer{Max: MaxFrameBytes, Budget: books}
	write(t, &f, "\x05\xa0\x00\x00")
	if _, err := f.Room(); err != nil || books.reserved != 0 || len(f.cur.buf) != 4<<10 {
		t.Fatalf("after the length: %d bytes, %+v, %v", len(f.cur.buf), books, err)
	}
	piece := strings.Repeat("x", 1000)
	came := 4
	var err error
	for err == nil {
		var room []byte
		if room, err = f.Room(); err == nil {
			n := copy(room, piece)
			f.Wrote(n)
			came += n
		}
		if len(f.cur.buf) > 4*came+4<<10 {
			t.Fatalf("%d bytes of memory for %d", len(f.cur.buf), came)
		}
		if books.unfinished != books.reserved || books.reserved != max(0, len(f.cur.buf)-FreeFrameBytes) {
			t.Fatalf("books %+v for %d bytes of memory", books, len(f.cur.buf))
		}
	}
	if !errors.Is(err, ErrBudget) || came < 1<<20 {
		t.Fatalf("ended after %d bytes with %v", came, err)
	}

	books.max = books.reserved // nothing left
	small := FrameBuffer{Max: MaxFrameBytes, Budget: books}
	write(t, &small, string(frameOf(make([]byte, FreeFrameBytes-4))))
	if _, ok, err := small.Peek(); !ok || err != nil {
		t.Errorf("a frame of 16 KiB with its length did not get through: %v", err)
	}

	books.max = 1 << 30 // and more may be had later
	if _, err := f.Room(); err != nil {
		t.Errorf("with a new budget: %v", err)
	}
}

// A large frame that is done with leaves the beginning of the next one in its memory:
// that is unfinished from then on.
func TestTailOfALargeBlockIsUnfinished(t *testing.T) {
	books := &ledger{max: 1 << 30}
	f := FrameBuffer{Max: MaxFrameBytes, Budget: books}
	write(t, &f, string(frameOf(make([]byte, 40000))))
	write(t, &f, "\x00\x00\x10\x00abc")
	frame := f.Take()
	if books.reserved != 48<<10 || books.unfinished != 0 {
		t.Fatalf("with a finished frame: %+v", books)
	}
	f.Release(frame)
	if books.reserved != 48<<10 || books.unfinished != 48<<10 {
		t.Fatalf("with an unfinished one: %+v", books)
	}
	write(t, &f, strings.Repeat("d", 4093))
	frame = f.Take()
	f.Release(frame)
	if books.reserved != 0 || books.unfinished != 0 {
		t.Fatalf("at the end: %+v", books)
	}
}

func BenchmarkFrames(b *testing.B) {
	f := FrameBuffer{Max: MaxFrameBytes}
	frame := frameOf(make([]byte, 100))
	b.ReportAllocs()
	for b.Loop() {
		room, _ := f.Room()
		f.Wrote(copy(room, frame))
		if _, ok, _ := f.Peek(); !ok {
			b.Fatal("no frame")
		}
		f.Release(f.Take())
	}
}
