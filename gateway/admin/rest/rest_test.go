package rest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/coordinator"
	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/rollcall-mq/rollcall/coordinator/shard"
	"github.com/rollcall-mq/rollcall/gateway/api"
	"github.com/rollcall-mq/rollcall/store"
	"github.com/rollcall-mq/rollcall/store/named"
)

// fakeGroups lists what it has, by shard; a shard of nil loads.
type fakeGroups struct {
	coordinator.Groups
	shards [][]group.ListReply
	// peak is the most groups that were handed out at once.
	peak int
}

func (f *fakeGroups) Shards() uint32 { return uint32(len(f.shards)) }

func (f *fakeGroups) EachIn(_ context.Context, n uint32, _ func() group.Event, done func(uint32, group.Code, []group.Reply)) {
	if f.shards[n] == nil {
		done(n, group.CoordinatorLoading, nil)
		return
	}
	f.peak = max(f.peak, len(f.shards[n]))
	replies := make([]group.Reply, len(f.shards[n]))
	for i := range replies {
		replies[i].Body = &f.shards[n][i]
	}
	done(n, group.None, replies)
}

// Submit answers that the group has members.
func (f *fakeGroups) Submit(_ context.Context, _ string, _ group.Event, sink shard.Sink) {
	sink.Reply(group.Reply{Code: group.NonEmptyGroup})
}

// fakeHistory is a history of which nothing is left.
type fakeHistory struct{}

func (fakeHistory) Changes(context.Context, string, func(uint64, *group.Record) error) error {
	return nil
}

func (fakeHistory) OffsetsAsOf(context.Context, string, group.Time) ([]group.FetchedTopic, error) {
	return nil, &coordinator.BeforeHistoryError{Begins: 1_800_000_000_000}
}

// manyGroups has n groups in each of the shards.
func manyGroups(shards, n int) *fakeGroups {
	f := &fakeGroups{shards: make([][]group.ListReply, shards)}
	for s := range f.shards {
		for i := range n {
			state := group.Empty
			if i%2 == 0 {
				state = group.Stable
			}
			f.shards[s] = append(f.shards[s], group.ListReply{GroupID: fmt.Sprintf("g%d-%03d", s, n-i), State: state, ProtocolType: "consumer", Members: i, Offsets: 2 * i})
		}
	}
	return f
}

// kafkaFunc is a Kafka.
type kafkaFunc func(kmsg.Request) (kmsg.Response, error)

func (f kafkaFunc) Do(_ context.Context, s api.Session, req kmsg.Request) (kmsg.Response, error) {
	if s.Host == "" || s.Principal == "" {
		return nil, errors.New("nobody asks")
	}
	return f(req)
}

// ask sends a request and decodes a JSON answer into body, if there is one.
func request(t *testing.T, h http.Handler, method, target, content string, body any) int {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(content))
	if content != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if body != nil {
		if err := json.Unmarshal(w.Body.Bytes(), body); err != nil {
			t.Fatalf("%s %s: %v in %s", method, target, err, w.Body)
		}
	}
	if kind := w.Header().Get("Content-Type"); w.Code >= 400 && kind != "application/problem+json" {
		t.Errorf("%s %s: %d as %q", method, target, w.Code, kind)
	}
	return w.Code
}

// TestGroupPages walks through pages of every size and finds each group once, in
// order.
func TestGroupPages(t *testing.T) {
	groups := manyGroups(7, 13)
	groups.shards[3] = []group.ListReply{}
	h := New(Config{Groups: groups})
	for _, limit := range []int{1, 2, 12, 13, 14, 78, 79, 1000} {
		var seen []string
		after := ""
		for pages := 0; ; pages++ {
			var page GroupPage
			if code := request(t, h, "GET", fmt.Sprintf("/v1/groups?limit=%d&after=%s", limit, after), "", &page); code != 200 {
				t.Fatal(code)
			}
			for _, g := range page.Groups {
				seen = append(seen, g.Group)
			}
			if after = page.Next; after == "" {
				break
			}
			if len(page.Groups) != limit || pages > 78 {
				t.Fatalf("limit %d: a page of %d, the %dth", limit, len(page.Groups), pages)
			}
		}
		if len(seen) != 6*13 || !slices.IsSorted(seen) || len(slices.Compact(seen)) != 6*13 {
			t.Errorf("limit %d: %d groups, sorted %v", limit, len(seen), slices.IsSorted(seen))
		}
	}
}

func TestGroupFilter(t *testing.T) {
	groups := manyGroups(2, 4)
	groups.shards[1][0].ProtocolType = "connect"
	h := New(Config{Groups: groups})
	for query, want := range map[string]int{
		"":                           8,
		"state=stable":               4,
		"state=Stable&state=EMPTY":   8,
		"state=Dead":                 0,
		"prefix=g1-":                 4,
		"prefix=g1-00":               4,
		"prefix=x":                   0,
		"protocol_type=connect":      1,
		"protocol_type=c":            0,
		"prefix=g1-&state=Empty":     2,
		"after=":                     8,
		"after=" + cursor(1, ""):     4,
		"after=" + cursor(9, "none"): 0,
	} {
		var page GroupPage
		if code := request(t, h, "GET", "/v1/groups?"+query, "", &page); code != 200 || len(page.Groups) != want {
			t.Errorf("%s: %d with %d groups, want %d", query, code, len(page.Groups), want)
		}
	}
	for _, query := range []string{"limit=0", "limit=10001", "limit=x", "after=%21", "after=" + url.QueryEscape("MQ")} {
		var p struct{ Detail string }
		if code := request(t, h, "GET", "/v1/groups?"+query, "", &p); code != 422 || p.Detail == "" {
			t.Errorf("%s: %d %q", query, code, p.Detail)
		}
	}
}

// TestGroupsOfALoadingShard sees that a list is never a part that looks whole: an
// error for a page, a connection that breaks off for a stream.
func TestGroupsOfALoadingShard(t *testing.T) {
	groups := manyGroups(3, 2)
	groups.shards[1] = nil
	server := httptest.NewServer(New(Config{Groups: groups}))
	defer server.Close()
	var p struct{ Detail string }
	if code := request(t, New(Config{Groups: groups}), "GET", "/v1/groups", "", &p); code != 503 || !strings.Contains(p.Detail, "COORDINATOR_LOAD_IN_PROGRESS") {
		t.Errorf("%d %q", code, p.Detail)
	}
	resp, err := http.Get(server.URL + "/v1/stream/groups")
	if err == nil {
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
	}
	if err == nil {
		t.Error("a part of the groups was streamed as if it were all")
	}
}

func TestGroupStream(t *testing.T) {
	groups := manyGroups(5, 40)
	server := httptest.NewServer(New(Config{Groups: groups}))
	defer server.Close()
	resp, err := http.Get(server.URL + "/v1/stream/groups?state=Stable")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	n := 0
	for ; lines.Scan(); n++ {
		var g GroupLine
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil || g.State != "Stable" {
			t.Fatalf("%v in %s", err, lines.Bytes())
		}
	}
	if n != 100 || groups.peak > 40 {
		t.Errorf("%d lines, %d groups at once", n, groups.peak)
	}
}

// TestKafkaErrors has the status and words of what Kafka refuses.
func TestKafkaErrors(t *testing.T) {
	for _, test := range []struct {
		err    *kerr.Error
		status int
	}{
		{kerr.GroupIDNotFound, 404},
		{kerr.NonEmptyGroup, 409},
		{kerr.CoordinatorLoadInProgress, 503},
		{kerr.GroupAuthorizationFailed, 403},
		{kerr.InvalidGroupID, 422},
		{kerr.UnknownServerError, 500},
	} {
		h := New(Config{Kafka: kafkaFunc(func(req kmsg.Request) (kmsg.Response, error) {
			resp := req.ResponseKind().(*kmsg.DeleteGroupsResponse)
			resp.Groups = []kmsg.DeleteGroupsResponseGroup{{ErrorCode: test.err.Code}}
			return resp, nil
		})})
		var p struct{ Detail string }
		code := request(t, h, "DELETE", "/v1/groups/a%2Fb", "", &p)
		if code != test.status || !strings.HasPrefix(p.Detail, `group "a/b": `+test.err.Message) {
			t.Errorf("%s: %d %q", test.err.Message, code, p.Detail)
		}
	}
	h := New(Config{Kafka: kafkaFunc(func(kmsg.Request) (kmsg.Response, error) { return nil, errors.New("stopping") })})
	if code := request(t, h, "DELETE", "/v1/groups/g", "", nil); code != 503 {
		t.Errorf("no answer: %d", code)
	}
}

// tables are empty tables of what is kept by name.
func tables(t *testing.T) (producers, snapshots *named.Table) {
	t.Helper()
	s, err := store.Open(store.Options{Dir: "data", FS: vfs.NewMem(), Shards: 1, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	producers, err = named.Open(s.Groups(), named.ProducerOffsets)
	snapshots, err2 := named.Open(s.Groups(), named.OffsetSnapshots)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return producers, snapshots
}

// TestSnapshotNames: a name that a list could not show as it is, is refused; any other
// finds its snapshot again.
func TestSnapshotNames(t *testing.T) {
	_, snapshots := tables(t)
	h := New(Config{Groups: &fakeGroups{}, Snapshots: snapshots})
	for name, code := range map[string]int{
		"%FF": 422, "a%C3": 422, "%00": 422, "a%0Ab": 422, "%E2%80%AE": 422, "%2E": 422, "%2E%2E": 422, strings.Repeat("a", 201): 422,
		"a%2Fb": 201, "%2Fa": 201, "...": 201, "a%20b": 201, "%EF%BF%BD": 201, strings.Repeat("a", 200): 201,
	} {
		if got := request(t, h, "PUT", "/v1/snapshots/"+name, "{}", nil); got != code {
			t.Errorf("%s: %d, want %d", name, got, code)
		}
	}
	var list struct{ Snapshots []SnapshotLine }
	if request(t, h, "GET", "/v1/snapshots", "", &list); len(list.Snapshots) != 6 {
		t.Errorf("there are %d", len(list.Snapshots))
	}
	for _, s := range list.Snapshots {
		if code := request(t, h, "PUT", "/v1/snapshots/"+url.PathEscape(s.Snapshot), "{}", nil); code != 409 {
			t.Errorf("%q again: %d", s.Snapshot, code)
		}
	}
}

// TestOpenAPI compares the document with what is served: each operation of it
// exists, and what is not in it does not.
func TestOpenAPI(t *testing.T) {
	producers, snapshots := tables(t)
	h := New(Config{Version: "1.2.3", Groups: manyGroups(1, 1), History: fakeHistory{}, Producers: producers, Snapshots: snapshots, Kafka: kafkaFunc(func(kmsg.Request) (kmsg.Response, error) {
		return nil, errors.New("not here")
	})})
	var doc struct {
		Info  struct{ Version string }
		Paths map[string]map[string]struct {
			Summary   string
			Responses map[string]any
		}
	}
	if code := request(t, h, "GET", "/v1/openapi.json", "", &doc); code != 200 || doc.Info.Version != "1.2.3" || len(doc.Paths) == 0 {
		t.Fatalf("%d, %+v", code, doc)
	}
	for path, operations := range doc.Paths {
		target := strings.NewReplacer("{group}", "g", "{topic}", "t", "{id}", "p", "{name}", "s").Replace(path)
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			op, ok := operations[method]
			content := ""
			if method == "post" || method == "patch" || method == "put" {
				content = `{"topic": "t", "partitions": 3}`
				switch {
				case strings.HasSuffix(path, "/offsets"), strings.HasPrefix(path, "/v1/producers"):
					content = `{"offsets": []}`
				case strings.HasPrefix(path, "/v1/snapshots"):
					content = `{}`
				}
			}
			code := request(t, h, strings.ToUpper(method), target, content, nil)
			_, documented := op.Responses[fmt.Sprint(code)]
			if ok && (!documented || op.Summary == "") {
				t.Errorf("%s %s: %d is not in the document", method, path, code)
			}
			if !ok && code != http.StatusMethodNotAllowed && code != http.StatusNotFound {
				t.Errorf("%s %s: %d, but it is not in the document", method, path, code)
			}
		}
	}
	if code := request(t, h, "GET", "/v1/nothing", "", nil); code != 404 {
		t.Errorf("an unknown path: %d", code)
	}
}

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"2026-05-04T03:02:00Z":      time.Second,
		"2026-05-04T05:02:01+02:00": 0,
		"0s":                        0,
		"90s":                       90 * time.Second,
		"2h30m":                     150 * time.Minute,
		"7d":                        7 * 24 * time.Hour,
		"1d12h":                     36 * time.Hour,
	} {
		if got, err := ParseTime(text, now); err != nil || now.Sub(got) != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "now", "-5m", "5", "d", "-1d", "1d-", "99999999d", "2026-05-04", "2026-05-04 03:02:00"} {
		if got, err := ParseTime(text, now); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestDifferences compares lists in which each kind of difference comes first, last
// and between.
func TestDifferences(t *testing.T) {
	o := func(topic string, partition int32, offset int64) CommittedOffset {
		return CommittedOffset{Topic: topic, Partition: partition, Offset: offset}
	}
	from := []CommittedOffset{o("a", 0, 1), o("a", 1, 2), o("b", 0, 3), o("d", 5, 4)}
	to := []CommittedOffset{o("a", 1, 2), o("a", 2, 5), o("b", 0, 6), o("c", 0, 7)}
	var got []string
	show := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	for _, d := range differences(from, to) {
		got = append(got, fmt.Sprintf("%s-%d %s %s", d.Topic, d.Partition, show(d.From), show(d.To)))
	}
	want := []string{"a-0 1 -", "a-2 - 5", "b-0 3 6", "c-0 - 7", "d-5 4 -"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSetOffsetsChecks has what is refused before anything is changed.
func TestSetOffsetsChecks(t *testing.T) {
	h := New(Config{Groups: manyGroups(1, 1), Kafka: kafkaFunc(func(req kmsg.Request) (kmsg.Response, error) {
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		for _, asked := range req.(*kmsg.MetadataRequest).Topics {
			topic := kmsg.MetadataResponseTopic{Topic: asked.Topic}
			if *asked.Topic == "t" {
				topic.Partitions = make([]kmsg.MetadataResponseTopicPartition, 3)
			} else {
				topic.ErrorCode = kerr.UnknownTopicOrPartition.Code
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil
	})})
	for body, want := range map[string]string{
		`{"offsets":[{"topic":"t","partition":0,"offset":1},{"topic":"t","partition":0,"offset":2}]}`: `422 topic "t": partition 0 comes twice`,
		`{"offsets":[{"topic":"t","partition":3,"offset":1}]}`:                                        `422 topic "t" has no partition 3`,
		`{"offsets":[{"topic":"u","partition":0,"offset":1}]}`:                                        `404 topic "u": UNKNOWN_TOPIC_OR_PARTITION: This server does not host this topic-partition.`,
		`{"offsets":[{"topic":"t","partition":0,"offset":-1}]}`:                                       `422 validation failed`,
		`{"offsets":[{"topic":"t","partition":0}]}`:                                                   `422 validation failed`,
		`{"offsets":[{"topic":"t","partition":0,"offset":1}]}`:                                        `409 group "g": NON_EMPTY_GROUP: The group is not empty.`,
	} {
		var p struct{ Detail string }
		code := request(t, h, "PUT", "/v1/groups/g/offsets", body, &p)
		if got := fmt.Sprint(code, " ", p.Detail); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}
