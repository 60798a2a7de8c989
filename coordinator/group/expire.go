package group

func (m *Machine) stepExpireOffsets(ev *ExpireOffsets) {}
