package group

import (
	"strconv"
	"strings"
)

// run carries out one command.
func (c *command) run() {
	switch c.name {
	case "new":
		c.s.reset()
	case "config":
		c.config()
	case "join":
		c.join()
	case "restart":
		for _, name := range c.words() {
			x := c.s.client(name)
			x.old, x.id = x.id, ""
		}
	case "sync":
		c.sync()
	case "heartbeat":
		x := c.client()
		ev := &Heartbeat{}
		ev.MemberID, ev.InstanceID, ev.Generation = c.who(x)
		c.s.step(ev, x, "heartbeat")
	case "leave":
		c.leave()
	case "describe":
		c.s.step(&Describe{}, nil, "describe")
	case "list":
		c.s.step(&List{}, nil, "list")
	case "wait":
		c.wait()
	case "tick":
		c.s.step(&Tick{Late: Time(c.number("late", 0))}, nil, "")
	case "disk":
		c.s.diskLow = c.words()[0] == "low"
	case "crash":
		c.s.crash()
	case "lost":
		c.s.step(&Lost{}, nil, "")
	case "stable":
		c.stable()
	case "members":
		c.s.printMembers()
	case "timer":
		c.timer()
	default:
		if !c.runOffsets() {
			c.fail("unknown command")
		}
	}
}

func (c *command) config() {
	cfg := &c.s.cfg
	cfg.InitialRebalanceDelay = Time(c.number("delay", int(cfg.InitialRebalanceDelay)))
	cfg.MaxSize = c.number("max-size", cfg.MaxSize)
	cfg.PendingMax = c.number("pending-max", cfg.PendingMax)
	cfg.MaxMetadata = c.number("metadata-max", cfg.MaxMetadata)
	cfg.OffsetsRetention = Time(c.number("retention", int(cfg.OffsetsRetention)))
	if v, ok := c.value("assignor"); ok {
		cfg.Assignors = map[string]Assignor{v: sameForAll{}}
	}
	c.s.world.env.Config = *cfg
	c.s.world.env.reserve = int32(c.number("reserve", 0))
}

// timer makes one deadline fire before all others, whatever the time.
func (c *command) timer() {
	kind, id := -1, ""
	if v, ok := c.value("session"); ok {
		kind, id = sessionTimer, c.s.resolve(v)
	}
	if v, ok := c.value("pending"); ok {
		kind, id = pendingTimer, c.s.resolve(v)
	}
	if v, ok := c.value("phase"); ok {
		kind = map[string]int{"join": joinTimer, "sync": syncTimer}[v]
	}
	for _, m := range []*Machine{c.s.world.m, c.s.world.twin} {
		m.dueNow(kind, id, c.s.world.now)
	}
	c.s.step(&Tick{}, nil, "")
}

// sameForAll is an assignor that gives everybody the members' metadata.
type sameForAll struct{}

func (sameForAll) Assign(members []JoinMember) [][]byte {
	var all []string
	for _, x := range members {
		all = append(all, string(x.Metadata))
	}
	out := make([][]byte, len(members))
	for i := range out {
		out[i] = []byte("server:" + strings.Join(all, "+"))
	}
	return out
}

func (c *command) join() {
	x := c.client()
	x.version = c.number("v", x.version)
	x.session = int32(c.number("session", int(x.session)))
	x.rebalance = int32(c.number("rebalance", int(x.rebalance)))
	if v, ok := c.value("type"); ok {
		x.protocolType = v
	}
	if vals, ok := c.values("protocols"); ok {
		x.protocols = nil
		for _, v := range vals {
			name, metadata, _ := strings.Cut(v, ":")
			if name != "none" {
				x.protocols = append(x.protocols, Protocol{name, text(metadata)})
			}
		}
	}
	if vals, ok := c.values("topics"); ok {
		x.protocols = []Protocol{{"range", subscriptionBytes(vals)}}
	}
	if _, ok := c.value("flip"); ok {
		x.flipped = !x.flipped
	}
	offer := x.protocols
	if x.flipped {
		offer = []Protocol{{"range", []byte(x.name + "'")}}
	}
	if v, ok := c.value("instance"); ok {
		if x.instance = &v; v == "none" {
			x.instance = nil
		}
	}
	reason, _ := c.value("reason")
	ev := &Join{
		Client:            Client{ID: x.name, Host: "/10.0.0.1", Principal: "User:" + x.name},
		InstanceID:        x.instance,
		RequireMemberID:   x.version >= 4,
		CanSkipAssignment: x.version >= 9,
		SessionTimeout:    x.session,
		RebalanceTimeout:  x.rebalance,
		ProtocolType:      x.protocolType,
		Protocols:         offer,
		Reason:            reason,
	}
	if x.version == 0 {
		ev.RebalanceTimeout = x.session
	}
	ev.MemberID, _, _ = c.who(x)
	x.ids++
	ev.NewID = x.name + "-" + strconv.Itoa(x.ids)
	c.s.step(ev, x, "join")
}

func (c *command) sync() {
	x := c.client()
	ev := &Sync{Client: Client{ID: x.name, Host: "/10.0.0.1", Principal: "User:" + x.name}}
	ev.MemberID, ev.InstanceID, ev.Generation = c.who(x)
	if v, ok := c.value("type"); ok {
		ev.ProtocolType = &v
	}
	if v, ok := c.value("protocol"); ok {
		ev.ProtocolName = &v
	}
	if vals, ok := c.values("assign"); ok {
		for _, v := range vals {
			if name, bytes, given := strings.Cut(v, ":"); given {
				ev.Assignments = append(ev.Assignments, Assignment{c.s.resolve(name), text(bytes)})
			}
		}
	} else {
		for _, to := range x.told {
			bytes := to.MemberID + "@" + strconv.Itoa(int(ev.Generation))
			ev.Assignments = append(ev.Assignments, Assignment{to.MemberID, text(bytes)})
		}
	}
	c.s.step(ev, x, "sync")
}

func (c *command) leave() {
	ev := &Leave{Client: Client{ID: "leaver", Host: "/10.0.0.2", Principal: "User:leaver"}}
	reason, _ := c.value("reason")
	for _, a := range c.args {
		item := LeaveMember{Reason: reason}
		c.value(a.Key)
		switch {
		case len(a.Vals) == 0:
			x := c.s.client(a.Key)
			item.MemberID, item.InstanceID = x.id, x.instance
		case a.Key == "id":
			item.MemberID = c.s.resolve(a.Vals[0])
		case a.Key == "instance":
			item.InstanceID = &a.Vals[0]
		case a.Key == "pair":
			item.MemberID, item.InstanceID = c.s.resolve(a.Vals[0]), &a.Vals[1]
		default:
			continue
		}
		ev.Members = append(ev.Members, item)
	}
	c.s.step(ev, nil, "leave")
}

// wait lets time pass.
func (c *command) wait() {
	s, w := c.s, c.s.world
	ms, err := strconv.Atoi(c.words()[0])
	if err != nil {
		c.fail("%v", err)
	}
	end := w.now + Time(ms)
	for {
		at, ok := w.m.NextDeadline()
		if !ok || at > end {
			break
		}
		w.now = max(at, w.now)
		s.stepTick(&Tick{}, w.now-(end-Time(ms)))
	}
	w.now = end
	s.printState()
}

// stable forms a group of the named members: they join without a handshake, the
// first one leads, and everybody syncs.
func (c *command) stable() {
	s := c.s
	s.silent = true
	defer func() { s.silent = false; s.printState() }()
	sub := func(line string, args ...string) {
		words := strings.Fields(line)
		x := &command{s: s, name: words[0]}
		for _, w := range words[1:] {
			x.args = append(x.args, arg(w))
		}
		x.run()
	}
	for _, name := range c.words() {
		x := s.client(name)
		version := x.version
		x.version = 3
		sub("join " + name)
		x.version = version
	}
	for s.world.m.state() == PreparingRebalance {
		at, _ := s.world.m.NextDeadline()
		sub("wait " + strconv.Itoa(int(at-s.world.now)))
	}
	for _, name := range c.words() {
		sub("sync " + name)
	}
	if s.world.m.state() != Stable {
		c.fail("not Stable but %v", s.world.m.state())
	}
}
