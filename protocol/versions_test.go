package protocol

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// everything returns a table of every API and version that has a layout and that
// kmsg knows.
func everything(tb testing.TB) (*Table, map[int16]*schema) {
	tb.Helper()
	schemas, err := parseSchemas(requestsText)
	if err != nil {
		tb.Fatal(err)
	}
	var ranges []Range
	for key, s := range schemas {
		if req := kmsg.RequestForKey(key); req != nil {
			ranges = append(ranges, Range{key, s.valid.min, min(s.valid.max, req.MaxVersion())})
		}
	}
	table, err := NewTable(ranges)
	if err != nil {
		tb.Fatal(err)
	}
	return table, schemas
}

// eachVersion calls f for every API and version of the table.
func eachVersion(t *testing.T, table *Table, f func(t *testing.T, key, version int16)) {
	t.Helper()
	for _, r := range table.Ranges() {
		for v := r.Min; v <= r.Max; v++ {
			t.Run(fmt.Sprintf("%s/%d", kmsg.NameForKey(r.Key), v), func(t *testing.T) { f(t, r.Key, v) })
		}
	}
}

// fill sets every field below v to something random; slices get up to n elements.
func fill(r *rand.Rand, v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.Pointer:
		if r.IntN(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Version" && v.Field(i).CanSet() {
				fill(r, v.Field(i), n)
			}
		}
	case reflect.Slice:
		count := r.IntN(n + 1)
		v.Set(reflect.MakeSlice(v.Type(), count, count))
		for i := range count {
			fill(r, v.Index(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i), n)
		}
	case reflect.String:
		v.SetString(strings.Repeat("s", r.IntN(20)))
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64() >> (64 - v.Type().Bits()))
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(r.Int64() >> (64 - v.Type().Bits()))
	case reflect.Float64:
		v.SetFloat(r.Float64())
	}
}

// Whatever kmsg encodes is accepted to its last byte, every cut of it is refused,
// and decoding gives it back.
func TestCheckAgreesWithKmsg(t *testing.T) {
	table, _ := everything(t)
	eachVersion(t, table, func(t *testing.T, key, version int16) {
		const seed = 20
		r := rand.New(rand.NewPCG(seed, uint64(key)<<16|uint64(version)))
		for range 50 {
			req := kmsg.RequestForKey(key)
			req.SetVersion(version)
			fill(r, reflect.ValueOf(req).Elem(), 3)
			body := req.AppendTo(nil)
			h := &Header{Key: key, Version: version}
			h.layout, _ = table.lookup(key, version)
			rest, _, bad := check(body, &h.layout.body, h.layout.flexible)
			if bad != "" || len(rest) != 0 {
				t.Fatalf("seed %d: refused at %q with %d of %d bytes left: %x", seed, bad, len(rest), len(body), body)
			}
			if h.layout.flexible != req.IsFlexible() {
				t.Fatalf("flexible is %v", h.layout.flexible)
			}
			for cut := range body {
				if _, err := table.Check(h, body[:cut]); err == nil {
					t.Fatalf("seed %d: accepted %d of %d bytes: %x", seed, cut, len(body), body)
				}
			}
			decoded, err := table.Decode(h, append(body, "rest"...))
			if err != nil {
				t.Fatal(err)
			}
			if again := decoded.AppendTo(nil); string(again) != string(body) {
				t.Fatalf("seed %d: decoded to something else:\n%x\n%x", seed, body, again)
			}
		}
	})
}

// The estimate of a decoded struct is never below what kmsg's struct takes.
func TestMemoryOfStructs(t *testing.T) {
	table, schemas := everything(t)
	var compare func(t *testing.T, path string, fields []*schemaField, typ reflect.Type)
	compare = func(t *testing.T, path string, fields []*schemaField, typ reflect.Type) {
		if got := structMemory(fields); got < int(typ.Size()) || got > 2*int(typ.Size())+32 {
			t.Errorf("%s: estimated %d bytes, kmsg takes %d", path, got, typ.Size())
		}
		// Both have the same structs, in the same order but for a few.
		var structs []*schemaField
		for _, f := range fields {
			if f.typ == "struct" {
				structs = append(structs, f)
			}
		}
		for i := range typ.NumField() {
			elem := typ.Field(i).Type
			for elem.Kind() == reflect.Slice || elem.Kind() == reflect.Pointer {
				elem = elem.Elem()
			}
			if elem.Kind() != reflect.Struct || typ.Field(i).Name == "UnknownTags" {
				continue
			}
			if len(structs) == 0 {
				t.Fatalf("%s: kmsg has a struct %s more", path, typ.Field(i).Name)
			}
			n := slices.IndexFunc(structs, func(f *schemaField) bool {
				same, ok := typ.FieldByName(f.name)
				return !ok || same.Name == typ.Field(i).Name // kmsg renames a few
			})
			compare(t, path+"."+structs[n].name, structs[n].fields, elem)
			structs = slices.Delete(structs, n, n+1)
		}
		if len(structs) > 0 {
			t.Errorf("%s: kmsg has no struct %s", path, structs[0].name)
		}
	}
	for _, r := range table.Ranges() {
		s := schemas[r.Key]
		typ := reflect.TypeOf(kmsg.RequestForKey(r.Key)).Elem()
		// The request itself has a Version; its rounding covers it.
		compare(t, s.name, s.fields, typ)
	}
}
