package protocol

import "encoding/binary"

// What the decoded form of a value takes besides the struct it is in: rounded up,
// so that the sum is an upper bound of what kmsg allocates.
const (
	stringMemory   = 16  // the least block of a non-empty string, and its rounding
	pointerMemory  = 16  // the string header of a nullable string
	firstTagMemory = 400 // a map with its first group of unknown tags
	tagMemory      = 80  // each further one
)

// checker walks the bytes of one body along a layout.
type checker struct {
	src      []byte
	flexible bool
	memory   int
	bad      string // the field at which the walk ended
}

// check walks a body. rest is what follows it, memory what its decoded form will
// take. bad names the field that Kafka would refuse, "" if there is none.
func check(body []byte, l *layout, flexible bool) (rest []byte, memory int, bad string) {
	c := checker{src: body, flexible: flexible, memory: l.memory}
	if !c.layout(l) {
		return nil, c.memory, c.bad
	}
	return c.src, c.memory, ""
}

func (c *checker) layout(l *layout) bool {
	for i := range l.fields {
		if !c.field(&l.fields[i]) {
			return false
		}
	}
	return !c.flexible || c.tags(l)
}

func (c *checker) field(f *fieldLayout) bool {
	ok := false
	switch f.kind {
	case kindFixed:
		ok = c.skip(f.size)
	case kindString:
		ok = c.str(f.nullable)
	case kindBytes:
		ok = c.bytes(f.nullable)
	case kindArray:
		ok = c.array(f)
	case kindStruct:
		ok = c.structure(f)
	}
	if !ok && c.bad == "" {
		c.bad = f.name
	}
	return ok
}

func (c *checker) skip(n int) bool {
	if n < 0 || n > len(c.src) {
		return false
	}
	c.src = c.src[n:]
	return true
}

// uvarint reads up to five bytes that make 32 bits.
func (c *checker) uvarint() (uint32, bool) {
	if len(c.src) > 0 && c.src[0] < 0x80 {
		v := c.src[0]
		c.src = c.src[1:]
		return uint32(v), true
	}
	v, n := binary.Uvarint(c.src[:min(len(c.src), 5)])
	if n <= 0 || v > 1<<32-1 {
		return 0, false
	}
	c.src = c.src[n:]
	return uint32(v), true
}

// compactLength reads length+1; null is -1.
func (c *checker) compactLength() (int, bool) {
	v, ok := c.uvarint()
	return int(v) - 1, ok
}

func (c *checker) int32Length() (int, bool) {
	if len(c.src) < 4 {
		return 0, false
	}
	n := int(int32(binary.BigEndian.Uint32(c.src)))
	c.src = c.src[4:]
	return n, true
}

func (c *checker) str(nullable bool) bool {
	var n int
	if c.flexible {
		var ok bool
		if n, ok = c.compactLength(); !ok {
			return false
		}
	} else {
		if len(c.src) < 2 {
			return false
		}
		n = int(int16(binary.BigEndian.Uint16(c.src)))
		c.src = c.src[2:]
	}
	if n < 0 {
		return nullable
	}
	if nullable {
		c.memory += pointerMemory
	}
	if n > 0 {
		c.memory += n + stringMemory
	}
	return n <= 1<<15-1 && c.skip(n)
}

func (c *checker) length() (int, bool) {
	if c.flexible {
		return c.compactLength()
	}
	return c.int32Length()
}

// bytes take no memory of their own: they stay in the frame.
func (c *checker) bytes(nullable bool) bool {
	n, ok := c.length()
	if ok && n < 0 {
		return nullable
	}
	return ok && c.skip(n)
}

func (c *checker) array(f *fieldLayout) bool {
	n, ok := c.length()
	if !ok || n < 0 {
		return ok && f.nullable
	}
	if n > len(c.src)/f.minimum {
		return false
	}
	c.memory += n * f.memory
	if f.elem.kind == kindFixed {
		return c.skip(n * f.elem.size)
	}
	for range n {
		if !c.field(f.elem) {
			return false
		}
	}
	return true
}

// structure reads a struct, with a byte in front that tells null if it may be.
func (c *checker) structure(f *fieldLayout) bool {
	if f.nullable {
		if len(c.src) == 0 {
			return false
		}
		null := int8(c.src[0]) < 0
		c.src = c.src[1:]
		if null {
			return true
		}
	}
	return c.layout(f.inner)
}

// tags reads the tagged fields at the end of a struct.
func (c *checker) tags(l *layout) bool {
	if len(c.src) > 0 && c.src[0] == 0 {
		c.src = c.src[1:]
		return true
	}
	count, ok := c.uvarint()
	unknown := 0
	for ; ok && count > 0; count-- {
		var tag, size uint32
		if tag, ok = c.uvarint(); !ok {
			break
		}
		if size, ok = c.uvarint(); !ok || int64(size) > int64(len(c.src)) {
			ok = false
			break
		}
		known := l.taggedField(tag)
		if known == nil {
			unknown++
			c.src = c.src[size:]
			continue
		}
		ok = c.taggedField(known, int(size))
	}
	if unknown > 0 {
		c.memory += firstTagMemory + (unknown-1)*tagMemory
	}
	if !ok && c.bad == "" {
		c.bad = "tagged fields"
	}
	return ok
}

func (l *layout) taggedField(tag uint32) *fieldLayout {
	for i := range l.tagged {
		if l.tagged[i].tag == tag {
			return &l.tagged[i]
		}
	}
	return nil
}

// taggedField reads a known tagged field, which must end where its size says.
func (c *checker) taggedField(f *fieldLayout, size int) bool {
	after := c.src[size:]
	c.src = c.src[:size:size]
	ok := c.field(f) && len(c.src) == 0
	c.src = after
	return ok
}
