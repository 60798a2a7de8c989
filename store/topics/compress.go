package topics

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Compression types, as in the attributes of a batch.
const (
	codecNone   = 0
	codecGzip   = 1
	codecSnappy = 2
	codecLZ4    = 3
	codecZstd   = 4
)

const (
	// zstdWindowMax is the largest window of a zstd frame: that of level 22.
	zstdWindowMax = 128 << 20
	// zstdWindowKept is the largest one whose decoder is kept for the next batch.
	zstdWindowKept = 8 << 20
	// snappyRatioMax is above the best ratio that the format allows (64 bytes from
	// 3), so that nothing is allocated for a length that cannot be true.
	snappyRatioMax = 22
)

var errSnappy = errors.New("broken snappy data")

// decompressor holds the decoders of one goroutine at a time. They are made when
// first needed and used again.
type decompressor struct {
	chunk [16 << 10]byte
	in    bytes.Reader
	gzip  *gzip.Reader
	lz4   *lz4.Reader
	zstd  *zstd.Decoder
	// block is the last block of snappy data, xerial what is behind it.
	block, xerial []byte
}

// decompressors is a bounded set of them. Decompressing is all CPU, so more at a
// time than there are processors would only cost memory.
type decompressors chan *decompressor

func newDecompressors(n int) decompressors {
	c := make(decompressors, n)
	for range n {
		c <- nil
	}
	return c
}

func (c decompressors) get() *decompressor {
	d := <-c
	if d == nil {
		d = new(decompressor)
	}
	return d
}

func (c decompressors) put(d *decompressor) {
	d.in.Reset(nil)
	d.xerial = nil
	c <- d
}

// open returns a reader of the decompressed body, valid until the next open.
func (d *decompressor) open(codec int16, body []byte) (io.Reader, error) {
	d.in.Reset(body)
	switch codec {
	case codecGzip:
		if d.gzip == nil {
			d.gzip = new(gzip.Reader)
		}
		return d.gzip, d.gzip.Reset(&d.in)
	case codecSnappy:
		return d.openSnappy(body)
	case codecLZ4:
		if d.lz4 == nil {
			d.lz4 = lz4.NewReader(nil)
		}
		d.lz4.Reset(&d.in)
		return d.lz4, nil
	case codecZstd:
		return d.openZstd(body)
	}
	return nil, errRecords
}

func (d *decompressor) openZstd(body []byte) (io.Reader, error) {
	var h zstd.Header
	if err := h.Decode(body); err != nil {
		return nil, err
	}
	if h.WindowSize > zstdWindowKept {
		dec, err := newZstd(zstdWindowMax)
		if err != nil {
			return nil, err
		}
		return dec, dec.Reset(&d.in)
	}
	if d.zstd == nil {
		var err error
		if d.zstd, err = newZstd(zstdWindowKept); err != nil {
			return nil, err
		}
	}
	return d.zstd, d.zstd.Reset(&d.in)
}

// newZstd returns a decoder that has no goroutine and so needs no Close.
func newZstd(windowMax uint64) (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(windowMax))
}

// xerialMagic begins the frames of Java's snappy streams: a magic, a version and
// the least compatible version, then blocks behind their lengths.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const xerialHeader = 16

// openSnappy reads both forms there are: blocks in xerial's frame, which Java and
// Sarama write, and one bare block.
func (d *decompressor) openSnappy(body []byte) (io.Reader, error) {
	if len(body) >= xerialHeader && bytes.HasPrefix(body, xerialMagic) {
		d.xerial = body[xerialHeader:]
		d.in.Reset(nil)
		return (*xerialReader)(d), nil
	}
	if err := d.snappyBlock(body); err != nil {
		return nil, err
	}
	d.in.Reset(d.block)
	return &d.in, nil
}

func (d *decompressor) snappyBlock(b []byte) error {
	n, err := snappy.DecodedLen(b)
	if err != nil {
		return err
	}
	if n > snappyRatioMax*len(b) {
		return errSnappy
	}
	if cap(d.block) < n {
		d.block = make([]byte, n)
	}
	block, err := snappy.Decode(d.block[:n], b)
	if err != nil {
		return err
	}
	d.block = block
	return nil
}

// xerialReader reads the blocks of xerial's frame.
type xerialReader decompressor

func (x *xerialReader) Read(p []byte) (int, error) {
	d := (*decompressor)(x)
	for d.in.Len() == 0 {
		if len(d.xerial) == 0 {
			return 0, io.EOF
		}
		// Streams that were put one behind the other have a header each.
		if len(d.xerial) >= xerialHeader && bytes.HasPrefix(d.xerial, xerialMagic) {
			d.xerial = d.xerial[xerialHeader:]
			continue
		}
		if len(d.xerial) < 4 {
			return 0, errSnappy
		}
		n := binary.BigEndian.Uint32(d.xerial)
		rest := d.xerial[4:]
		if uint64(n) > uint64(len(rest)) {
			return 0, errSnappy
		}
		if err := d.snappyBlock(rest[:n]); err != nil {
			return 0, err
		}
		d.xerial = rest[n:]
		d.in.Reset(d.block)
	}
	return d.in.Read(p)
}
