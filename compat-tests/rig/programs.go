package rig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// moduleDir is the directory of this module.
var moduleDir = sync.OnceValues(func() (string, error) {
	gomod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(gomod))), nil
})

// once runs f for each key only once in a process.
type once struct {
	mu      sync.Mutex
	results map[string]func() (string, error)
}

func (o *once) get(key string, f func() (string, error)) (string, error) {
	o.mu.Lock()
	if o.results == nil {
		o.results = map[string]func() (string, error){}
	}
	if o.results[key] == nil {
		o.results[key] = sync.OnceValues(f)
	}
	result := o.results[key]
	o.mu.Unlock()
	return result()
}

var tools once

// Tool returns the directory of a component that tools/install knows, which it installs
// if it is not there. The error is the reason why it cannot.
func Tool(name string) (string, error) {
	return tools.get(name, func() (string, error) {
		dir, err := moduleDir()
		if err != nil {
			return "", err
		}
		cmd := exec.Command(filepath.Join(dir, "tools", "install"), name)
		out, err := cmd.Output()
		if err != nil {
			var failed *exec.ExitError
			if errors.As(err, &failed) {
				err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(failed.Stderr)))
			}
			return "", fmt.Errorf("%s cannot be installed: tools/install %[1]s: %w", name, err)
		}
		return strings.TrimSpace(string(out)), nil
	})
}

// A program is how the members on one client library are started; the last argument is
// their configuration.
type program struct {
	args, env []string
}

// programFor returns the program of a client, or the reason why it cannot run here.
func programFor(client string) (program, error) {
	switch client {
	case "sarama", "franz-go", "kafka-go":
		bin, err := memberBin()
		return program{args: []string{bin}}, err
	case "librdkafka":
		bin, err := rdkafkaBin()
		return program{args: []string{bin}}, err
	case "kcat":
		if _, err := exec.LookPath("kcat"); err != nil {
			return program{}, errors.New("kcat is not installed (apt-get install kcat)")
		}
		bin, err := memberBin()
		return program{args: []string{bin}}, err
	case "verifiable":
		lib, err := Tool("kafka")
		if err != nil {
			return program{}, err
		}
		java, err := javaCommand(lib)
		if err != nil {
			return program{}, err
		}
		bin, err := memberBin()
		return program{args: []string{bin}, env: []string{"KAFKA_LIB=" + lib, "KAFKA_JAVA=" + strings.Join(java, "\n")}}, err
	case "confluent-kafka", "aiokafka", "kafka-python":
		python, err := Tool("python")
		if err != nil {
			return program{}, err
		}
		dir, err := moduleDir()
		return program{args: []string{filepath.Join(python, "venv/bin/python"), filepath.Join(dir, "member-python/member.py")}}, err
	case "kafkajs", "platformatic":
		script, err := nodeScript()
		return program{args: []string{"node", script}}, err
	}
	return program{}, fmt.Errorf("no program runs the client %q", client)
}

// nodeScript puts the JavaScript member beside the libraries that it imports, where Node
// looks for them.
var nodeScript = sync.OnceValues(func() (string, error) {
	node, err := Tool("node")
	if err != nil {
		return "", err
	}
	module, err := moduleDir()
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(filepath.Join(module, "member-node/member.mjs"))
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "rollcall-rig")
	if err != nil {
		return "", err
	}
	script := filepath.Join(dir, "member.mjs")
	return script, errors.Join(os.WriteFile(script, source, 0o600), os.Symlink(filepath.Join(node, "node_modules"), filepath.Join(dir, "node_modules")))
})

// Available returns the reason why a client cannot run here, or nil.
func Available(client string) error {
	_, err := programFor(client)
	return err
}
