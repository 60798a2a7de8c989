package node

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap/zaptest"

	"github.com/rollcall-mq/rollcall/cmd/rollcall/config"
	"github.com/rollcall-mq/rollcall/gateway"
	"github.com/rollcall-mq/rollcall/gateway/memnet"
)

// TestInMemory runs a node that touches neither the disk nor a socket, so that a
// bubble of virtual time can hold it: what starts in it ends with it.
func TestInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, err := config.Load(config.Input{Flags: map[string]config.Flag{
			"admin.listen": {Name: "admin"}, "data.dir": {Name: "data-dir", Value: "data"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		network := memnet.Listen()
		n, err := Start(t.Context(), Options{
			Config: c, Version: "test", Log: zaptest.NewLogger(t), FS: vfs.NewMem(),
			Listen: func(context.Context, gateway.Endpoint) (net.Listener, error) { return network, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
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
