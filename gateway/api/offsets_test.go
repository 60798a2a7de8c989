package api

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/rollcall-mq/rollcall/coordinator/group"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A test writes topics as "t:0,7,1 nope:0 #9:0": names, or #N for the topic id N,
// with partitions. Responses are written the same way with a code behind each
// partition: "t:7=3,0=0".
type spec struct {
	name       string
	id         [16]byte
	partitions []int32
}

func parseSpecs(t testing.TB, s string) (specs []spec) {
	t.Helper()
	for _, f := range strings.Fields(s) {
		name, list, _ := strings.Cut(f, ":")
		sp := spec{name: name, id: topicIDs[name], partitions: []int32{}}
		if _, err := fmt.Sscanf(name, "#%d", &sp.id[15]); err == nil {
			sp.name = ""
		}
		for _, p := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
			var n int32
			if _, err := fmt.Sscan(p, &n); err != nil {
				t.Fatal(err)
			}
			sp.partitions = append(sp.partitions, n)
		}
		specs = append(specs, sp)
	}
	return specs
}

// label writes a topic of a response as a spec does.
func label(name string, id [16]byte) string {
	if name != "" {
		return name
	}
	for n, known := range topicIDs {
		if known == id {
			return n
		}
	}
	return fmt.Sprintf("#%d", id[15])
}

type answer struct{ b strings.Builder }

func (a *answer) topic(name string, id [16]byte) {
	if a.b.Len() > 0 {
		a.b.WriteByte(' ')
	}
	a.b.WriteString(label(name, id) + ":")
}

func (a *answer) partition(i int, text string) {
	if i > 0 {
		a.b.WriteByte(',')
	}
	a.b.WriteString(text)
}

func commitRequest(t testing.TB, topics string) *kmsg.OffsetCommitRequest {
	req := &kmsg.OffsetCommitRequest{Group: "g", Generation: -1, RetentionTimeMillis: -1}
	for _, sp := range parseSpecs(t, topics) {
		rt := kmsg.OffsetCommitRequestTopic{Topic: sp.name, TopicID: sp.id}
		for _, p := range sp.partitions {
			rt.Partitions = append(rt.Partitions, kmsg.OffsetCommitRequestTopicPartition{Partition: p, Offset: 100 + int64(p), LeaderEpoch: -1})
		}
		req.Topics = append(req.Topics, rt)
	}
	return req
}

func commitAnswer(resp kmsg.Response) string {
	var a answer
	for _, rt := range resp.(*kmsg.OffsetCommitResponse).Topics {
		a.topic(rt.Topic, rt.TopicID)
		for i, p := range rt.Partitions {
			a.partition(i, fmt.Sprintf("%d=%d", p.Partition, p.ErrorCode))
		}
	}
	return a.b.String()
}

// eventAnswer writes what a commit event asks for.
func eventAnswer(ev *group.Commit) string {
	var a answer
	for _, et := range ev.Topics {
		a.topic(et.Name, et.ID)
		for i, p := range et.Partitions {
			a.partition(i, fmt.Sprint(p.Partition))
		}
	}
	return a.b.String()
}

// The order and merging of the answers are those that Apache Kafka 4.4.0 gave to
// the same requests.
func TestOffsetCommitLayout(t *testing.T) {
	for _, tc := range []struct{ request, asked, want string }{
		{"t:0,1,2", "t:0,1,2", "t:0=0,1=0,2=0"},
		{"t:0,7,1 nope:0 u:2,9,9 w:0", "t:0,1 u:2 w:0", "t:7=3,0=0,1=0 nope:0=3 u:9=3,9=3,2=0 w:0=0"},
		{"t:0,0 u:1 t:1,0", "t:0,0 u:1 t:1,0", "t:0=0,0=0 u:1=0 t:1=0,0=0"},
		{"t:9 u:1 t:8 u:2", "u:1 u:2", "t:9=3,8=3 u:1=0,2=0"},
		{"t:9,0 u:1 t:1,8 u:2", "t:0 u:1 t:1 u:2", "t:9=3,8=3,0=0,1=0 u:1=0,2=0"},
		{"t: u:1 nope:", "u:1", "nope: u:1=0"},
		{"t: u:1 u:2", "u:1 u:2", "u:1=0 u:2=0"},
		{"t:", "", ""},
		{"", "", ""},
		{"t:-1,0", "t:0", "t:-1=3,0=0"},
		{"w:2147483647,-2147483648", "", "w:2147483647=3,-2147483648=3"},
	} {
		for v := int16(2); v <= 10; v++ {
			s := newServer()
			request, want := tc.request, tc.want
			if v == 10 { // a topic that does not exist has no id
				request = strings.ReplaceAll(request, "nope", "#9")
				want = strings.NewReplacer("nope:0=3", "#9:0=100", "nope", "#9").Replace(want)
			}
			got := commitAnswer(s.ask(t, v, commitRequest(t, request)))
			if got != want {
				t.Errorf("v%d %q is answered %q, want %q", v, request, got, want)
			}
			asked := ""
			if len(s.groups.asked) > 0 {
				asked = eventAnswer(s.lastEvent().(*group.Commit))
			}
			if asked != tc.asked {
				t.Errorf("v%d %q asks the group for %q, want %q", v, request, asked, tc.asked)
			}
		}
	}
}

func TestOffsetCommitUnknownIDs(t *testing.T) {
	s := newServer()
	got := commitAnswer(s.ask(t, 10, commitRequest(t, "#9:0,1 t:9 #0:0 u:0 #9:2")))
	if want := "#9:0=100,1=100,2=100 t:9=3 #0:0=100 u:0=0"; got != want {
		t.Errorf("answered %q, want %q", got, want)
	}
	if ev := s.lastEvent().(*group.Commit); eventAnswer(ev) != "u:0" || ev.Topics[0].Name != "u" {
		t.Errorf("asked for %+v", ev.Topics)
	}
}

// The codes of the group land on the partitions that it was asked for, one for
// all or one for each.
func TestOffsetCommitCodes(t *testing.T) {
	for _, tc := range []struct{ request, all, each string }{
		{"t:0,1 u:2", "t:0=22,1=22 u:2=22", "t:0=1,1=2 u:2=11"},
		{"t:0,7,1 nope:0 u:9,2 t:2", "t:7=3,0=22,1=22,2=22 nope:0=3 u:9=3,2=22", "t:7=3,0=1,1=2,2=21 nope:0=3 u:9=3,2=11"},
		{"t: u:1 t:0", "u:1=22 t:0=22", "u:1=1 t:0=11"},
	} {
		for v := int16(2); v <= 9; v++ {
			s := newServer()
			s.groups.reply = replies(group.IllegalGeneration)
			if got := commitAnswer(s.ask(t, v, commitRequest(t, tc.request))); got != tc.all {
				t.Errorf("v%d %q with one code: %q, want %q", v, tc.request, got, tc.all)
			}
			s.groups.reply = func(_ string, ev group.Event) group.Reply {
				body := &group.CommitReply{} // 1, 2 … for the first topic, 11, 12 … for the second
				for i, et := range ev.(*group.Commit).Topics {
					codes := make([]group.Code, len(et.Partitions))
					for j := range codes {
						codes[j] = group.Code(10*i + j + 1)
					}
					body.Codes = append(body.Codes, codes)
				}
				return group.Reply{Body: body}
			}
			if got := commitAnswer(s.ask(t, v, commitRequest(t, tc.request))); got != tc.each {
				t.Errorf("v%d %q with a code each: %q, want %q", v, tc.request, got, tc.each)
			}
		}
	}
}

func TestOffsetCommitAuthorization(t *testing.T) {
	s := newServer()
	s.Auth = denier{{OpRead, ResourceTopic, "t"}, {OpRead, ResourceTopic, "nope"}}
	if got := commitAnswer(s.ask(t, 9, commitRequest(t, "u:1 t:0,9 nope:0"))); got != "t:0=29,9=29 nope:0=29 u:1=0" {
		t.Errorf("a denied topic: %q", got)
	}
	s.Auth = denier{{OpRead, ResourceGroup, "g"}}
	if got := commitAnswer(s.ask(t, 9, commitRequest(t, "t:0,9 nope:0 t:1"))); got != "t:0=30,9=30 nope:0=30 t:1=30" {
		t.Errorf("a denied group: %q", got)
	}
	if n := len(s.groups.asked); n != 1 {
		t.Errorf("the group was asked %d times", n)
	}
}

// B48, B49, B57: what a version has not is "none", never 0, and null metadata is "".
func TestB48_B49_B57_OffsetCommitEvent(t *testing.T) {
	for v := int16(2); v <= 10; v++ {
		s := newServer()
		req := commitRequest(t, "t:0,1,2")
		req.Generation, req.MemberID, req.InstanceID, req.RetentionTimeMillis = 5, "m", ptr("i"), 60000
		p := req.Topics[0].Partitions
		p[0].LeaderEpoch, p[0].Metadata = 7, ptr("x")
		p[1].Metadata = ptr("")
		p[2].Offset = -5
		s.ask(t, v, req)
		want := &group.Commit{
			Client: group.Client{ID: "client", Host: "/10.0.0.1", Principal: "User:ANONYMOUS"}, MemberID: "m", Generation: 5,
			GroupIDNotFound: v >= 9, Retention: -1,
			Topics: []group.CommitTopic{{Name: "t", ID: topicIDs["t"], Partitions: []group.CommitPartition{
				{Partition: 0, Offset: 100, LeaderEpoch: -1, Metadata: "x"}, {Partition: 1, Offset: 101, LeaderEpoch: -1}, {Partition: 2, Offset: -5, LeaderEpoch: -1},
			}}},
		}
		if v >= 6 {
			want.Topics[0].Partitions[0].LeaderEpoch = 7
		}
		if v >= 7 {
			want.InstanceID = ptr("i")
		}
		if v <= 4 {
			want.Retention = 60000
		}
		if got := s.lastEvent(); !reflect.DeepEqual(got, want) {
			t.Errorf("v%d:\n got %+v\nwant %+v", v, got, want)
		}
	}
}

// fetchRequest asks for topics; "*" is the null list that stands for all.
func fetchRequest(t testing.TB, groups ...string) *kmsg.OffsetFetchRequest {
	req := &kmsg.OffsetFetchRequest{Groups: []kmsg.OffsetFetchRequestGroup{}}
	for _, g := range groups {
		id, topics, _ := strings.Cut(g, "=")
		rg := kmsg.OffsetFetchRequestGroup{Group: id}
		req.Group, req.Topics = id, nil
		if topics != "*" {
			rg.Topics, req.Topics = []kmsg.OffsetFetchRequestGroupTopic{}, []kmsg.OffsetFetchRequestTopic{}
			for _, sp := range parseSpecs(t, topics) {
				rg.Topics = append(rg.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: sp.name, TopicID: sp.id, Partitions: sp.partitions})
				req.Topics = append(req.Topics, kmsg.OffsetFetchRequestTopic{Topic: sp.name, Partitions: sp.partitions})
			}
		}
		req.Groups = append(req.Groups, rg)
	}
	return req
}

// fetchAnswer writes a response as "code|t:0=100/0,7=-1/0", groups apart by " ; ".
func fetchAnswer(t testing.TB, resp kmsg.Response) string {
	r := resp.(*kmsg.OffsetFetchResponse)
	text := func(code int16, n int32, offset int64, metadata *string) string {
		if metadata == nil {
			t.Errorf("partition %d has null metadata", n)
		}
		return fmt.Sprintf("%d=%d/%d", n, offset, code)
	}
	if r.Version < 8 {
		var a answer
		for _, rt := range r.Topics {
			a.topic(rt.Topic, [16]byte{})
			for i, p := range rt.Partitions {
				a.partition(i, text(p.ErrorCode, p.Partition, p.Offset, p.Metadata))
			}
		}
		return fmt.Sprintf("%d|%s", r.ErrorCode, a.b.String())
	}
	var groups []string
	for _, g := range r.Groups {
		var a answer
		for _, rt := range g.Topics {
			a.topic(rt.Topic, rt.TopicID)
			for i, p := range rt.Partitions {
				a.partition(i, text(p.ErrorCode, p.Partition, p.Offset, p.Metadata))
			}
		}
		groups = append(groups, fmt.Sprintf("%d|%s", g.ErrorCode, a.b.String()))
	}
	return strings.Join(groups, " ; ")
}

// committed answers a fetch like a group with offset 100+n in partitions 0 to 2 of
// t, and 5 in partition 0 of a topic that is gone.
func committed(_ string, ev group.Event) group.Reply {
	f := ev.(*group.Fetch)
	body := &group.FetchReply{}
	if f.All {
		body.Topics = []group.FetchedTopic{
			{Name: "gone", Partitions: []group.FetchedPartition{{Offset: 5, LeaderEpoch: -1}}},
			{Name: "t", Partitions: []group.FetchedPartition{{Offset: 100, LeaderEpoch: 7, Metadata: "x"}, {Partition: 1, Offset: 101, LeaderEpoch: -1}}},
		}
		return group.Reply{Body: body}
	}
	for _, ft := range f.Topics {
		out := group.FetchedTopic{Name: ft.Name, ID: ft.ID}
		for _, p := range ft.Partitions {
			o := group.FetchedPartition{Partition: p, Offset: -1, LeaderEpoch: -1}
			if ft.Name == "t" && p >= 0 && p < 3 {
				o.Offset = 100 + int64(p)
			}
			out.Partitions = append(out.Partitions, o)
		}
		body.Topics = append(body.Topics, out)
	}
	return group.Reply{Body: body}
}

// The order of the answers is what Apache Kafka 4.4.0 gave to the same requests.
func TestB53_B56_OffsetFetch(t *testing.T) {
	for _, tc := range []struct {
		request, want string
		from, to      int16
	}{
		{"g=t:0,7,1,-1 nope:0 u:2", "0|t:0=100/0,7=-1/0,1=101/0,-1=-1/0 nope:0=-1/0 u:2=-1/0", 1, 9},
		{"g=t:0,0 u:1 t:1,0", "0|t:0=100/0,0=100/0 u:1=-1/0 t:1=101/0,0=100/0", 1, 10},
		{"g=t: nope:", "0|t: nope:", 1, 9},
		{"g=", "0|", 1, 10},
		{"g=*", "0|gone:0=5/0 t:0=100/0,1=101/0", 2, 9},
		{"g=*", "0|t:0=100/0,1=101/0", 10, 10},
		{"g=#9:0,1 t:0 #0:0 u:0 #9:2", "0|t:0=100/0 u:0=-1/0 #9:0=-1/100,1=-1/100 #0:0=-1/100 #9:2=-1/100", 10, 10},
		{"g=#9:0", "0|#9:0=-1/100", 10, 10},
	} {
		for v := tc.from; v <= tc.to; v++ {
			s := newServer()
			s.groups.reply = committed
			if got := fetchAnswer(t, s.ask(t, v, fetchRequest(t, tc.request))); got != tc.want {
				t.Errorf("v%d %q is answered %q, want %q", v, tc.request, got, tc.want)
			}
			if len(s.groups.asked) != 1 { // also with nothing left to ask for
				t.Errorf("v%d %q: the group was asked %d times", v, tc.request, len(s.groups.asked))
			}
		}
	}
}

func TestB57_OffsetFetchFields(t *testing.T) {
	for v := int16(2); v <= 10; v++ {
		s := newServer()
		s.groups.reply = committed
		req := fetchRequest(t, "g=*")
		req.RequireStable = true
		resp := s.ask(t, v, req).(*kmsg.OffsetFetchResponse)
		var epoch int32
		var metadata *string
		if v < 8 {
			p := resp.Topics[1].Partitions[0]
			epoch, metadata = p.LeaderEpoch, p.Metadata
		} else {
			topics := resp.Groups[0].Topics
			p := topics[len(topics)-1].Partitions[0]
			epoch, metadata = p.LeaderEpoch, p.Metadata
		}
		wantEpoch := int32(7)
		if v < 5 {
			wantEpoch = -1
		}
		if epoch != wantEpoch || *metadata != "x" {
			t.Errorf("v%d: epoch %d, metadata %q", v, epoch, *metadata)
		}
		if got := s.lastEvent().(*group.Fetch).RequireStable; got != (v >= 7) {
			t.Errorf("v%d: require stable is %v", v, got)
		}
	}
}

func TestB55_OffsetFetchErrors(t *testing.T) {
	for v := int16(1); v <= 10; v++ {
		for code, deny := range map[group.Code]bool{16: false, 14: false, 15: false, 30: true} {
			s := newServer()
			s.groups.reply = replies(code)
			if deny {
				s.Auth = denyAll{}
			}
			want := fmt.Sprintf("%d|", code)
			if v == 1 { // no error of the whole
				want = fmt.Sprintf("0|t:0=-1/%d,1=-1/%d u:2=-1/%d", code, code, code)
			}
			if got := fetchAnswer(t, s.ask(t, v, fetchRequest(t, "g=t:0,1 u:2"))); got != want {
				t.Errorf("v%d code %d is answered %q, want %q", v, code, got, want)
			}
		}
	}
}

func TestOffsetFetchSeveralGroups(t *testing.T) {
	for v := int16(8); v <= 10; v++ {
		s := newServer()
		s.Auth = denier{{OpDescribe, ResourceGroup, "secret"}}
		s.groups.reply = func(id string, ev group.Event) group.Reply {
			if id == "away" {
				return group.Reply{Code: group.NotCoordinator}
			}
			return committed(id, ev)
		}
		got := fetchAnswer(t, s.ask(t, v, fetchRequest(t, "g=t:0", "secret=t:0", "away=t:0", "g=t:1", "=t:2")))
		if want := "0|t:0=100/0 ; 30| ; 16| ; 0|t:1=101/0 ; 0|t:2=102/0"; got != want {
			t.Errorf("v%d: %q, want %q", v, got, want)
		}
		if got := fetchAnswer(t, s.ask(t, v, fetchRequest(t))); got != "" {
			t.Errorf("v%d: no groups are answered %q", v, got)
		}
	}
}

func TestOffsetFetchTopicAuthorization(t *testing.T) {
	for v := int16(1); v <= 10; v++ {
		s := newServer()
		s.groups.reply = committed
		s.Auth = denier{{OpDescribe, ResourceTopic, "u"}, {OpDescribe, ResourceTopic, "gone"}}
		if got := fetchAnswer(t, s.ask(t, v, fetchRequest(t, "g=u:1,2 t:0"))); got != "0|t:0=100/0 u:1=-1/29,2=-1/29" {
			t.Errorf("v%d: a denied topic: %q", v, got)
		}
		if v < 2 {
			continue
		}
		if got := fetchAnswer(t, s.ask(t, v, fetchRequest(t, "g=*"))); got != "0|t:0=100/0,1=101/0" {
			t.Errorf("v%d: a denied topic among all: %q", v, got)
		}
	}
}

func deleteRequest(t testing.TB, topics string) *kmsg.OffsetDeleteRequest {
	req := &kmsg.OffsetDeleteRequest{Group: "g"}
	for _, sp := range parseSpecs(t, topics) {
		rt := kmsg.OffsetDeleteRequestTopic{Topic: sp.name}
		for _, p := range sp.partitions {
			rt.Partitions = append(rt.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: p})
		}
		req.Topics = append(req.Topics, rt)
	}
	return req
}

func deleteAnswer(resp kmsg.Response) string {
	r := resp.(*kmsg.OffsetDeleteResponse)
	var a answer
	for _, rt := range r.Topics {
		a.topic(rt.Topic, [16]byte{})
		for i, p := range rt.Partitions {
			a.partition(i, fmt.Sprintf("%d=%d", p.Partition, p.ErrorCode))
		}
	}
	return fmt.Sprintf("%d|%s", r.ErrorCode, a.b.String())
}

// The order of the answers is what Apache Kafka 4.4.0 gave to the same requests.
func TestOffsetDelete(t *testing.T) {
	for _, tc := range []struct{ request, want string }{
		{"t:0,7,1,-1 nope:0 u:2,9,9 w:0", "0|t:7=3,-1=3,0=0,1=0 nope:0=3 u:9=3,9=3,2=86 w:0=0"},
		{"t:9 u:1 t:8,7 u:1,8", "0|t:9=3,8=3,7=3 u:8=3,1=86,1=86"},
		{"t:9,0 t:1", "0|t:9=3,0=0,1=0"},
		{"t:0 u:1 t:1", "0|t:0=0 u:1=86 t:1=0"},
		{"t: nope:", "0|nope:"},
		{"", "0|"},
	} {
		s := newServer()
		s.groups.reply = func(_ string, ev group.Event) group.Reply {
			body := &group.DeleteOffsetsReply{}
			for _, dt := range ev.(*group.DeleteOffsets).Topics {
				codes := make([]group.Code, len(dt.Partitions))
				for j := range codes {
					if dt.Name == "u" { // which is subscribed
						codes[j] = group.GroupSubscribedToTopic
					}
				}
				body.Codes = append(body.Codes, codes)
			}
			return group.Reply{Body: body}
		}
		if got := deleteAnswer(s.ask(t, 0, deleteRequest(t, tc.request))); got != tc.want {
			t.Errorf("%q is answered %q, want %q", tc.request, got, tc.want)
		}
		if len(s.groups.asked) != 1 {
			t.Errorf("%q: the group was asked %d times", tc.request, len(s.groups.asked))
		}
	}
}

// An error of the whole drops what was found out about topics.
func TestOffsetDeleteErrors(t *testing.T) {
	for _, code := range []group.Code{69, 68, 16, 14} {
		s := newServer()
		s.groups.reply = replies(code)
		if got := deleteAnswer(s.ask(t, 0, deleteRequest(t, "nope:0 t:0"))); got != fmt.Sprintf("%d|", code) {
			t.Errorf("code %d is answered %q", code, got)
		}
	}
	s := newServer()
	s.Auth = denier{{OpRead, ResourceTopic, "t"}, {OpRead, ResourceTopic, "nope"}}
	if got := deleteAnswer(s.ask(t, 0, deleteRequest(t, "t:0,9 nope:0 w:0"))); got != "0|t:0=29,9=29 nope:0=29 w:0=0" {
		t.Errorf("denied topics: %q", got)
	}
	s.Auth = denyAll{}
	if got := deleteAnswer(s.ask(t, 0, deleteRequest(t, "t:0"))); got != "30|" {
		t.Errorf("a denied group: %q", got)
	}
}
