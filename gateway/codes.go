package gateway

import (
	"reflect"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// codeField is the way to the error codes in the responses of one API: the fields to
// go through, slices among them, down to an ErrorCode. Responses that have a code of
// their own end there.
type codeField [][]int

// findCode finds the error codes in the responses of an API, the outermost first.
func findCode(key int16) codeField {
	var found codeField
	var search func(t reflect.Type, path []int)
	search = func(t reflect.Type, path []int) {
		for i := range t.NumField() {
			f := t.Field(i)
			at := append(path[:len(path):len(path)], i)
			if f.Name == "ErrorCode" && f.Type.Kind() == reflect.Int16 {
				found = append(found, at)
			}
		}
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct {
				search(f.Type.Elem(), append(path[:len(path):len(path)], i))
			}
		}
	}
	if resp := kmsg.ResponseForKey(key); resp != nil {
		search(reflect.TypeOf(resp).Elem(), nil)
	}
	return found
}

// codeOf is the first error code in a response, 0 if there is none.
func (s *Server) codeOf(resp kmsg.Response) int16 {
	if resp == nil {
		return 0
	}
	v := reflect.ValueOf(resp).Elem()
	for _, path := range s.codes[resp.Key()] {
		if code := firstCode(v, path); code != 0 {
			return code
		}
	}
	return 0
}

func firstCode(v reflect.Value, path []int) int16 {
	f := v.Field(path[0])
	if len(path) == 1 {
		return int16(f.Int())
	}
	for i := range f.Len() {
		if code := firstCode(f.Index(i), path[1:]); code != 0 {
			return code
		}
	}
	return 0
}
