package api

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Do handles a request that comes from this process, as if it had come in on a
// connection of session s, and returns the answer. The request has its version. It
// ends with ctx, if the answer takes longer.
func (t *Table) Do(ctx context.Context, s Session, req kmsg.Request) (kmsg.Response, error) {
	e := t.entry(req.Key())
	if e == nil || req.GetVersion() < e.Min || req.GetVersion() > e.Max {
		return nil, fmt.Errorf("api: key %d version %d is not served", req.Key(), req.GetVersion())
	}
	s.Ctx = ctx
	answered := make(chan struct{}, 1)
	c := new(Call)
	c.Reset(&s, req.Key(), req.GetVersion(), s.SoftwareName, req, func() { answered <- struct{}{} })
	e.Handle(c)
	if !c.Ready() {
		select {
		case <-answered:
		case <-ctx.Done():
			c.Abandon()
			return nil, ctx.Err()
		}
	}
	resp, closing := c.Response()
	if sent := c.Sent(); sent != nil {
		sent()
	}
	if resp == nil {
		return nil, fmt.Errorf("api: key %d: no answer %s", req.Key(), closing)
	}
	return resp, nil
}

// entry is the entry of a key, nil if it is not served.
func (t *Table) entry(key int16) *Entry {
	for i := range t.entries {
		if t.entries[i].Key == key {
			return &t.entries[i]
		}
	}
	return nil
}
