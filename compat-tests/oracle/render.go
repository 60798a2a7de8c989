package oracle

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// decode reads an answer strictly: it must be what its fields encode to, so that a
// null that the protocol does not allow is seen.
func decode(s *sent, frame []byte) (kmsg.Response, error) {
	resp := s.req.ResponseKind()
	body := frame[4:]
	if resp.IsFlexible() && s.req.Key() != 18 {
		if len(body) == 0 || body[0] != 0 {
			return nil, fmt.Errorf("tags in the header: %x", body)
		}
		body = body[1:]
	}
	if err := resp.ReadFrom(body); err != nil {
		if again := s.req.ResponseKind(); s.req.Key() == 18 {
			again.SetVersion(0) // a version that is not known is answered in version 0
			if err := again.ReadFrom(body); err == nil {
				return again, nil
			}
		}
		return nil, fmt.Errorf("%w: %x", err, body)
	}
	if again := resp.AppendTo(nil); !bytes.Equal(again, body) {
		return nil, fmt.Errorf("%x, which should be %x", body, again)
	}
	return resp, nil
}

// unordered are the lists whose order is the broker's own; they are shown sorted.
// differences.txt has the reasons. "all" stands for a request for everything.
var unordered = map[string]string{
	"JoinGroup.Members":             "members-in-join-order",
	"DescribeGroups.Groups":         "describe-in-order",
	"DescribeGroups.Groups.Members": "members-in-join-order",
	"DeleteGroups.Groups":           "delete-in-order",
	"ListGroups.Groups":             "list-sorted",
	"OffsetFetch.all.Topics":        "fetch-all-sorted",
	"OffsetFetch.all.Groups.Topics": "fetch-all-sorted",

	"OffsetFetch.all.Topics.Partitions":        "fetch-all-sorted",
	"OffsetFetch.all.Groups.Topics.Partitions": "fetch-all-sorted",
}

// show writes an answer down: fields that are zero are left out, but for the code.
func (r *run) show(s *sent, resp kmsg.Response) string {
	path := s.api
	if s.all {
		path += ".all"
	}
	return s.api + r.fields(path, "    ", reflect.ValueOf(resp).Elem())
}

// beside are the parts of an answer of ApiVersions that are not about groups, as
// answers of their own.
func beside(resp *kmsg.ApiVersionsResponse) []string {
	others := 0
	for _, k := range resp.ApiKeys {
		if !GroupKey(k.ApiKey) {
			others++
		}
	}
	features := "none"
	if len(resp.SupportedFeatures)+len(resp.FinalizedFeatures) > 0 {
		var names []string
		for _, f := range resp.SupportedFeatures {
			names = append(names, f.Name)
		}
		slices.Sort(names)
		features = strings.Join(names, " ")
	}
	resp.SupportedFeatures, resp.FinalizedFeatures, resp.FinalizedFeaturesEpoch = nil, nil, -1
	return []string{fmt.Sprintf("other keys: %d", others), "features: " + features}
}

// fields shows a struct: plain fields in a line, lists of structs below.
func (r *run) fields(path, indent string, v reflect.Value) string {
	var line, below strings.Builder
	for i := range v.NumField() {
		f, ft := v.Field(i), v.Type().Field(i)
		switch {
		case ft.Name == "Version" || !ft.IsExported():
		case ft.Name == "UnknownTags":
			if tags := f.Addr().Interface().(*kmsg.Tags); tags.Len() > 0 {
				line.WriteString(" UnknownTags")
			}
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
			for _, item := range r.items(path+"."+ft.Name, f) {
				fmt.Fprintf(&below, "\n%s%s%s", indent, ft.Name, r.fields(path+"."+ft.Name, indent+"    ", item))
			}
		default:
			line.WriteString(r.field(v, ft.Name, f))
		}
	}
	return line.String() + below.String()
}

// items are the elements of a list that are shown, in the order in which they are.
func (r *run) items(path string, f reflect.Value) []reflect.Value {
	var all []reflect.Value
	for i := range f.Len() {
		item := f.Index(i)
		switch x := item.Interface().(type) {
		case kmsg.ListGroupsResponseGroup:
			if !strings.HasPrefix(x.Group, r.tag) {
				continue // of another scenario
			}
		case kmsg.ApiVersionsResponseApiKey:
			if !GroupKey(x.ApiKey) {
				continue // of which this is not about
			}
		}
		all = append(all, item)
	}
	if id, ok := unordered[path]; ok {
		if len(all) > 1 {
			r.Sorted[id] = true
		}
		slices.SortStableFunc(all, func(a, b reflect.Value) int {
			return cmp.Compare(r.fields(path, "", a), r.fields(path, "", b))
		})
	}
	return all
}

// GroupKey tells whether an API is about groups, or ApiVersions.
func GroupKey(key int16) bool {
	return key >= 8 && key <= 16 || key == 18 || key == 42 || key == 47
}

// field shows one plain field.
func (r *run) field(v reflect.Value, name string, f reflect.Value) string {
	if f.Kind() == reflect.Pointer {
		if f.IsNil() {
			return ""
		}
		return " " + name + "=" + r.value(f.Elem())
	}
	if name == "ErrorCode" {
		code := int16(f.Int())
		if code == 0 {
			return " ErrorCode=NONE"
		}
		return " ErrorCode=" + kerr.ErrorForCode(code).(*kerr.Error).Message
	}
	if name == "Host" || name == "Port" || name == "NodeID" {
		if v.FieldByName("Port").Int() > 0 {
			return " " + name + "=(address)"
		}
	}
	if name == "ClientHost" && f.Len() > 0 {
		return " ClientHost=(address)"
	}
	if f.Kind() == reflect.Slice && f.Len() == 0 {
		return "" // decode has seen that it is not null
	}
	if f.IsZero() && name != "Partition" && name != "Offset" && name != "MinVersion" {
		return ""
	}
	return " " + name + "=" + r.value(f)
}

// value shows a value, ids by their names.
func (r *run) value(f reflect.Value) string {
	switch f.Kind() {
	case reflect.String:
		return r.word(f.String())
	case reflect.Slice:
		if f.Type().Elem().Kind() == reflect.Uint8 {
			return r.word(string(f.Bytes()))
		}
	case reflect.Array:
		id := f.Interface().([16]byte)
		for name, known := range r.topics {
			if known == id {
				return "id(" + name + ")"
			}
		}
		return "id(" + hex.EncodeToString(id[:]) + ")"
	}
	return fmt.Sprint(f.Interface())
}

// word shows text or bytes.
func (r *run) word(s string) string {
	if name, ok := r.names[s]; ok {
		return name
	}
	if word, ok := r.known[s]; ok {
		return word
	}
	if client, ok := nameless(s); ok {
		return "id(" + client + ")"
	}
	return strconv.Quote(strings.ReplaceAll(s, r.tag, ""))
}

// nameless tells whether s is a generated id that no JoinGroup has answered yet, and
// what it was made from.
func nameless(s string) (client string, ok bool) {
	const uuid = len("-01234567-0123-0123-0123-0123456789ab")
	if len(s) < uuid || s[len(s)-uuid] != '-' || s[len(s)-13] != '-' || s[len(s)-18] != '-' {
		return "", false
	}
	return s[:len(s)-uuid], true
}

// symbol is the name of an id.
func (r *run) symbol(id string) string {
	if name, ok := r.names[id]; ok {
		return name
	}
	return id
}
