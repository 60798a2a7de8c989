package group

// State is the state of a group, with Kafka's names.
type State uint8

// The states of a group. Dead is what an unknown group is said to be in.
const (
	Dead State = iota
	Empty
	PreparingRebalance
	CompletingRebalance
	Stable
)

// String returns the name that goes on the wire.
func (s State) String() string {
	return [...]string{"Dead", "Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}[s]
}

// Rule names a rule of the protocol: a cell of the table in doc.go.
type Rule uint8

// Env is what machines of one shard share: configuration and scratch space. Like
// the machines it belongs to one goroutine.
type Env struct {
	Config Config
}

// Machine is one group.
type Machine struct {
	env *Env
	id  string
}

// New returns the machine of a group that does not exist yet.
func New(env *Env, id string) *Machine { return &Machine{env: env, id: id} }

// Step decides what an event does. It changes hard state only through Apply.
func (m *Machine) Step(now Time, ev Event) Output { return Output{Gone: true} }

// Apply changes hard state as the record says.
func (m *Machine) Apply(rec *Record) {}

// ApplyRow restores hard state from a row of a checkpoint, in any order.
func (m *Machine) ApplyRow(key, value []byte) error { return nil }

// NextDeadline returns a lower bound of the time at which the machine wants its
// next Tick, and false if it wants none.
func (m *Machine) NextDeadline() (Time, bool) { return 0, false }

// Check returns the first invariant that does not hold.
func (m *Machine) Check() error { return nil }

// AppendRecord appends the encoding of a record of group id to dst.
func AppendRecord(dst []byte, id string, rec *Record) []byte { return dst }

// DecodeRecord decodes one record at the start of src and returns what is left.
func DecodeRecord(src []byte) (id string, rec Record, rest []byte, err error) { return }

// RowGroup returns the group that a state row belongs to.
func RowGroup(key []byte) (id string, err error) { return }
