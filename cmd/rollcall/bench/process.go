package bench

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/prometheus/procfs"
)

// process is a server's process; nil if it cannot be seen.
type process struct{ proc procfs.Proc }

// openProcess returns the process of a pid that somebody named.
func openProcess(pid int) (*process, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return nil, fmt.Errorf("the CPU of a process can only be read where there is /proc: %w", err)
	}
	proc, err := fs.Proc(pid)
	if err != nil {
		return nil, fmt.Errorf("there is no process %d", pid)
	}
	p := &process{proc}
	if _, err := p.cpu(); err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	return p, nil
}

// findProcess looks for the process on this machine that listens on the address. It
// returns nil if there is none, or if it is not ours to see.
func findProcess(addr string) *process {
	fs, err := procfs.NewDefaultFS()
	if err != nil || !local(addr) {
		return nil
	}
	_, portText, _ := net.SplitHostPort(addr)
	port, _ := strconv.ParseUint(portText, 10, 16) // an address that could be dialled
	const listening = 10                           // TCP_LISTEN
	var sockets []string
	//nolint:staticcheck // netlink, which it recommends, would be one more dependency
	for _, table := range []func() (procfs.NetTCP, error){fs.NetTCP, fs.NetTCP6} {
		lines, _ := table() // an empty table if there is no IPv6
		for _, l := range lines {
			if l.LocalPort == port && l.St == listening {
				sockets = append(sockets, fmt.Sprintf("socket:[%d]", l.Inode))
			}
		}
	}
	procs, _ := fs.AllProcs() // none: not found
	for _, proc := range procs {
		files, _ := proc.FileDescriptorTargets() // none of a process that is not ours
		if slices.ContainsFunc(files, func(f string) bool { return slices.Contains(sockets, f) }) {
			return &process{proc}
		}
	}
	return nil
}

// local tells whether an address is one of this machine.
func local(addr string) bool {
	a, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return false
	}
	own, _ := net.InterfaceAddrs()
	return a.IP.IsLoopback() || slices.ContainsFunc(own, func(o net.Addr) bool {
		n, ok := o.(*net.IPNet)
		return ok && n.IP.Equal(a.IP)
	})
}

var errGone = errors.New("its figures cannot be read")

// cpu is what the process has used so far, in microseconds.
func (p *process) cpu() (float64, error) {
	stat, err := p.proc.Stat()
	if err != nil {
		return 0, errGone
	}
	return stat.CPUTime() * 1e6, nil
}

// memory is what it has in memory, in bytes.
func (p *process) memory() (float64, error) {
	stat, err := p.proc.Stat()
	if err != nil {
		return 0, errGone
	}
	return float64(stat.ResidentMemory()), nil
}

// meter is a look at a process at the begin of a measurement.
type meter struct {
	p           *process
	cpu, memory float64
}

func (p *process) meter() meter {
	m := meter{p: p}
	if p != nil {
		m.cpu, _ = p.cpu() // if it is gone, used says so
		m.memory, _ = p.memory()
	}
	return m
}

// used is the CPU time since then in microseconds, shared by n; nil if not known.
func (m meter) used(n float64) *float64 {
	if m.p == nil || n == 0 {
		return nil
	}
	now, err := m.p.cpu()
	if err != nil {
		return nil
	}
	now = (now - m.cpu) / n
	return &now
}

// grown is the growth of the memory since then in bytes, shared by n; nil if not known.
func (m meter) grown(n float64) *float64 {
	if m.p == nil || n == 0 {
		return nil
	}
	now, err := m.p.memory()
	if err != nil {
		return nil
	}
	now = (now - m.memory) / n
	return &now
}
