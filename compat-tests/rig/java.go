package rig

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// javaCommand is the command line that runs a class of Kafka's jars in lib or of this
// module's java directory.
func javaCommand(lib string) ([]string, error) {
	classes, err := javaClasses()
	if err != nil {
		return nil, err
	}
	// Small and quick to start: most of them live for seconds.
	return []string{"java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classes + ":" + filepath.Join(lib, "*")}, nil
}

// javaClasses compiles the java directory once, with Kafka's jars, and returns where the
// classes are.
var javaClasses = sync.OnceValues(func() (string, error) {
	lib, err := Tool("kafka")
	if err != nil {
		return "", err
	}
	module, err := moduleDir()
	if err != nil {
		return "", err
	}
	sources, err := filepath.Glob(filepath.Join(module, "java", "*.java"))
	if err != nil {
		return "", err
	}
	if _, err := exec.LookPath("javac"); err != nil {
		return "", fmt.Errorf("a JDK is not installed (apt-get install default-jdk-headless): %w", err)
	}
	dir, err := os.MkdirTemp("", "rollcall-rig")
	if err != nil {
		return "", err
	}
	args := append([]string{"-encoding", "UTF-8", "-Xlint:all,-processing", "-Werror", "-d", dir, "-cp", filepath.Join(lib, "*")}, sources...)
	if out, err := exec.Command("javac", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("javac: %w\n%s", err, out)
	}
	logging, err := os.ReadFile(filepath.Join(module, "java", "log4j2.yaml"))
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "log4j2.yaml"), logging, 0o600) // found on the class path
})

// JVM is a process that runs Kafka's command-line tools, and programs of the java
// directory, one after the other.
type JVM struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer // to be read when it has ended
}

// StartJVM starts a JVM that ends with the test.
func StartJVM(t testing.TB) *JVM {
	t.Helper()
	lib, err := Tool("kafka")
	if err != nil {
		t.Fatal(err)
	}
	java, err := javaCommand(lib)
	if err != nil {
		t.Fatal(err)
	}
	j := &JVM{cmd: exec.Command(java[0], append(java[1:], "Tools")...)}
	j.cmd.Stderr = &j.stderr
	if j.in, err = j.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := j.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	j.out = bufio.NewReader(out)
	if err := j.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = j.cmd.Process.Kill()
		_ = j.cmd.Wait()
		if t.Failed() && j.stderr.Len() > 0 {
			t.Logf("what the JVM said on standard error:\n%s", j.stderr.Bytes()[:min(j.stderr.Len(), 8<<10)])
		}
	})
	return j
}

// Run calls the main method of a class and returns its exit status and what it printed.
func (j *JVM) Run(t testing.TB, class string, args ...string) (status int, output string) {
	t.Helper()
	line, err := json.Marshal(append([]string{class}, args...))
	if err != nil {
		t.Fatal(err)
	}
	// A tool that hangs is ended with its JVM.
	timer := time.AfterFunc(90*time.Second, func() { _ = j.cmd.Process.Kill() })
	defer timer.Stop()
	if _, err := j.in.Write(append(line, '\n')); err != nil {
		t.Fatalf("%s: %v", class, err)
	}
	answer, err := j.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("%s %v has not answered: %v", class, args, err)
	}
	var a struct {
		Status int
		Output string
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		t.Fatalf("%s: %q: %v", class, answer, err)
	}
	return a.Status, a.Output
}

// KafkaVersion returns the version of Kafka's clients and tools.
func KafkaVersion(t testing.TB) string {
	t.Helper()
	lib, err := Tool("kafka")
	if err != nil {
		t.Fatal(err)
	}
	return jarVersion(t, lib, "kafka-clients")
}

// jarVersion returns the version in the name of a jar.
func jarVersion(t testing.TB, dir, name string) string {
	t.Helper()
	jars, err := filepath.Glob(filepath.Join(dir, name+"-*.jar"))
	if err != nil || len(jars) != 1 {
		t.Fatalf("one jar of %s in %s: %v, %v", name, dir, jars, err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(jars[0]), name+"-"), ".jar")
}
