package rig

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Apicurio is a process of Apicurio Registry whose store is topics of a Kafka.
type Apicurio struct {
	// URL is where its APIs are.
	URL, Version string

	cmd *exec.Cmd
	log syncBuffer
}

// ApicurioAvailable returns the reason why Apicurio Registry cannot run here, or nil.
func ApicurioAvailable() error {
	_, app := Tool("apicurio")
	_, java := Tool("runtime") // it needs Java 21
	return errors.Join(app, java)
}

// StartApicurio starts a registry on the Kafka at addr and waits until it is ready. It
// ends with the test.
func StartApicurio(t testing.TB, addr string) *Apicurio {
	t.Helper()
	app, err := Tool("apicurio")
	if err != nil {
		t.Fatal(err)
	}
	runtime, err := Tool("runtime")
	if err != nil {
		t.Fatal(err)
	}
	port, errPort := FreePort()
	health, errHealth := FreePort()
	if err := errors.Join(errPort, errHealth); err != nil {
		t.Fatal(err)
	}
	a := &Apicurio{URL: fmt.Sprintf("http://127.0.0.1:%d", port), Version: jarVersion(t, filepath.Join(app, "app"), "apicurio-registry-app")}
	a.cmd = exec.Command(filepath.Join(runtime, "bin", "java"), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", "quarkus-run.jar")
	a.cmd.Dir = app
	a.cmd.Env = append(os.Environ(), "APICURIO_STORAGE_KIND=kafkasql", "APICURIO_KAFKASQL_BOOTSTRAP_SERVERS="+addr,
		"QUARKUS_HTTP_HOST=127.0.0.1", fmt.Sprintf("QUARKUS_HTTP_PORT=%d", port),
		"QUARKUS_MANAGEMENT_HOST=127.0.0.1", fmt.Sprintf("QUARKUS_MANAGEMENT_PORT=%d", health))
	a.cmd.Stdout, a.cmd.Stderr = &a.log, &a.log
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.Kill()
		if t.Failed() {
			t.Logf("the end of the registry's log:\n%s", a.log.tail())
		}
	})
	Eventually(t, 150*time.Second, "the registry is ready", func() error {
		resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/health/ready", health))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("it answers %s", resp.Status)
		}
		return nil
	})
	return a
}

// Stop asks the process to end and waits for it.
func (a *Apicurio) Stop() { a.end(syscall.SIGTERM) }

// Kill ends the process with SIGKILL.
func (a *Apicurio) Kill() { a.end(syscall.SIGKILL) }

func (a *Apicurio) end(signal os.Signal) {
	if a.cmd.ProcessState == nil {
		_ = a.cmd.Process.Signal(signal)
		_ = a.cmd.Wait()
	}
}

// syncBuffer is what a process has printed, which a test may read meanwhile.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// tail returns the newest 8 KiB.
func (s *syncBuffer) tail() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.b.Bytes()[max(0, s.b.Len()-8<<10):])
}
