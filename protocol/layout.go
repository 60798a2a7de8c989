package protocol

import (
	"fmt"
)

// kind is how a field is read.
type kind uint8

const (
	kindFixed  kind = iota // size bytes, any value; neighbours are merged into one
	kindString             // int16 length, or uvarint of length+1
	kindBytes              // int32 length, or uvarint of length+1
	kindArray
	kindStruct
)

// layout is the sequence of fields of a request or struct in one version.
type layout struct {
	fields []fieldLayout
	// tagged are the known tagged fields; none in an inflexible version.
	tagged []fieldLayout
	// memory is what one decoded struct takes, in bytes, without what its fields
	// point to.
	memory int
}

type fieldLayout struct {
	kind     kind
	nullable bool
	tag      uint32
	size     int          // of kindFixed: bytes on the wire
	memory   int          // of kindArray: bytes of one decoded element
	minimum  int          // of kindArray: the least bytes of one element on the wire
	elem     *fieldLayout // of kindArray
	inner    *layout      // of kindStruct
	name     string
}

var fixedSizes = map[string]int{
	"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "uuid": 16,
}

// compile makes the layout of one version of the fields.
func compile(fields []*schemaField, version int16, flexible bool) (layout, error) {
	l := layout{memory: structMemory(fields)}
	for _, f := range fields {
		if !f.versions.has(version) {
			continue
		}
		c, err := compileField(f, version, flexible)
		if err != nil {
			return l, err
		}
		if f.tagged.has(version) {
			c.tag = f.tag
			l.tagged = append(l.tagged, c)
			continue
		}
		if last := len(l.fields) - 1; c.kind == kindFixed && last >= 0 && l.fields[last].kind == kindFixed {
			l.fields[last].size += c.size
			continue
		}
		l.fields = append(l.fields, c)
	}
	return l, nil
}

func compileField(f *schemaField, version int16, flexible bool) (fieldLayout, error) {
	c, err := compileValue(f, version, flexible)
	if err != nil {
		return c, err
	}
	if f.array {
		elem := c
		c = fieldLayout{kind: kindArray, name: f.name, elem: &elem, memory: elementMemory(f), minimum: minimumWire(&elem, flexible)}
	}
	c.nullable = f.nullable.has(version)
	return c, nil
}

// compileValue makes the layout of a field, or of one element if it is an array.
func compileValue(f *schemaField, version int16, flexible bool) (fieldLayout, error) {
	c := fieldLayout{name: f.name}
	size, fixed := fixedSizes[f.typ]
	switch {
	case fixed:
		c.kind, c.size = kindFixed, size
	case f.typ == "string":
		c.kind = kindString
	case f.typ == "bytes", f.typ == "records":
		c.kind = kindBytes
	case f.typ == "struct":
		inner, err := compile(f.fields, version, flexible)
		c.kind, c.inner = kindStruct, &inner
		return c, err
	default:
		return c, fmt.Errorf("field %s: unknown type %q", f.name, f.typ)
	}
	return c, nil
}

// minimumWire is the least number of bytes that a value takes.
func minimumWire(f *fieldLayout, flexible bool) int {
	length := func(inflexible int) int {
		if flexible {
			return 1
		}
		return inflexible
	}
	switch f.kind {
	case kindFixed:
		return f.size
	case kindString:
		return length(2)
	case kindBytes, kindArray:
		return length(4)
	}
	if f.nullable {
		return 1
	}
	n := 0
	for i := range f.inner.fields {
		n += minimumWire(&f.inner.fields[i], flexible)
	}
	if flexible {
		n++
	}
	return n
}

// structMemory is at least the size of kmsg's struct for the fields: a struct has
// the fields of all versions, the unknown tags, and in a few places 8 bytes more (the
// version, or a field that Kafka removed). TestMemoryOfStructs compares.
func structMemory(fields []*schemaField) int {
	size, align := 0, 1
	add := func(bytes, alignment int) {
		size = (size+alignment-1)/alignment*alignment + bytes
		align = max(align, alignment)
	}
	for _, f := range fields {
		switch {
		case f.array:
			add(24, 8)
		case f.typ == "struct":
			// A nullable struct is a pointer; its target is counted here, too.
			add(structMemory(f.fields)+8, 8)
		default:
			add(valueMemory(f))
		}
	}
	add(16, 8)
	return (size + align - 1) / align * align
}

func valueMemory(f *schemaField) (bytes, alignment int) {
	switch f.typ {
	case "string":
		if f.nullable != noVersions {
			return 8, 8 // the string it points to is counted when it comes
		}
		return 16, 8
	case "bytes", "records":
		return 24, 8
	case "uuid":
		return 16, 1
	}
	return fixedSizes[f.typ], fixedSizes[f.typ]
}

func elementMemory(f *schemaField) int {
	if f.typ == "struct" {
		return structMemory(f.fields)
	}
	bytes, _ := valueMemory(f)
	return bytes
}
