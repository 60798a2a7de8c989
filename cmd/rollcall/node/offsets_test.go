package node

import (
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestReadYourWrites (S1.6): what is fetched after a commit was acknowledged, on another
// connection, is that commit, ten thousand times.
func TestReadYourWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, vfs.NewMem(), nil)
		n.createTopic(1)
		writer, reader := dial(t, n.network), dial(t, n.network)
		commit := groupRequest(8, 7).(*kmsg.OffsetCommitRequest)
		commit.Generation = -1
		commit.Topics[0].Partitions = commit.Topics[0].Partitions[:1]
		fetch := groupRequest(9, 5).(*kmsg.OffsetFetchRequest)
		for i := range int64(10_000) {
			commit.Topics[0].Partitions[0].Offset = i
			if got := codes(writer.ask(commit)); got != "" {
				t.Fatalf("OffsetCommit: %s", got)
			}
			resp := reader.ask(fetch).(*kmsg.OffsetFetchResponse)
			if got := resp.Topics[0].Partitions[0]; resp.ErrorCode != 0 || got.ErrorCode != 0 || got.Offset != i {
				t.Fatalf("offset %d, codes %d and %d, after the commit of %d", got.Offset, resp.ErrorCode, got.ErrorCode, i)
			}
		}
		_, _ = writer.Close(), reader.Close()
		n.stop()
	})
}

// TestTopicMadeAnew (S1.2): a topic that is deleted and made again under its name has
// none of the offsets of the one before, neither at once nor after a restart.
func TestTopicMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		n := start(t, fs, nil)
		n.createTopic(1)
		if code, got := n.commit("g", "", -1, 7), n.fetched("g"); code != 0 || got != 7 {
			t.Fatalf("OffsetCommit: code %d, then offset %d", code, got)
		}
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.TopicNames, req.TimeoutMillis = []string{"t"}, 1000
		if code := ask[*kmsg.DeleteTopicsResponse](n, 3, req).Topics[0].ErrorCode; code != 0 {
			t.Fatalf("DeleteTopics: code %d", code)
		}
		n.createTopic(1)
		if got := n.fetched("g"); got != -1 {
			t.Errorf("offset %d of the topic before", got)
		}
		n.stop()
		n = start(t, fs, nil)
		if got := n.fetched("g"); got != -1 {
			t.Errorf("offset %d of the topic before, after a restart", got)
		}
		n.stop()
	})
}
