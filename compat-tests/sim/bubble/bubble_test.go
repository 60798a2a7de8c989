package bubble

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-mq/rollcall/compat-tests/sim/actor"
)

var (
	seeds = flag.Uint64("seeds", 6, "how many seeds TestServer runs")
	first = flag.Uint64("first", 1, "the first of them")
)

// duration is how long clients and faults go on, in virtual time; settling is longer
// than anything may be held.
const (
	duration = 100 * time.Second
	settling = 15 * time.Minute
)

// TestServer lets clients work against a whole server whose disk, power and
// connections fail, and judges what they saw.
func TestServer(t *testing.T) {
	var commits, crashes, stops, claims int
	for seed := *first; seed < *first+*seeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			out := &output{}
			synctest.Test(t, func(t *testing.T) {
				// Every third node trims its history all the time.
				settings := map[string]string{"offsets.retention.check.interval.ms": "20000"}
				trims := seed%3 == 0
				if trims {
					settings["offsets.history.retention.ms"] = "30000"
				}
				w := newWorld(t, seed, out.logger(), trims, settings)
				w.live(seed)
				if err := w.History.Check(); err != nil {
					w.save(seed, out)
					t.Errorf("%v\nagain, though it need not come again: go test ./sim/bubble -run TestServer -first %d -seeds 1", err, seed)
				}
				commits += w.History.Commits()
				crashes += w.crashes
				stops += w.stops
				claims += len(w.History.Claims)
			})
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("seeds %d to %d: %d commits, %d crashes, %d stops, %d assignments", *first, *first+*seeds-1, commits, crashes, stops, claims)
	if n := int(*seeds); commits < 50*n || crashes < 5*n || claims < 5*n {
		t.Error("the simulation does not do enough")
	}
}

// live is all that happens. In a bubble.
func (w *world) live(seed uint64) {
	groups := []string{"group-0", "group-1", "simple-0"}
	for i, g := range groups[:2] {
		w.Spawn(seed, func(e actor.World) { actor.Admin(e, "admin of "+g, g, 5) })
		for j := range 3 {
			var instance *string
			if i == 1 && j == 0 {
				instance = new(string)
				*instance = actor.Static
			}
			w.Spawn(seed, func(e actor.World) { actor.Consumer(e, fmt.Sprintf("member %d of %s", j, g), g, instance) })
		}
	}
	w.Spawn(seed, func(e actor.World) { actor.Admin(e, "admin of simple-0", groups[2], 30) })
	for i := range 2 {
		w.Spawn(seed, func(e actor.World) { actor.Writer(e, fmt.Sprint("writer ", i), groups[2]) })
	}
	for began := time.Now(); time.Since(began) < duration; {
		<-time.After(time.Duration(w.rnd.IntN(4000)) * time.Millisecond)
		was := w.crashes + w.stops
		if w.trouble(); w.crashes+w.stops > was {
			w.Audit(seed, fmt.Sprint("after crash ", w.crashes), groups)
		}
	}
	w.settle(seed, groups)
}

// settle ends the clients and looks at what is left: everything is answered, and what
// was committed is there, also after a last crash.
func (w *world) settle(seed uint64, groups []string) {
	w.crash(0) // on a disk in good order from now on
	<-time.After(time.Minute)
	w.Over()
	<-time.After(settling)
	synctest.Wait()
	w.Unanswered()
	w.Last(seed, "at the end", groups)
	w.crash(0)
	w.Last(seed, "after the last crash", groups)
	w.Cut()
	if err := w.end(w.life); err != nil {
		w.History.Problem("stop: %v", err)
	}
}

// save keeps what was seen and what the node had to say.
func (w *world) save(seed uint64, out *output) {
	base := filepath.Join(os.TempDir(), fmt.Sprintf("bubble-%d", seed))
	if err := w.History.Save(base + ".history"); err != nil {
		w.t.Log(err)
	}
	if err := os.WriteFile(base+".log", out.Bytes(), 0o644); err != nil {
		w.t.Log(err)
	}
	w.t.Logf("history %s.history, log %s.log", base, base)
}
