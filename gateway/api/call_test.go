package api

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestCallAnsweredAtOnce(t *testing.T) {
	resp := &kmsg.HeartbeatResponse{}
	for name, tc := range map[string]struct {
		do      func(*Call)
		resp    kmsg.Response
		closing string
	}{
		"respond":     {func(c *Call) { c.Respond(resp) }, resp, ""},
		"no response": {(*Call).NoResponse, nil, ""},
		"close":       {func(c *Call) { c.Close("why") }, nil, "why"},
	} {
		c := newCall(&Session{}, 12, 0, "", nil, func() { t.Errorf("%s: wakes", name) })
		if c.Ready() {
			t.Errorf("%s: ready before it is handled", name)
		}
		tc.do(c)
		got, closing := c.Response()
		if !c.Ready() || got != tc.resp || closing != tc.closing {
			t.Errorf("%s: ready %v, %v, %q", name, c.Ready(), got, closing)
		}
	}
}

// The last part wakes, once, and what the parts stored is seen by the builder.
func TestCallParts(t *testing.T) {
	const parts = 50
	woken := make(chan struct{}, 2)
	var wakes atomic.Int32
	c := newCall(&Session{}, 15, 0, "", nil, func() { wakes.Add(1); woken <- struct{}{} })
	var stored [parts]int
	c.Await(parts, func() kmsg.Response {
		sum := 0
		for _, n := range stored {
			sum += n
		}
		return &kmsg.HeartbeatResponse{ErrorCode: int16(sum)}
	})
	for i := range parts {
		if c.Ready() {
			t.Fatal("ready too early")
		}
		go func() { stored[i] = 1; c.Done() }()
		if i < parts-1 {
			continue
		}
		<-woken
	}
	resp, _ := c.Response()
	if got := resp.(*kmsg.HeartbeatResponse).ErrorCode; got != parts || wakes.Load() != 1 {
		t.Errorf("sum %d, woken %d times", got, wakes.Load())
	}
}

// A connection may see that a call is ready, and use it again, before the goroutine
// that reported the last part has come to wake it.
func TestCallResetBeforeTheWake(t *testing.T) {
	c := new(Call)
	for range 2000 {
		woken := make(chan struct{})
		c.Reset(&Session{}, 12, 0, "", nil, func() { close(woken) })
		c.Await(1, func() kmsg.Response { return nil })
		go c.Done()
		for !c.Ready() {
			runtime.Gosched()
		}
		c.Reset(nil, 0, 0, "", nil, nil)
		<-woken
	}
}

func TestCallReset(t *testing.T) {
	c := newCall(&Session{}, 12, 0, "a", nil, nil)
	abandoned := false
	c.OnAbandon(func() { abandoned = true })
	c.Close("why")
	s := &Session{Ctx: t.Context()}
	c.Reset(s, 9, 8, "b", nil, nil)
	c.Abandon()
	resp, closing := c.Response()
	if c.Ready() || abandoned || resp != nil || closing != "" || c.Key != 9 || c.ClientID != "b" || c.Context() != t.Context() {
		t.Errorf("not new: %+v", c)
	}
	c.OnAbandon(func() { abandoned = true })
	if c.Abandon(); !abandoned {
		t.Error("the handler is not told")
	}
	if newCall(&Session{}, 9, 8, "b", nil, nil).Context() == nil {
		t.Error("a session without a context has none")
	}
}

func TestCodeFor(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want int16
	}{
		{nil, 0}, {errors.New("x"), -1}, {kerr.TopicAlreadyExists, 36}, {fmt.Errorf("create t: %w", kerr.TopicAlreadyExists), 36},
		{fmt.Errorf("wait: %w", context.DeadlineExceeded), 7}, {context.Canceled, 15},
	} {
		if got := codeFor(tc.err); got != tc.want {
			t.Errorf("%v: %d, want %d", tc.err, got, tc.want)
		}
	}
}

func TestConfigValidate(t *testing.T) {
	for _, tc := range []struct {
		c    Config
		want string
	}{
		{Config{6000, 1800000}, ""}, {Config{1, 1}, ""},
		{Config{0, 1}, "group.min.session.timeout.ms is 0, must be at least 1"},
		{Config{2, 1}, "group.max.session.timeout.ms is 1, must be at least group.min.session.timeout.ms, which is 2"},
	} {
		got := ""
		if err := tc.c.Validate(); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.c, got, tc.want)
		}
	}
}
