package compat

import (
	"testing"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

// newTopic creates a topic of four partitions for one test.
func newTopic(t *testing.T, srv *rig.Server) string {
	t.Helper()
	topic := unique(t, "t")
	rig.CreateTopic(t, rig.Admin(t, srv.Addr), topic, 4)
	return topic
}
