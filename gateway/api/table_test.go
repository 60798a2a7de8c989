package api

import (
	"reflect"
	"strings"
	"testing"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// kafka44 is what Apache Kafka 4.4.0 advertises for the APIs of this package.
var kafka44 = map[int16][2]int16{
	8: {2, 10}, 9: {1, 10}, 10: {0, 6}, 11: {0, 9}, 12: {0, 4}, 13: {0, 5}, 14: {0, 5},
	15: {0, 6}, 16: {0, 5}, 18: {0, 5}, 42: {0, 3}, 47: {0, 0},
}

func TestS0_20_ApiVersionsIsTheTable(t *testing.T) {
	s := newServer()
	for v := int16(0); v <= 5; v++ {
		resp := s.ask(t, v, &kmsg.ApiVersionsRequest{ClientSoftwareName: "x", ClientSoftwareVersion: "1", NodeID: -1}).(*kmsg.ApiVersionsResponse)
		got := make(map[int16][2]int16)
		for _, k := range resp.ApiKeys {
			got[k.ApiKey] = [2]int16{k.MinVersion, k.MaxVersion}
		}
		if !reflect.DeepEqual(got, kafka44) || resp.ErrorCode != 0 {
			t.Errorf("v%d: code %d, keys %v, want %v", v, resp.ErrorCode, got, kafka44)
		}
	}
	if len(s.table.Entries()) != len(kafka44) {
		t.Errorf("the table has %d keys, want %d", len(s.table.Entries()), len(kafka44))
	}
}

// Every version that is advertised is answered, whether the request says nothing
// or all that it can.
func TestS0_20_EveryVersionIsAnswered(t *testing.T) {
	for _, e := range newServer().table.Entries() {
		for v := e.Min; v <= e.Max; v++ {
			s := newServer()
			req := kmsg.RequestForKey(e.Key)
			req.SetVersion(v)
			reflect.ValueOf(req).MethodByName("Default").Call(nil)
			s.ask(t, v, req)
			s.ask(t, v, filled(e.Key))
		}
	}
}

// B100: every error goes out in the layout of every version, be it decided here or
// by the coordinator.
func TestB100_ErrorsInEveryVersion(t *testing.T) {
	codes := []group.Code{-1, 14, 15, 16, 22, 23, 24, 25, 27, 68, 69, 79, 81, 82, 86, 88, 100}
	for _, e := range newServer().table.Entries() {
		for v := e.Min; v <= e.Max; v++ {
			s := newServer()
			for _, code := range codes {
				s.groups.reply = replies(code)
				s.groups.list[1].code = code
				s.ask(t, v, filled(e.Key))
			}
			s = newServer()
			s.Auth = denyAll{}
			s.ask(t, v, filled(e.Key))
		}
	}
}

// What the codes of a coordinator and of the authorizer look like in each version.
func TestB100_WhereErrorsStand(t *testing.T) {
	for _, e := range newServer().table.Entries() {
		for v := e.Min; v <= e.Max; v++ {
			if e.Key == 10 || e.Key == 18 {
				continue // they ask no group; their tests are in their files
			}
			s := newServer()
			s.groups.reply = replies(group.NotCoordinator)
			for i := range s.groups.list {
				s.groups.list[i].code = group.CoordinatorNotAvailable
			}
			want := []int16{16}
			if e.Key == 16 {
				want = []int16{15}
			}
			if got := errorCodes(s.ask(t, v, filled(e.Key))); !reflect.DeepEqual(got, want) {
				t.Errorf("key %d v%d: NOT_COORDINATOR is answered as %v, want %v", e.Key, v, got, want)
			}
			if e.Key == 16 {
				continue // who may not describe the cluster sees less, without an error
			}
			s.Auth = denyAll{}
			if got := errorCodes(s.ask(t, v, filled(e.Key))); !reflect.DeepEqual(got, []int16{30}) {
				t.Errorf("key %d v%d: an unauthorized client is answered %v, want 30", e.Key, v, got)
			}
		}
	}
}

// errorCodes returns the different error codes of a response, where any is.
func errorCodes(resp kmsg.Response) []int16 {
	seen := map[int16]bool{}
	var codes []int16
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).Name != "ErrorCode" {
					walk(v.Field(i))
				} else if c := int16(v.Field(i).Int()); c != 0 && !seen[c] {
					seen[c] = true
					codes = append(codes, c)
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		}
	}
	walk(reflect.ValueOf(resp))
	return codes
}

// S0.3 and B105: what a group id may be is decided by the API, and it reaches the
// coordinator byte for byte.
func TestS0_3_B105_GroupIDs(t *testing.T) {
	emptyIsLegal := map[int16]bool{8: true, 9: true, 15: true, 42: true}
	ids := []string{"", "a/b", "..", ":", " ", "\xff\xfe", "группа", "a\x00b", strings.Repeat("x", 32700)}
	for _, key := range []int16{8, 9, 11, 12, 13, 14, 15, 42, 47} {
		e := newServer().table.entry(key)
		for v := e.Min; v <= e.Max; v++ {
			for _, id := range ids {
				s := newServer()
				req := filled(key)
				setGroup(req, id)
				resp := s.ask(t, v, req)
				if id == "" && !emptyIsLegal[key] {
					if got := errorCodes(resp); len(s.groups.asked) != 0 || !reflect.DeepEqual(got, []int16{24}) {
						t.Errorf("key %d v%d: the empty group id is answered %v, want 24", key, v, got)
					}
				} else if len(s.groups.asked) == 0 || s.groups.asked[0].id != id {
					t.Errorf("key %d v%d: group %.20q did not reach the coordinator: %v", key, v, id, errorCodes(resp))
				}
			}
		}
	}
}

// setGroup names the one group that a filled request is about.
func setGroup(req kmsg.Request, id string) {
	switch r := req.(type) {
	case *kmsg.OffsetFetchRequest:
		r.Group, r.Groups[0].Group = id, id
	case *kmsg.DescribeGroupsRequest:
		r.Groups = []string{id}
	case *kmsg.DeleteGroupsRequest:
		r.Groups = []string{id}
	default:
		reflect.ValueOf(req).Elem().FieldByName("Group").SetString(id)
	}
}

func TestTableRefusesBadEntries(t *testing.T) {
	handle := func(*Call) {}
	for name, entries := range map[string][]Entry{
		"twice":      {{Key: 3, Handle: handle}, {Key: 3, Handle: handle}},
		"inverted":   {{Key: 3, Min: 2, Max: 1, Handle: handle}},
		"no handler": {{Key: 3}},
		"negative":   {{Key: -3, Handle: handle}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the table takes it", name)
				}
			}()
			NewTable(NewClusterView(testCluster()), entries...)
		}()
	}
}

func TestTableHasTheKeys(t *testing.T) {
	table := newServer().table
	for _, key := range []int16{-1, 0, 17, 48, 32767} {
		if table.entry(key) != nil {
			t.Errorf("key %d is found", key)
		}
	}
	for key := range kafka44 {
		if e := table.entry(key); e == nil || e.Key != key {
			t.Errorf("key %d is not found", key)
		}
	}
}
