package compat

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/rollcall-mq/rollcall/compat-tests/rig"
)

// needDocker skips the test if there is no Docker daemon.
func needDocker(t *testing.T) {
	t.Helper()
	if !*real {
		skip(t, "Docker", "containers run with -real")
	}
	if err := rig.Docker(); err != nil {
		skip(t, "Docker", err.Error())
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := rig.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestImage builds the image of docker/Dockerfile, runs it with a read-only root file system
// and no capabilities, and has a Sarama group on it; what is committed is there after the
// container was stopped and started.
func TestImage(t *testing.T) {
	needDocker(t)
	t.Parallel()
	dir := t.TempDir()
	if err := rig.ImageContext(dir); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	c, err := testcontainers.GenericContainer(t.Context(), testcontainers.GenericContainerRequest{
		ContainerRequest: testcontainers.ContainerRequest{
			FromDockerfile: testcontainers.FromDockerfile{Context: dir, Dockerfile: "docker/Dockerfile", Repo: "rollcall-test", Tag: fmt.Sprint(port)},
			Env:            map[string]string{"ROLLCALL_ADVERTISED_LISTENERS": "PLAINTEXT://" + addr},
			HostConfigModifier: func(h *container.HostConfig) {
				h.ReadonlyRootfs, h.CapDrop = true, []string{"ALL"}
				h.PortBindings = network.PortMap{
					network.MustParsePort("9092/tcp"): {{HostIP: netip.MustParseAddr("127.0.0.1"), HostPort: fmt.Sprint(port)}},
				}
			},
			WaitingFor: wait.ForHealthCheck().WithStartupTimeout(60 * time.Second),
		},
		Started: true,
	})
	if c != nil {
		testcontainers.CleanupContainer(t, c)
	}
	if err != nil {
		t.Fatal(err)
	}
	inspected, err := c.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if inspected.Config.User != "65532:65532" || !inspected.HostConfig.ReadonlyRootfs || !slices.Equal(inspected.Config.Healthcheck.Test, []string{"CMD", "/rollcall", "check"}) {
		t.Errorf("the container runs as %q, read-only %v, checked by %q", inspected.Config.User, inspected.HostConfig.ReadonlyRootfs, inspected.Config.Healthcheck.Test)
	}
	if out, err := exec.Command("docker", "export", c.GetContainerID()).Output(); err != nil || bytes.Contains(out, []byte("bin/sh")) {
		t.Errorf("the image has a shell, or cannot be looked at: %v", err)
	}

	g := newGroup(t, rig.ServerAt(addr), 4)
	config := rig.MemberConfig{Client: "sarama", Strategy: "range", ClientID: "sarama", Session: 10 * time.Second}
	g.start(config, 2)
	g.settle(2, 30*time.Second)
	g.drain()
	// Stopped in time, it exits with 0, and what it stored is in its volume.
	stop := 10 * time.Second
	if err := c.Stop(t.Context(), &stop); err != nil {
		t.Fatal(err)
	}
	state, err := c.State(t.Context())
	if err != nil || state.ExitCode != 0 || state.OOMKilled {
		t.Errorf("it stopped with %+v, %v", state, err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.settle(2, 30*time.Second)
	g.finish()
	record(t, "sarama", g.ledger.Version("sarama-0"), "the container image", "read-only, no capabilities, restart")
}

// TestCompose starts docker/compose.yaml as it is, but for the names of the image and of
// the port.
func TestCompose(t *testing.T) {
	needDocker(t)
	t.Parallel()
	compose := []string{"docker", "compose"}
	if exec.Command("docker", "compose", "version").Run() != nil {
		if _, err := exec.LookPath("docker-compose"); err != nil {
			skip(t, "docker compose", "neither `docker compose` nor docker-compose is installed")
		}
		compose = []string{"docker-compose"}
	}
	dir := t.TempDir()
	if err := rig.ImageContext(dir); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	image := fmt.Sprintf("rollcall-compose:%d", port)
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "ROLLCALL_IMAGE="+image, fmt.Sprintf("ROLLCALL_PORT=%d", port), "DOCKER_BUILDKIT=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("docker", "build", "-q", "-t", image, "-f", dir+"/docker/Dockerfile", dir)
	t.Cleanup(func() { run("docker", "image", "rm", "--force", image) })
	up := append(slices.Clone(compose), "-p", fmt.Sprintf("rollcall%d", port), "-f", "../docker/compose.yaml")
	t.Cleanup(func() { run(append(slices.Clone(up), "down", "--volumes")...) })
	run(append(slices.Clone(up), "up", "-d")...)
	id := strings.TrimSpace(run(append(slices.Clone(up), "ps", "-q", "rollcall")...))
	rig.Eventually(t, 60*time.Second, "the container is healthy", func() error {
		if health := strings.TrimSpace(run("docker", "inspect", "-f", "{{.State.Health.Status}}", id)); health != "healthy" {
			return fmt.Errorf("it is %s", health)
		}
		return nil
	})
	g := newGroup(t, rig.ServerAt(fmt.Sprintf("localhost:%d", port)), 4)
	g.start(rig.MemberConfig{Client: "sarama", Strategy: "range", ClientID: "sarama"}, 2)
	g.settle(2, 30*time.Second)
	g.finish()
	record(t, "sarama", g.ledger.Version("sarama-0"), "docker/compose.yaml", "as it is")
}

// TestRegistryContainers: two replicas of a real registry that elect one of them, where its
// image is here already: nothing is pulled.
func TestRegistryContainers(t *testing.T) {
	needDocker(t)
	for _, r := range []struct {
		name, image string
		entrypoint  []string
		env         func(addr string, port int) map[string]string
	}{
		{"Confluent Schema Registry", "confluentinc/cp-schema-registry:8.1.0", nil, func(addr string, port int) map[string]string {
			return map[string]string{
				"SCHEMA_REGISTRY_HOST_NAME":                    "127.0.0.1",
				"SCHEMA_REGISTRY_LISTENERS":                    fmt.Sprintf("http://127.0.0.1:%d", port),
				"SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS": "PLAINTEXT://" + addr,
			}
		}},
		{"Karapace", "ghcr.io/aiven-open/karapace:6.2.0", []string{"python3", "-m", "karapace"}, func(addr string, port int) map[string]string {
			return map[string]string{
				"KARAPACE_BOOTSTRAP_URI": addr, "KARAPACE_HOST": "127.0.0.1", "KARAPACE_PORT": fmt.Sprint(port),
				"KARAPACE_ADVERTISED_HOSTNAME": "127.0.0.1", "KARAPACE_ADVERTISED_PORT": fmt.Sprint(port), "KARAPACE_KARAPACE_REGISTRY": "true",
			}
		}},
	} {
		t.Run(r.name, func(t *testing.T) {
			if err := exec.Command("docker", "image", "inspect", r.image).Run(); err != nil {
				skip(t, r.name, "its image is not here (docker pull "+r.image+")")
			}
			srv := rig.Start(t, "ROLLCALL_AUTO_CREATE_TOPICS_ENABLE=false")
			var replicas []schemaAPI
			for range 2 {
				port := freePort(t)
				c, err := testcontainers.GenericContainer(t.Context(), testcontainers.GenericContainerRequest{
					ContainerRequest: testcontainers.ContainerRequest{
						Image: r.image, Entrypoint: r.entrypoint, Env: r.env(srv.Addr, port),
						HostConfigModifier: func(h *container.HostConfig) { h.NetworkMode = "host" },
					},
					Started: true,
				})
				if c != nil {
					testcontainers.CleanupContainer(t, c)
				}
				if err != nil {
					t.Fatal(err)
				}
				replicas = append(replicas, schemaAPI(fmt.Sprintf("http://127.0.0.1:%d", port)))
			}
			all := schemas{}
			for _, api := range replicas { // one of them leads, the other passes on what it is asked
				rig.Eventually(t, 90*time.Second, string(api)+" registers", func() error {
					id, err := api.register("ready", "ready")
					if err == nil {
						all[id] = "ready"
					}
					return err
				})
				all.add(t, api, 5)
			}
			for _, api := range replicas {
				all.check(t, api)
			}
			t.Logf("two replicas of %s work", r.image) // not for the documentation: few can run this
		})
	}
}
