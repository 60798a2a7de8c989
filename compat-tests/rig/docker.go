package rig

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// daemon is the Docker daemon that this process started, if it did.
var daemon struct {
	cmd *exec.Cmd
	dir string
}

// Docker makes sure that a Docker daemon answers: the one that the environment names, or
// one of our own, which root can start and StopDocker ends. The error is the reason why
// there is none.
var Docker = sync.OnceValue(func() error {
	// For testcontainers: no image to clean up after a killed test, which could not be pulled
	// everywhere, and no guess that a test in a container has to call the gateway.
	setenv := errors.Join(os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"), os.Setenv("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1"))
	if _, err := exec.LookPath("docker"); err != nil {
		return errors.New("docker is not installed (apt-get install docker.io iptables)")
	}
	if exec.Command("docker", "info").Run() == nil || setenv != nil {
		return setenv
	}
	if _, err := exec.LookPath("dockerd"); err != nil || os.Getuid() != 0 {
		return errors.New("no Docker daemon answers, and only root can start one (apt-get install docker.io iptables)")
	}
	dir, err := os.MkdirTemp("", "rollcall-docker")
	if err != nil {
		return err
	}
	socket := "unix://" + filepath.Join(dir, "docker.sock")
	var log bytes.Buffer
	cmd := exec.Command("dockerd", "--data-root", filepath.Join(dir, "data"), "--exec-root", filepath.Join(dir, "exec"),
		"--pidfile", filepath.Join(dir, "pid"), "--host", socket)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := errors.Join(os.Setenv("DOCKER_HOST", socket), cmd.Start()); err != nil {
		return err
	}
	daemon.cmd, daemon.dir = cmd, dir
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for range 100 {
		if exec.Command("docker", "info").Run() == nil {
			return nil
		}
		<-tick.C
	}
	StopDocker()
	return fmt.Errorf("dockerd does not answer: %s", log.Bytes()[max(0, log.Len()-500):])
})

// StopDocker ends the daemon that Docker started, and removes what it stored.
func StopDocker() {
	if daemon.cmd == nil {
		return
	}
	_ = daemon.cmd.Process.Signal(syscall.SIGTERM)
	_ = daemon.cmd.Wait()
	daemon.cmd = nil
	_ = exec.Command("umount", filepath.Join(daemon.dir, "exec", "netns", "default")).Run() // there may be none
	_ = os.RemoveAll(daemon.dir)
}

// ImageContext makes a directory from which the image can be built: the binary that is
// tested, and what the Dockerfile takes from the tree.
func ImageContext(dir string) error {
	bin, err := rollcallBin()
	if err != nil {
		return err
	}
	module, err := moduleDir()
	if err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(dir, "docker"), os.DirFS(filepath.Join(filepath.Dir(module), "docker"))); err != nil {
		return err
	}
	binary, err := os.ReadFile(bin)
	if err != nil {
		return err
	}
	return errors.Join(os.Mkdir(filepath.Join(dir, "bin"), 0o755), os.WriteFile(filepath.Join(dir, "bin", "rollcall"), binary, 0o755))
}

// ServerAt returns a server that somebody else has started and will stop.
func ServerAt(addr string) *Server { return &Server{Addr: addr, external: true} }

// FreePort returns a port of 127.0.0.1 that nobody listens at.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
