package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rollcall-mq/rollcall/store"
	"github.com/rollcall-mq/rollcall/store/named"
)

// put registers a snapshot and returns the answer.
func put(t *testing.T, h http.Handler, id, body string) (code int, result string, s ProducerSnapshot) {
	t.Helper()
	var answer struct {
		Result string `json:"result"`
		ProducerSnapshot
	}
	code = request(t, h, "PUT", "/v1/producers/"+id, body, &answer)
	return code, answer.Result, answer.ProducerSnapshot
}

const someOffsets = `{"ttl_ms": 60000, "offsets": [{"topic": "t", "partition": 1, "offset": 42}, {"topic": "a", "partition": 0, "offset": 0}]}`

// S2.1, S2.5, S2.11: the first registration is the one that counts; GET and DELETE, by
// version too.
func TestProducerLife(t *testing.T) {
	producers, _ := tables(t)
	h := New(Config{Producers: producers, ProducerRetention: time.Hour})
	code, result, first := put(t, h, "job-1", someOffsets)
	if code != 201 || result != ResultCreated || first.Producer != "job-1" || len(first.Offsets) != 2 || first.Offsets[0].Topic != "a" {
		t.Errorf("first: %d %s %+v", code, result, first)
	}
	code, result, second := put(t, h, "job-1", `{"offsets": []}`)
	if code != 200 || result != ResultAlreadyExists || !reflect.DeepEqual(second, first) {
		t.Errorf("second: %d %s %+v", code, result, second)
	}
	var got ProducerSnapshot
	if code := request(t, h, "GET", "/v1/producers/job-1", "", &got); code != 200 || !reflect.DeepEqual(got, first) {
		t.Errorf("get: %d %+v", code, got)
	}
	remove := func(match string) int {
		r := httptest.NewRequest(http.MethodDelete, "/v1/producers/job-1", nil)
		if match != "" {
			r.Header.Set("If-Match", match)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for _, test := range []struct {
		match string
		code  int
	}{{"999", 412}, {`"999"`, 412}, {"x", 422}, {etag(first.Version), 204}, {etag(first.Version), 204}, {"", 204}} {
		if got := remove(test.match); got != test.code {
			t.Errorf("delete of %s: %d, want %d", test.match, got, test.code)
		}
	}
	if code := request(t, h, "GET", "/v1/producers/job-1", "", nil); code != 404 {
		t.Errorf("deleted: %d", code)
	}
	if _, result, third := put(t, h, "job-1", `{"offsets": []}`); result != ResultCreated || third.Version <= first.Version {
		t.Errorf("again: %s %+v", result, third)
	}
}

// S2.9, S2.3, S2.12: what is refused, and what is not.
func TestProducerChecks(t *testing.T) {
	producers, _ := tables(t)
	h := New(Config{Producers: producers, ProducerRetention: time.Hour})
	for _, test := range []struct{ id, detail string }{
		{"%2E", "'.' is not allowed"},
		{"%2E%2E", "'..' is not allowed"},
		{strings.Repeat("a", 201), "longer than 200"},
		{"a.b", "contains one or more characters"},
		{"a%20b", "contains one or more characters"},
		{"a@b", "contains one or more characters"},
		{"a:b", "contains one or more characters"},
		{"a%2Fb", "contains one or more characters"},
		{"%C3%A9", "contains one or more characters"},
		{strings.Repeat("a", 200), ""},
		{"__A-z_09", ""},
	} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			content := ""
			if method == "PUT" {
				content = `{"offsets": []}`
			}
			var p struct{ Detail string }
			r := httptest.NewRequest(method, "/v1/producers/x", strings.NewReader(content))
			r.URL.RawPath = "/v1/producers/" + test.id
			r.URL.Path = "/v1/producers/" + unescape(t, test.id)
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			_ = json.Unmarshal(w.Body.Bytes(), &p) // a success may have no body
			if refused := strings.Contains(p.Detail, "INVALID_PRODUCER_ID"); refused != (test.detail != "") || !strings.Contains(p.Detail, test.detail) {
				t.Errorf("%s %s: %d %q, want %q", method, test.id, w.Code, p.Detail, test.detail)
			}
		}
	}
	for i, test := range []struct {
		body string
		code int
	}{
		{`{"offsets": [], "ttl_ms": 1}`, 201},
		{`{"offsets": [], "ttl_ms": 2592000000}`, 201},
		{`{"offsets": [], "ttl_ms": 2592000001}`, 422},
		{`{"offsets": [], "ttl_ms": 0}`, 422},
		{`{"offsets": [], "ttl_ms": -1}`, 422},
		{`{"offsets": [], "ttl_ms": 9223372036854775807}`, 422},
		{`{}`, 422},
		{`{"offsets": [{"topic": "t", "partition": 0}]}`, 422},
		{`{"offsets": [{"topic": "t", "partition": 0, "offset": -1}]}`, 422},
		{`{"offsets": [{"topic": "", "partition": 0, "offset": 1}]}`, 422},
		{`{"offsets": [{"topic": "t", "partition": 0, "offset": 1}, {"topic": "t", "partition": 0, "offset": 2}]}`, 422},
		{`{"offsets": [{"topic": "t", "partition": 10, "offset": 1}, {"topic": "t", "partition": 0, "offset": 2}]}`, 201},
	} {
		if code := request(t, h, "PUT", fmt.Sprint("/v1/producers/c", i), test.body, nil); code != test.code {
			t.Errorf("%s: %d, want %d", test.body, code, test.code)
		}
	}
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, `,{"topic":"t%d","partition":%d,"offset":%d}`, i/10, i%10, i)
	}
	if code, _, s := put(t, h, "many", `{"offsets": [`+many.String()[1:]+`]}`); code != 201 || len(s.Offsets) != 1000 {
		t.Errorf("1,000 offsets: %d, %d", code, len(s.Offsets))
	}
}

func unescape(t *testing.T, s string) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://h/"+s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.URL.Path[1:]
}

// S2.11, S2.16: an expired snapshot is gone and its id free, and who waits gets the
// one that comes. In virtual time.
func TestProducerWaitAndExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open(store.Options{Dir: "data", FS: vfs.NewMem(), Shards: 1, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		producers, err := named.Open(s.Groups(), named.ProducerOffsets)
		if err != nil {
			t.Fatal(err)
		}
		h := New(Config{Producers: producers, ProducerRetention: time.Hour})
		waited := make(chan int)
		for range 3 {
			go func() { waited <- request(t, h, "GET", "/v1/producers/late?wait_ms=30000", "", nil) }()
		}
		time.Sleep(20 * time.Second)
		put(t, h, "late", someOffsets)
		for range 3 {
			if code := <-waited; code != 200 {
				t.Errorf("waited for nothing: %d", code)
			}
		}
		began := time.Now()
		if code := request(t, h, "GET", "/v1/producers/never?wait_ms=5000", "", nil); code != 404 || time.Since(began) != 5*time.Second {
			t.Errorf("%d after %v", code, time.Since(began))
		}
		time.Sleep(time.Minute)
		if code := request(t, h, "GET", "/v1/producers/late", "", nil); code != 404 {
			t.Errorf("expired: %d", code)
		}
		if code, _, _ := put(t, h, "late", someOffsets); code != 201 {
			t.Errorf("after it expired: %d", code)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestProducerPages(t *testing.T) {
	producers, _ := tables(t)
	h := New(Config{Producers: producers, ProducerRetention: time.Hour})
	for i := range 7 {
		put(t, h, fmt.Sprint("p", i), `{"offsets": []}`)
	}
	for _, limit := range []int{1, 3, 7, 8} {
		seen, after := 0, ""
		for more := true; more; more = after != "" {
			var page struct {
				Producers []ProducerSnapshot
				Next      string
			}
			request(t, h, "GET", fmt.Sprintf("/v1/producers?limit=%d&after=%s", limit, after), "", &page)
			for _, p := range page.Producers {
				if p.Producer != fmt.Sprint("p", seen) {
					t.Errorf("limit %d: %s in place %d", limit, p.Producer, seen)
				}
				seen++
			}
			after = page.Next
		}
		if seen != 7 {
			t.Errorf("limit %d: %d producers", limit, seen)
		}
	}
}
