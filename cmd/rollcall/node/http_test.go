package node

import (
	"bufio"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rollcall-mq/rollcall/gateway/memnet"
)

// TestStopAnswersWhoWaits: a stop does not wait for requests that wait for a
// producer's snapshot; they are answered with 503 at once. In virtual time.
func TestStopAnswersWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, vfs.NewMem(), nil)
		network := memnet.Listen()
		go func() { _ = n.admin.Serve(network) }() // Stop ends it
		conn, err := network.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprint(conn, "GET /v1/producers/p?wait_ms=30000 HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		answered := make(chan error, 1)
		go func() {
			r, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil && r.StatusCode != http.StatusServiceUnavailable {
				err = fmt.Errorf("answered %s", r.Status)
			}
			answered <- err
		}()
		began := time.Now()
		n.stop()
		if took := time.Since(began); took >= time.Second {
			t.Errorf("the stop took %v", took)
		}
		if err := <-answered; err != nil {
			t.Error(err)
		}
	})
}
