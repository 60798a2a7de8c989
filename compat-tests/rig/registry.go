package rig

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A RegistryKind is a schema registry as its group sees it: the versions of its requests,
// what it says of itself, how it elects and what it does on errors.
type RegistryKind struct {
	Name, Version                           string
	find, join, sync, heartbeat, leave      int16
	keepsGeneration, dropsIDOnOldGeneration bool
	identity                                func(r *Registry) any
	elect                                   func(members []candidate) any
	// understands returns an error if a node could not go on with these bytes.
	understands func(assignment []byte) error
}

// Confluent is Confluent Schema Registry 8.3, on the clients of Kafka 4.3.
var Confluent = &RegistryKind{
	Name: "Confluent Schema Registry", Version: "8.3", find: 6, join: 9, sync: 5, heartbeat: 4, leave: 5, keepsGeneration: true,
	identity: func(r *Registry) any {
		return map[string]any{"version": 1, "host": r.host, "port": r.port, "master_eligibility": r.eligible, "scheme": "http", "leader": r.leads}
	},
	elect: electConfluent,
	understands: func(assignment []byte) error {
		return json.Unmarshal(assignment, &Election{})
	},
}

// Karapace is Karapace 6.2.0, on aiokafka 0.12.0.
var Karapace = &RegistryKind{
	Name: "Karapace", Version: "6.2.0", find: 1, join: 5, sync: 3, heartbeat: 1, leave: 1, dropsIDOnOldGeneration: true,
	identity: func(r *Registry) any {
		return map[string]any{"version": 2, "karapace_version": "6.2.0", "host": r.host, "port": r.port, "scheme": "http", "master_eligibility": r.eligible}
	},
	elect: electKarapace,
	understands: func(assignment []byte) error {
		var keys struct {
			Master   *string          `json:"master"`
			Identity *json.RawMessage `json:"master_identity"`
		}
		err := json.Unmarshal(assignment, &keys)
		if err == nil && (keys.Master == nil || keys.Identity == nil) {
			err = errors.New("a key is missing")
		}
		return err
	},
}

// candidate is a member as the one that elects sees it.
type candidate struct {
	id, metadata string
	Identity
}

// Identity is what a registry says of itself, as far as others look at it.
type Identity struct {
	Host     string `json:"host"`
	Port     int    `json:"port"`
	Scheme   string `json:"scheme"`
	Eligible bool   `json:"master_eligibility"`
	Leader   bool   `json:"leader"`
}

// URL is how registries are compared, as text.
func (i Identity) URL() string { return fmt.Sprintf("%s://%s:%d", i.Scheme, i.Host, i.Port) }

// Election is what every member of a group is told.
type Election struct {
	Error    int       `json:"error"`
	Master   string    `json:"master"`
	Identity *Identity `json:"master_identity"`
}

func electConfluent(members []candidate) any {
	result := map[string]any{"version": 1, "error": 0}
	eligible := slices.DeleteFunc(slices.Clone(members), func(c candidate) bool { return !c.Eligible })
	for i, c := range eligible {
		if slices.ContainsFunc(eligible[:i], func(d candidate) bool { return d.URL() == c.URL() }) {
			result["error"] = 1
			return result
		}
	}
	if len(eligible) == 0 {
		return result
	}
	chosen := slices.MinFunc(eligible, byURL)
	if leading := slices.DeleteFunc(slices.Clone(eligible), func(c candidate) bool { return !c.Leader }); len(leading) == 1 {
		chosen = leading[0]
	}
	result["master"], result["master_identity"] = chosen.id, json.RawMessage(chosen.metadata)
	return result
}

// electKarapace names one that is not eligible when nobody is; all then do without.
func electKarapace(members []candidate) any {
	eligible := slices.DeleteFunc(slices.Clone(members), func(c candidate) bool { return !c.Eligible })
	if len(eligible) == 0 {
		eligible = members
	}
	chosen := slices.MinFunc(eligible, byURL)
	return map[string]any{"master": chosen.id, "master_identity": json.RawMessage(chosen.metadata), "error": 0}
}

func byURL(a, b candidate) int { return cmp.Compare(a.URL(), b.URL()) }

// Registry is a member of an `sr` group that runs by itself until it leaves or is killed:
// it finds its coordinator, joins, elects if it is the group's leader, and heartbeats.
type Registry struct {
	kind     *RegistryKind
	addr     string
	group    string
	host     string
	port     int
	eligible bool
	sticky   bool
	conn     *Conn
	stop     chan string // how to end: "leave" or "kill"
	done     chan struct{}

	// What follows is guarded by mu.
	mu         sync.Mutex
	id         string
	generation int32
	leads      bool // it has been elected
	kafka      bool // it is the leader of the group, who elects
	told       []byte
	rounds     []Election
	beats      int

	failure error // to be read when it has ended
}

// RegistryConfig says how to start a registry. A Sticky one says that it leads, once it
// has been elected.
type RegistryConfig struct {
	Kind                *RegistryKind
	Group, Host         string
	Port                int
	NotEligible, Sticky bool
}

// RegistrySession is the session timeout of registries, shorter than theirs.
const RegistrySession = 3 * time.Second

// registryBeat is how often they heartbeat.
const registryBeat = 200 * time.Millisecond

// StartRegistry starts a registry that ends with the test.
func StartRegistry(t testing.TB, addr string, c RegistryConfig) *Registry {
	t.Helper()
	r := &Registry{
		kind: c.Kind, addr: addr, group: c.Group, host: c.Host, port: c.Port, eligible: !c.NotEligible, sticky: c.Sticky,
		stop: make(chan string, 1), done: make(chan struct{}),
	}
	go r.run()
	t.Cleanup(func() {
		r.Kill()
		if r.failure != nil {
			t.Errorf("%s: %v", r, r.failure)
		}
	})
	return r
}

// URL is the address of the registry, which nobody listens at.
func (r *Registry) URL() string { return fmt.Sprintf("http://%s:%d", r.host, r.port) }

// String names the registry in messages.
func (r *Registry) String() string { return r.kind.Name + " at " + r.URL() }

// Leave lets the registry leave its group.
func (r *Registry) Leave() { r.end("leave") }

// Kill ends the registry without a word to its group.
func (r *Registry) Kill() { r.end("kill") }

func (r *Registry) end(how string) {
	select {
	case r.stop <- how:
	default: // it is ending
	}
	<-r.done
}

// State is what a registry knows.
type State struct {
	ID         string
	Generation int32
	// Elects tells whether it is the leader of the group in Kafka's sense.
	Elects bool
	// Told are the bytes that it got, and Election what they say.
	Told     string
	Election Election
	// Rounds is how often it was told something.
	Rounds int
	// Duplicates is how often it was told of duplicate URLs.
	Duplicates int
	// Beats is how many heartbeats were answered without an error.
	Beats int
}

// State returns what the registry knows now.
func (r *Registry) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := State{ID: r.id, Generation: r.generation, Elects: r.kafka, Told: string(r.told), Rounds: len(r.rounds), Beats: r.beats}
	for _, e := range r.rounds {
		s.Election = e
		s.Duplicates += e.Error
	}
	return s
}

var errEnded = errors.New("the registry has ended")

// run is the life of a registry.
func (r *Registry) run() {
	defer close(r.done)
	rejoin := true
	for {
		err := r.connect()
		for err == nil {
			if rejoin {
				if err = r.round(); err != nil {
					break
				}
			}
			rejoin, err = r.beat()
		}
		if r.conn != nil {
			r.conn.Close()
		}
		if errors.Is(err, errEnded) {
			return
		}
		// The coordinator is gone: Confluent's goes on with its generation, Karapace joins anew.
		rejoin = rejoin || !r.kind.keepsGeneration
		if r.wait(100*time.Millisecond) != nil {
			return
		}
	}
}

// wait waits, or returns errEnded; a registry that leaves says so before.
func (r *Registry) wait(d time.Duration) error {
	select {
	case how := <-r.stop:
		if how == "leave" {
			r.sendLeave()
		}
		return errEnded
	case <-time.After(d):
		return nil
	}
}

// connect opens a connection to the coordinator.
func (r *Registry) connect() error {
	conn, err := dial(r.addr)
	if err != nil {
		r.conn = nil
		return err
	}
	r.conn = conn
	r.conn.ClientID = "sr-1"
	if r.kind == Karapace { // which begins with the oldest version there is
		versions := kmsg.NewPtrApiVersionsRequest()
		if _, err := r.ask(versions); err != nil {
			return err
		}
	}
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.Version, find.CoordinatorKey, find.CoordinatorKeys = r.kind.find, r.group, []string{r.group}
	resp, err := r.ask(find)
	if err != nil {
		return err
	}
	found := resp.(*kmsg.FindCoordinatorResponse)
	code, at := found.ErrorCode, fmt.Sprintf("%s:%d", found.Host, found.Port)
	if r.kind.find >= 4 {
		code, at = found.Coordinators[0].ErrorCode, fmt.Sprintf("%s:%d", found.Coordinators[0].Host, found.Coordinators[0].Port)
	}
	if code != 0 || at != r.addr {
		return fmt.Errorf("the coordinator is %s, code %d", at, code)
	}
	return nil
}

// ask sends a request and waits for its answer, or until the registry is ended.
func (r *Registry) ask(req kmsg.Request) (kmsg.Response, error) {
	if err := r.conn.send(req); err != nil {
		return nil, err
	}
	for {
		resp, err := r.conn.Receive(20 * time.Millisecond)
		if !errors.Is(err, ErrQuiet) {
			return resp, err
		}
		select {
		case how := <-r.stop:
			if how == "leave" {
				r.sendLeave()
			}
			return nil, errEnded
		default:
		}
	}
}

// sendLeave leaves the group, on a connection of its own: the other may wait for an answer.
func (r *Registry) sendLeave() {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version, req.Group, req.MemberID = r.kind.leave, r.group, r.id
	member := kmsg.NewLeaveGroupRequestMember()
	member.MemberID = r.id
	req.Members = []kmsg.LeaveGroupRequestMember{member}
	conn, err := dial(r.addr)
	if err != nil {
		return
	}
	defer conn.Close()
	if conn.send(req) == nil {
		_, _ = conn.Receive(5 * time.Second) // whatever it is, the registry is gone
	}
}

// The codes that a registry reacts to.
const (
	coordinatorLoading  = 14
	illegalGeneration   = 22
	unknownMember       = 25
	rebalanceInProgress = 27
	memberIDRequired    = 79
)

// round joins and syncs until the registry has been told who leads, or the coordinator
// has to be found again.
func (r *Registry) round() error {
	for {
		joined, err := r.joinGroup()
		if err != nil {
			return err
		}
		again, err := r.syncGroup(joined)
		if err != nil || !again {
			return err
		}
	}
}

func (r *Registry) joinGroup() (*kmsg.JoinGroupResponse, error) {
	for {
		r.mu.Lock()
		metadata, err := json.Marshal(r.kind.identity(r))
		r.mu.Unlock()
		if err != nil {
			return nil, r.fail(err)
		}
		req := kmsg.NewPtrJoinGroupRequest()
		req.Version, req.Group, req.MemberID, req.ProtocolType = r.kind.join, r.group, r.id, "sr"
		req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(RegistrySession.Milliseconds()), 30_000
		req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "v0", Metadata: metadata}}
		resp, err := r.ask(req)
		if err != nil {
			return nil, err
		}
		joined := resp.(*kmsg.JoinGroupResponse)
		switch joined.ErrorCode {
		case 0:
			if r.kind.join >= 7 && (joined.ProtocolType == nil || *joined.ProtocolType != "sr" || joined.Protocol == nil || *joined.Protocol != "v0") {
				return nil, r.fail(fmt.Errorf("JoinGroup echoes %v, %v", joined.ProtocolType, joined.Protocol))
			}
			r.mu.Lock()
			r.id, r.generation, r.kafka = joined.MemberID, joined.Generation, joined.LeaderID == joined.MemberID
			r.mu.Unlock()
			return joined, nil
		case memberIDRequired:
			r.become(joined.MemberID)
		case unknownMember:
			r.become("")
		case coordinatorLoading, rebalanceInProgress:
		default:
			return nil, fmt.Errorf("JoinGroup: code %d", joined.ErrorCode)
		}
		if joined.ErrorCode != memberIDRequired {
			if err := r.wait(100 * time.Millisecond); err != nil {
				return nil, err
			}
		}
	}
}

// become takes a member id, or gives up its own.
func (r *Registry) become(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.id = id
}

// fail ends the registry: the real one would not go on.
func (r *Registry) fail(err error) error {
	r.failure = err
	return errEnded
}

// syncGroup tells the others who leads, or hears it; again is true if it has to join again.
func (r *Registry) syncGroup(joined *kmsg.JoinGroupResponse) (again bool, err error) {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version, req.Group, req.MemberID, req.Generation = r.kind.sync, r.group, joined.MemberID, joined.Generation
	req.ProtocolType, req.Protocol = kmsg.StringPtr("sr"), kmsg.StringPtr("v0")
	if joined.LeaderID == joined.MemberID {
		req.GroupAssignment = r.assign(joined)
	}
	resp, err := r.ask(req)
	if err != nil {
		return false, err
	}
	synced := resp.(*kmsg.SyncGroupResponse)
	switch synced.ErrorCode {
	case 0:
		if r.kind.sync >= 5 && (synced.ProtocolType == nil || *synced.ProtocolType != "sr" || synced.Protocol == nil || *synced.Protocol != "v0") {
			return false, r.fail(fmt.Errorf("SyncGroup echoes %v, %v", synced.ProtocolType, synced.Protocol))
		}
		return false, r.hear(synced.MemberAssignment)
	case rebalanceInProgress:
		return true, nil
	case illegalGeneration, unknownMember:
		if synced.ErrorCode == unknownMember || r.kind.dropsIDOnOldGeneration {
			r.become("")
		}
		return true, nil
	}
	return false, fmt.Errorf("SyncGroup: code %d", synced.ErrorCode)
}

// assign is the election: the same bytes for every member of the round.
func (r *Registry) assign(joined *kmsg.JoinGroupResponse) (list []kmsg.SyncGroupRequestGroupAssignment) {
	var members []candidate
	for _, m := range joined.Members {
		c := candidate{id: m.MemberID, metadata: string(m.ProtocolMetadata)}
		if err := json.Unmarshal(m.ProtocolMetadata, &c.Identity); err != nil {
			r.failure = fmt.Errorf("metadata %q: %w", m.ProtocolMetadata, err)
		}
		members = append(members, c)
	}
	bytes, err := json.Marshal(r.kind.elect(members))
	if err != nil {
		r.failure = err
	}
	for _, m := range members {
		list = append(list, kmsg.SyncGroupRequestGroupAssignment{MemberID: m.id, MemberAssignment: bytes})
	}
	return list
}

// hear takes what the registry is told.
func (r *Registry) hear(assignment []byte) error {
	if err := r.kind.understands(assignment); err != nil {
		return r.fail(fmt.Errorf("it cannot go on with the assignment %q: %w", assignment, err))
	}
	var e Election
	if err := json.Unmarshal(assignment, &e); err != nil {
		return r.fail(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told, r.rounds = assignment, append(r.rounds, e)
	r.leads = r.sticky && e.Master == r.id
	return nil
}

// beat waits for the time of the next heartbeat and sends it; rejoin is true if it has to
// join again.
func (r *Registry) beat() (rejoin bool, err error) {
	if err := r.wait(registryBeat); err != nil {
		return false, err
	}
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.Generation = r.kind.heartbeat, r.group, r.id, r.generation
	resp, err := r.ask(req)
	if err != nil {
		return false, err
	}
	switch code := resp.(*kmsg.HeartbeatResponse).ErrorCode; code {
	case 0:
		r.mu.Lock()
		r.beats++
		r.mu.Unlock()
		return false, nil
	case rebalanceInProgress:
		return true, nil
	case illegalGeneration, unknownMember:
		if code == unknownMember || r.kind.dropsIDOnOldGeneration {
			r.become("")
		}
		return true, nil
	default:
		return false, fmt.Errorf("the heartbeat has code %d", code)
	}
}
