package node

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap/zaptest"

	"github.com/rollcall-mq/rollcall/cmd/rollcall/config"
	"github.com/rollcall-mq/rollcall/gateway"
	"github.com/rollcall-mq/rollcall/gateway/memnet"
)

// startInMemory starts a node that touches neither the disk nor a socket, so that a
// bubble of virtual time can hold it.
func startInMemory(t *testing.T, fs vfs.FS) (*Node, *memnet.Listener) {
	t.Helper()
	c, _, err := config.Load(config.Input{Flags: map[string]config.Flag{
		"admin.listen": {Name: "admin"}, "data.dir": {Name: "data-dir", Value: "data"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	network := memnet.Listen()
	n, err := Start(t.Context(), Options{
		Config: c, Version: "test", Log: zaptest.NewLogger(t), FS: fs,
		Listen: func(context.Context, gateway.Endpoint) (net.Listener, error) { return network, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return n, network
}

// TestInMemory runs a node in a bubble: what starts in it ends with it.
func TestInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, network := startInMemory(t, vfs.NewMem())
		failed := n.Run()
		synctest.Wait()
		if ready, why := n.Ready(); !ready {
			t.Errorf("not ready: %s", why)
		}
		conn, err := network.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// ApiVersions v0 with correlation id 7.
		if _, err := conn.Write([]byte{0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff}); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 10)
		if _, err := conn.Read(answer); err != nil || answer[7] != 7 || answer[9] != 0 {
			t.Errorf("answered %x, %v", answer, err)
		}
		_ = conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := n.Stop(ctx); err != nil {
			t.Error(err)
		}
		select {
		case err := <-failed:
			t.Error(err)
		default:
		}
	})
}

// TestStopOnHungDisk: with a disk that does not answer any more, a node ends in time
// all the same, and says so.
func TestStopOnHungDisk(t *testing.T) {
	for name, write := range map[string]bool{"at rest": false, "while it writes": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate := make(chan struct{})
				var hangs atomic.Bool
				disk := errorfs.InjectorFunc(func(op errorfs.Op) error {
					if hangs.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
						<-gate
					}
					return nil
				})
				n, network := startInMemory(t, errorfs.Wrap(vfs.NewMem(), disk))
				n.Run()
				synctest.Wait()
				conn, err := network.Dial(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				hangs.Store(true)
				if write {
					create := kmsg.NewPtrCreateTopicsRequest()
					create.Version = 2
					create.Topics = []kmsg.CreateTopicsRequestTopic{{Topic: "t", NumPartitions: 1, ReplicationFactor: 1}}
					if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, create, 7)); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
				defer cancel()
				err = n.Stop(ctx)
				if took := time.Since(began); took >= 5*time.Second {
					t.Errorf("it took %v", took)
				}
				if err == nil || !strings.Contains(err.Error(), "disk does not answer") || strings.Contains(err.Error(), "\n") {
					t.Errorf("it says %v", err)
				}
				close(gate) // what hangs must end before the bubble can
			})
		})
	}
}
