package protocol

import (
	"encoding/binary"
	"errors"
)

const (
	lengthBytes = 4
	// MaxFrameBytes is Kafka's default of socket.request.max.bytes.
	MaxFrameBytes = 100 << 20
	// FreeFrameBytes of every frame are outside the budget, so that small requests
	// get through when large ones have used it up.
	FreeFrameBytes = 16 << 10
	// leastRoom is how little room is not worth a read.
	leastRoom = 512
)

// ErrBudget is returned by [FrameBuffer.Room] when the budget has nothing left for
// the frame that is being read. It may be asked again later.
var ErrBudget = errors.New("no memory left for the frame")

// Budget is asked for the memory of the frames of one connection beyond
// [FreeFrameBytes] of each.
type Budget interface {
	// Reserve asks for n more bytes.
	Reserve(n int) bool
	// Unfinished tells how much of what is reserved holds a frame that has not come
	// in whole; the rest belongs to frames that have.
	Unfinished(n int)
	// Release gives back n bytes of frames that are done with.
	Release(n int)
}

// FrameBuffer gathers the bytes of a connection and cuts them into frames. Its memory
// follows the bytes that have come, at most fourfold (or what the frame before
// needed) and never the length that was announced; between frames it has none. It is
// used by one goroutine.
type FrameBuffer struct {
	// Max is the longest frame that is taken, in bytes.
	Max int32
	// Budget may be nil. It must not change while the buffer has memory.
	Budget Budget

	cur  *block // nil: no memory
	r, w int    // what is buffered is cur.buf[r:w]
	// unfinished: the budget has been told that cur holds an unfinished frame.
	unfinished bool
	// roomy: the last frames needed more than the smallest block.
	roomy bool
}

// Frame is a request without its length. Its bytes are valid until it is given back
// with [FrameBuffer.Release].
type Frame struct {
	Bytes []byte
	block *block
}

// Buffered is the number of bytes that belong to no frame taken yet.
func (f *FrameBuffer) Buffered() int { return f.w - f.r }

// Peek returns the next frame if it has come in whole, without taking it. The error
// is a *[FrameError]; after it the buffer is of no more use.
func (f *FrameBuffer) Peek() (frame []byte, ok bool, err error) {
	if f.Buffered() < lengthBytes {
		return nil, false, nil
	}
	n, err := f.announced()
	if err != nil || f.Buffered()-lengthBytes < n {
		return nil, false, err
	}
	if f.unfinished {
		f.unfinished = false
		f.Budget.Unfinished(0)
	}
	start := f.r + lengthBytes
	return f.cur.buf[start : start+n : start+n], true, nil
}

// announced reads and checks the length of the next frame.
func (f *FrameBuffer) announced() (int, error) {
	n := int32(binary.BigEndian.Uint32(f.cur.buf[f.r:]))
	problem := FrameProblem(0)
	switch {
	case n < 0:
		problem = FrameNegative
	case n < MinHeaderBytes:
		problem = FrameTooShort
	case n > f.Max:
		problem = likelyCause(n)
	default:
		return int(n), nil
	}
	return 0, &FrameError{Problem: problem, Length: n, Max: f.Max}
}

// lengthText shows a length as the four characters it came as.
func lengthText(n int32) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(n)))
}

// likelyCause guesses what a length over the limit really is.
func likelyCause(n int32) FrameProblem {
	if n>>16 == 0x1603 && n>>8&0xff <= 4 {
		return FrameTLS
	}
	switch lengthText(n) {
	case "GET ", "POST", "PUT ", "HEAD", "OPTI", "DELE", "PATC", "CONN", "TRAC", "PRI ":
		return FrameHTTP
	}
	return FrameTooLarge
}

// Take takes the frame that [FrameBuffer.Peek] has just shown.
func (f *FrameBuffer) Take() Frame {
	bytes, _, _ := f.Peek()
	f.r += lengthBytes + len(bytes)
	f.cur.frames++
	f.roomy = f.roomy && len(bytes) > blockSizes[0]/4 || len(bytes) > blockSizes[0]-lengthBytes
	return Frame{Bytes: bytes, block: f.cur}
}

// Release ends the use of a frame.
func (f *FrameBuffer) Release(frame Frame) {
	b := frame.block
	if b.frames--; b.frames > 0 {
		return
	}
	switch {
	case b != f.cur:
		f.free(b)
	case f.Buffered() == 0:
		f.Rest()
	case b.reserved > 0:
		// What is left in the block may be the beginning of a frame.
		if _, whole, _ := f.Peek(); !whole {
			f.unfinished = true
			f.Budget.Unfinished(b.reserved)
		}
	}
}

// Rest gives the memory back if nothing is buffered and no frame is out. The caller
// is about to wait for bytes.
func (f *FrameBuffer) Rest() {
	if f.cur != nil && f.Buffered() == 0 && f.cur.frames == 0 {
		f.free(f.cur)
		f.cur, f.r, f.w = nil, 0, 0
	}
}

func (f *FrameBuffer) free(b *block) {
	if b.reserved > 0 {
		f.Budget.Release(b.reserved)
	}
	b.free()
}

// Drop forgets what is buffered. Frames that are out stay valid for ever and are not
// given back. The budget is not told: whoever drops a connection forgets all of it.
func (f *FrameBuffer) Drop() {
	if f.cur != nil && f.cur.frames == 0 {
		f.cur.free()
	}
	f.cur, f.r, f.w, f.unfinished = nil, 0, 0, false
}

// Full tells whether there is no room left to read ahead.
func (f *FrameBuffer) Full() bool { return f.cur != nil && f.w == len(f.cur.buf) }

// ReadAhead returns what room there is without moving anything or asking for more
// memory; it may be none. It is for bytes that come while frames wait to be taken.
func (f *FrameBuffer) ReadAhead() []byte {
	if f.cur == nil {
		f.cur = newBlock(blockSizes[0])
	}
	return f.cur.buf[f.w:]
}

// Room returns where to put the next bytes; [FrameBuffer.Wrote] tells how many came.
// The error is [ErrBudget]. Room is called when there is no complete frame left.
func (f *FrameBuffer) Room() ([]byte, error) {
	if f.cur == nil {
		size := blockSizes[0]
		if f.roomy {
			size = FreeFrameBytes
		}
		f.cur = newBlock(size)
		return f.cur.buf, nil
	}
	if f.cur.frames == 0 && f.Buffered() == 0 {
		f.r, f.w = 0, 0
	}
	need := f.wanted()
	if left := len(f.cur.buf) - f.w; left >= leastRoom || left >= need-f.Buffered() && left > 0 {
		return f.cur.buf[f.w:], nil
	}
	if err := f.move(need); err != nil {
		return nil, err
	}
	return f.cur.buf[f.w:], nil
}

// wanted is how many bytes from r on the buffer is to have room for: the frame that
// has begun, but no more than four times what has come of it.
func (f *FrameBuffer) wanted() int {
	have := f.Buffered()
	if have < lengthBytes {
		return lengthBytes + leastRoom
	}
	n, err := f.announced()
	if err != nil {
		return have // Peek reports it
	}
	return lengthBytes + n
}

// move makes room: at the beginning of the block if that is enough and no frame is
// out, else in a larger block.
func (f *FrameBuffer) move(need int) error {
	have := f.Buffered()
	size := len(f.cur.buf)
	if f.cur.frames > 0 || f.r == 0 || need > size {
		factor := 4
		if have >= blockSizes[len(blockSizes)-1]/2 {
			factor = 2
		}
		size = max(blockSizes[0], min(need, max(have, blockSizes[0]/factor)*factor))
	}
	old := f.cur
	if old.frames == 0 && size <= len(old.buf) {
		copy(old.buf, old.buf[f.r:f.w])
		f.r, f.w = 0, have
		return nil
	}
	if i := poolOf(size); i >= 0 {
		size = blockSizes[i]
	}
	reserved := max(0, size-FreeFrameBytes)
	more := reserved
	if old.frames == 0 {
		more -= old.reserved
	}
	if f.Budget == nil {
		reserved = 0
	} else if more > 0 && !f.Budget.Reserve(more) {
		return ErrBudget
	}
	f.replace(newBlock(size), reserved)
	return nil
}

// replace moves what is buffered into a new block.
func (f *FrameBuffer) replace(b *block, reserved int) {
	old := f.cur
	copy(b.buf, old.buf[f.r:f.w])
	f.cur, f.r, f.w = b, 0, f.Buffered()
	b.reserved = reserved
	if reserved > 0 {
		f.unfinished = true
		f.Budget.Unfinished(reserved)
	}
	if old.frames == 0 {
		old.free() // what was reserved for it is part of what the new one has
	}
}

// Wrote tells that n bytes were put into the room.
func (f *FrameBuffer) Wrote(n int) { f.w += n }
