package protocol

import "sync"

// block is a piece of memory that frames are read into. It belongs to one
// [FrameBuffer], and to the frames taken from it, until it goes back to its pool.
type block struct {
	buf []byte
	// frames counts the frames in it that are out.
	frames int
	// reserved is what was asked of the budget for it.
	reserved int
}

// The sizes of pooled blocks. A larger one has the size of its frame, or twice what
// has come of it, and is left to the garbage collector.
var blockSizes = [...]int{4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20}

var blockPools [len(blockSizes)]sync.Pool

// poolOf returns the index of the smallest pool with blocks of n bytes, or -1.
func poolOf(n int) int {
	for i, size := range blockSizes {
		if n <= size {
			return i
		}
	}
	return -1
}

// newBlock returns a block of at least n bytes.
func newBlock(n int) *block {
	i := poolOf(n)
	if i < 0 {
		return &block{buf: make([]byte, n)}
	}
	if b, _ := blockPools[i].Get().(*block); b != nil {
		return b
	}
	return &block{buf: make([]byte, blockSizes[i])}
}

// free gives the block back. Nothing may alias it any more.
func (b *block) free() {
	b.frames, b.reserved = 0, 0
	if poison {
		for i := range b.buf {
			b.buf[i] = 0xdb
		}
	}
	if i := poolOf(len(b.buf)); i >= 0 && len(b.buf) == blockSizes[i] {
		blockPools[i].Put(b)
	}
}
