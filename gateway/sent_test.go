package gateway

import (
	"testing"
	"testing/synctest"

	"github.com/rollcall-mq/rollcall/gateway/api"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestSent: a handler that wants to know when its response is written is told so:
// not while the client does not read, but also when it never does.
func TestSent(t *testing.T) {
	for name, reads := range map[string]bool{"the client reads": true, "the client goes": false} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			change := func(cfg *Config) {
				for i := range cfg.Entries {
					if cfg.Entries[i].Key != 12 {
						continue
					}
					cfg.Entries[i].Handle = func(c *api.Call) {
						c.Await(0, func() kmsg.Response {
							c.OnSent(func() { sent++ })
							return kmsg.NewPtrHeartbeatResponse()
						})
					}
				}
			}
			bubble(t, change, func(t *testing.T, s *site) {
				c := s.dialPipe(t)
				c.send(heartbeat(1, 0), heartbeat(2, 0))
				synctest.Wait()
				if sent != 0 {
					t.Errorf("%d responses are said to be written", sent)
				}
				if !reads {
					c.nc.Close()
					synctest.Wait()
					if sent != 1 { // the second was never made
						t.Errorf("%d responses are done with", sent)
					}
					return
				}
				c.expect(1)
				synctest.Wait()
				if sent != 1 {
					t.Errorf("%d responses are written", sent)
				}
				c.expect(2)
				synctest.Wait()
				if sent != 2 {
					t.Errorf("%d responses are written", sent)
				}
				c.nc.Close()
				synctest.Wait()
			})
		})
	}
}
