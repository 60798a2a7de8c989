package oracle

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What a scenario needs around it, on a connection of its own and not written down.

// topic is a topic's name on the wire and its id; one that was never made has an id
// that no broker knows. The topic zero has the zero id.
func (r *run) topic(name string) (string, [16]byte) {
	if name == "zero" {
		return "", [16]byte{}
	}
	id, ok := r.topics[name]
	if !ok {
		sum := sha256.Sum256([]byte(name))
		id = [16]byte(sum[:16])
	}
	return r.topicName(name), id
}

// topicName is a topic's name on the wire.
func (r *run) topicName(name string) string {
	if r.shared[name] {
		return name
	}
	return r.tag + name
}

// ask sends a request on a new connection and returns the answer.
func (r *run) ask(ctx context.Context, version int16, req kmsg.Request) (kmsg.Response, error) {
	nc, err := r.broker.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	return askOn(nc, version, req)
}

func askOn(nc net.Conn, version int16, req kmsg.Request) (kmsg.Response, error) {
	req.SetVersion(version)
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := nc.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("setup")).AppendRequest(nil, req, 1)); err != nil {
		return nil, err
	}
	frame, err := readFrame(bufio.NewReader(nc))
	if err != nil {
		return nil, err
	}
	return decode(&sent{req: req}, frame)
}

// until asks again until check is content.
func (r *run) until(ctx context.Context, what string, version int16, req kmsg.Request, check func(kmsg.Response) bool) error {
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		if resp, err := r.ask(ctx, version, req); err == nil && check(resp) {
			return nil
		}
		pause := time.NewTimer(50 * time.Millisecond)
		<-pause.C
	}
	return errors.New(what)
}

// ready waits until the broker coordinates the groups of the scenario.
func (r *run) ready(ctx context.Context) error {
	for _, g := range r.groups {
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.CoordinatorKey = g
		if err := r.until(ctx, "there is no coordinator", 3, find, func(resp kmsg.Response) bool {
			return resp.(*kmsg.FindCoordinatorResponse).ErrorCode == 0
		}); err != nil {
			return err
		}
		fetch := kmsg.NewPtrOffsetFetchRequest()
		fetch.Group = g
		if err := r.until(ctx, "the coordinator is not loaded", 5, fetch, func(resp kmsg.Response) bool {
			return resp.(*kmsg.OffsetFetchResponse).ErrorCode == 0
		}); err != nil {
			return err
		}
	}
	return nil
}

// restart stops or starts the broker. What it says to those who wait belongs to the
// step; that their connections end does not.
func (r *run) restart(ctx context.Context, step string) error {
	done := make(chan error, 1)
	go func() { done <- r.broker.Restart(ctx, step) }()
	for {
		select {
		case a := <-r.arrivals:
			if a.frame != nil {
				r.arrived(a)
			}
		case err := <-done:
			if err == nil && step == "start" {
				err = r.ready(ctx)
			}
			if step != "start" {
				r.settleClosed()
			}
			return err
		}
	}
}

// settleClosed takes the last answers and forgets all connections.
func (r *run) settleClosed() {
	timer := time.NewTimer(Quiet)
	defer timer.Stop()
	for {
		select {
		case a := <-r.arrivals:
			if a.frame != nil {
				r.arrived(a)
			}
		case <-timer.C:
			for name := range r.conns {
				r.drop(name)
			}
			return
		}
	}
}

// createTopic makes a topic. A shared one may have been made by another run.
func (r *run) createTopic(ctx context.Context, name, count string, shared bool) error {
	n, err := strconv.ParseInt(count, 10, 32)
	if err != nil {
		return err
	}
	r.shared[name] = shared
	req := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = r.topicName(name), int32(n), 1
	req.Topics, req.TimeoutMillis = append(req.Topics, t), 10000
	resp, err := r.ask(ctx, 7, req)
	if err != nil {
		return err
	}
	made := resp.(*kmsg.CreateTopicsResponse).Topics[0]
	if exists := kerr.TopicAlreadyExists.Code; made.ErrorCode != 0 && (!shared || made.ErrorCode != exists) {
		return fmt.Errorf("creating %s: %d", name, made.ErrorCode)
	}
	return r.until(ctx, "the topic does not appear", 12, r.metadata(name), func(resp kmsg.Response) bool {
		t := resp.(*kmsg.MetadataResponse).Topics[0]
		r.topics[name] = t.TopicID
		return t.ErrorCode == 0 && len(t.Partitions) == int(n)
	})
}

func (r *run) deleteTopic(ctx context.Context, name string) error {
	req := kmsg.NewPtrDeleteTopicsRequest()
	wire := r.topicName(name)
	req.TopicNames, req.TimeoutMillis = []string{wire}, 10000
	resp, err := r.ask(ctx, 5, req)
	if err != nil {
		return err
	}
	if code := resp.(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode; code != 0 {
		return fmt.Errorf("deleting %s: %d", name, code)
	}
	return r.until(ctx, "the topic does not go", 9, r.metadata(name), func(resp kmsg.Response) bool {
		return resp.(*kmsg.MetadataResponse).Topics[0].ErrorCode != 0
	})
}

func (r *run) metadata(name string) kmsg.Request {
	req := kmsg.NewPtrMetadataRequest()
	wire := r.topicName(name)
	req.Topics = []kmsg.MetadataRequestTopic{{Topic: &wire}}
	return req
}
