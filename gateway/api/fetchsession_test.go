package api

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestFetchSessionsRandomly opens, uses, changes, closes and abandons sessions in any
// order. The books stay right, and a session tells its client all there is to know.
func TestFetchSessionsRandomly(t *testing.T) {
	const partitions = 6
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 9))
		now := time.UnixMilli(1_800_000_000_000)
		c := newTopicClient(t, func(h *TopicHandlers) {
			h.Config.FetchSessionsMax = 4
			h.Now = func() time.Time { return now }
		})
		c.create("t", partitions)
		// known[id] is what the client of a session was told of the partitions in it.
		type client struct {
			id, epoch int32
			known     map[int32]int64
		}
		var clients []*client
		learn := func(cl *client, resp *kmsg.FetchResponse) {
			for _, topic := range resp.Topics {
				for _, p := range topic.Partitions {
					cl.known[p.Partition] = p.HighWatermark
				}
			}
			for p, end := range cl.known {
				if want := c.h.Log.Topic("t").Partition(p).End(); end != want {
					t.Fatalf("seed %d: the client believes that partition %d ends at %d, not %d", seed, p, end, want)
				}
			}
		}
		for range 200 {
			now = now.Add(time.Duration(rng.IntN(40)) * time.Second)
			if rng.IntN(3) == 0 || len(clients) == 0 {
				cl := &client{known: map[int32]int64{}}
				var ask []int32
				for range rng.IntN(partitions) {
					p := rng.Int32N(partitions)
					ask, cl.known[p] = append(ask, p), -1
				}
				resp := c.ask(12, sessionFetch(0, 0, ask...)).(*kmsg.FetchResponse)
				learn(cl, resp)
				if cl.id, cl.epoch = resp.SessionID, 1; cl.id != 0 {
					clients = append(clients, cl)
				}
				continue
			}
			if rng.IntN(2) == 0 {
				c.produce("t", rng.Int32N(partitions), someRecords(1))
			}
			at := rng.IntN(len(clients))
			cl := clients[at]
			var ask []int32
			for range rng.IntN(3) {
				p := rng.Int32N(partitions)
				ask = append(ask, p)
				if _, ok := cl.known[p]; !ok {
					cl.known[p] = -1
				}
			}
			req := sessionFetch(cl.id, cl.epoch, ask...)
			forget := kmsg.FetchRequestForgottenTopic{Topic: "t"}
			for p := range cl.known {
				if rng.IntN(8) == 0 {
					forget.Partitions = append(forget.Partitions, p)
					delete(cl.known, p)
				}
			}
			req.ForgottenTopics = append(req.ForgottenTopics, forget)
			if rng.IntN(10) == 0 { // the client closes it
				req.SessionEpoch, req.ForgottenTopics = -1, nil
				c.ask(12, req)
				clients = append(clients[:at], clients[at+1:]...)
				continue
			}
			if rng.IntN(10) == 0 { // the client goes away
				call, _ := c.start(12, req)
				call.Abandon()
				clients = append(clients[:at], clients[at+1:]...)
				continue
			}
			resp := c.ask(12, req).(*kmsg.FetchResponse)
			if resp.ErrorCode != 0 || resp.SessionID == 0 { // evicted, or empty
				clients = append(clients[:at], clients[at+1:]...)
				continue
			}
			cl.epoch++
			learn(cl, resp)
		}
		s := c.h.sessions
		parts := 0
		for _, session := range s.byID {
			if parts += len(session.parts); session.busy || len(session.order) != len(session.parts) {
				t.Errorf("seed %d: session %+v", seed, session)
			}
		}
		if len(s.byID) > s.max || parts != s.parts {
			t.Errorf("seed %d: %d sessions, %d partitions, counted %d", seed, len(s.byID), parts, s.parts)
		}
	}
}
