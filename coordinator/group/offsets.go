package group

// offsets is the hard state of a group's committed offsets.
type offsets struct{}

func (o *offsets) empty() bool { return true }
func (o *offsets) clear()      {}

var offsetRuleNames = [...]string{""}

func (m *Machine) applyOffsets(rec *Record)        {}
func (m *Machine) applyOffsetsDeleted(rec *Record) {}

func (m *Machine) stepCommit(now Time, ev *Commit)               {}
func (m *Machine) stepFetch(now Time, ev *Fetch)                 {}
func (m *Machine) stepDeleteOffsets(now Time, ev *DeleteOffsets) {}
func (m *Machine) stepDeleteGroup(now Time, ev *DeleteGroup)     {}
func (m *Machine) stepTopicDeleted(ev *TopicDeleted)             {}
func (m *Machine) stepCheckTopics(ev *CheckTopics)               {}
