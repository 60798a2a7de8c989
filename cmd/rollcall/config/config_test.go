package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// load reads a configuration whose file has the given content.
func load(t *testing.T, file string, environ []string, flags map[string]Flag) (*Config, []string, error) {
	t.Helper()
	in := Input{Environ: environ, Flags: flags}
	if file != "" {
		t.Chdir(t.TempDir())
		in.File = "rollcall.yaml"
		if err := os.WriteFile(in.File, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(in)
}

func TestDefaults(t *testing.T) {
	c, warnings, err := load(t, "", nil, nil)
	if err != nil || len(warnings) != 0 {
		t.Fatal(err, warnings)
	}
	if got := c.Listeners[0].String(); got != "PLAINTEXT://127.0.0.1:9092" {
		t.Errorf("listeners %s", got)
	}
	if c.MinSessionTimeout != 6*time.Second || c.MaxSessionTimeout != 30*time.Minute || c.OffsetsRetention != 7*24*time.Hour {
		t.Errorf("durations: %v %v %v", c.MinSessionTimeout, c.MaxSessionTimeout, c.OffsetsRetention)
	}
	if !c.StoreSync || !c.AutoCreateTopics || c.OffsetsShards != 50 || c.AdminListen != "127.0.0.1:9640" {
		t.Errorf("%+v", c)
	}
	for _, v := range c.Effective() {
		if v.Source != "default" || v.Text != v.Key.Default {
			t.Errorf("%s = %q from %s", v.Key.Name, v.Text, v.Source)
		}
	}
}

// TestB66_RetentionSaturates: minutes beyond what a duration holds, about 292 years,
// are the longest duration there is.
func TestB66_RetentionSaturates(t *testing.T) {
	for minutes, want := range map[string]time.Duration{
		"36000": 25 * 24 * time.Hour, "2147483647": 153_722_867 * time.Minute,
	} {
		c, _, err := load(t, "offsets.retention.minutes: "+minutes, nil, nil)
		if err != nil || c.OffsetsRetention != want {
			t.Errorf("%s minutes: %v, %v, want %v", minutes, c.OffsetsRetention, err, want)
		}
	}
}

// TestPrecedence sets one key in all three places and takes away the stronger ones.
func TestPrecedence(t *testing.T) {
	const file = "# comment\ngroup.max.size: 7\nnode.id: 3\n"
	environ := []string{"PATH=/bin", "ROLLCALL_GROUP_MAX_SIZE=8"}
	flags := map[string]Flag{"group.max.size": {Name: "max-size", Value: "9"}}
	for _, test := range []struct {
		environ []string
		flags   map[string]Flag
		size    int
		source  string
	}{
		{environ, flags, 9, "flag --max-size"},
		{environ, nil, 8, "environment ROLLCALL_GROUP_MAX_SIZE"},
		{nil, nil, 7, "rollcall.yaml line 2"},
	} {
		c, _, err := load(t, file, test.environ, test.flags)
		if err != nil {
			t.Fatal(err)
		}
		if c.GroupMaxSize != test.size || c.values["group.max.size"].Source != test.source {
			t.Errorf("got %d from %s, want %d from %s", c.GroupMaxSize, c.values["group.max.size"].Source, test.size, test.source)
		}
		if c.NodeID != 3 {
			t.Errorf("node.id %d", c.NodeID)
		}
	}
}

// TestRefused has for each bad input the line that the user gets.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name, file string
		environ    []string
		want       string
	}{
		{"unknown key", "node.id: 1\ngroup.min.sesion.timeout.ms: 1", nil,
			`rollcall.yaml line 2: unknown key "group.min.sesion.timeout.ms"; did you mean group.min.session.timeout.ms?`},
		{"swapped letters", "store.snyc: false", nil, `rollcall.yaml line 1: unknown key "store.snyc"; did you mean store.sync?`},
		{"nothing near", "zookeeper.connect: a", nil, "rollcall.yaml line 1: unknown key \"zookeeper.connect\"; `rollcall config show` lists all keys"},
		{"unknown variable", "", []string{"ROLLCALL_STORE_SINC=true"},
			`environment ROLLCALL_STORE_SINC: unknown key "store.sinc"; did you mean store.sync?`},
		{"below range", "group.max.size: 0", nil, `rollcall.yaml line 1: group.max.size = "0": must be 1 to 2147483647`},
		{"beyond int64", "group.max.size: 99999999999999999999", nil, `rollcall.yaml line 1: group.max.size = "99999999999999999999": must be 1 to 2147483647`},
		{"open range", "store.min.free.bytes: -1", nil, `rollcall.yaml line 1: store.min.free.bytes = "-1": must be at least 0`},
		{"no number", "", []string{"ROLLCALL_NUM_PARTITIONS=many"},
			`environment ROLLCALL_NUM_PARTITIONS: num.partitions = "many": must be a whole number, 1 to 100000`},
		{"no boolean", "store.sync: maybe", nil, `rollcall.yaml line 1: store.sync = "maybe": must be true or false`},
		{"no choice", "log.format: xml", nil, `rollcall.yaml line 1: log.format = "xml": must be one of console, json`},
		{"twice", "node.id: 1\nnode.id: 2", nil, "rollcall.yaml line 2: node.id was already set in line 1"},
		{"nested", "group:\n  max.size: 5", nil, "rollcall.yaml line 1: group: keys are flat: write group.max.size: 5, not a block below group"},
		{"no mapping", "- node.id", nil, "rollcall.yaml line 1: expected lines of the form KEY: VALUE"},
		{"Kafka's directory", "log.dirs: /a", nil, "rollcall.yaml line 1: log.dirs is not used by Rollcall: set data.dir"},
		{"security", "ssl.keystore.location: /a", nil, "rollcall.yaml line 1: ssl.keystore.location is not used by Rollcall: listeners are plain text"},
		{"session bounds", "group.min.session.timeout.ms: 10\ngroup.max.session.timeout.ms: 9", nil,
			`rollcall.yaml line 1: group.min.session.timeout.ms = "10": must not be above group.max.session.timeout.ms (9)`},
		{"wildcard", "listeners: PLAINTEXT://0.0.0.0:9092", nil,
			"rollcall.yaml line 1: the listener PLAINTEXT://0.0.0.0:9092 is on all addresses: set advertised.listeners to the one that clients can reach, such as PLAINTEXT://localhost:9092"},
		{"wildcard v6", "listeners: A://[::]:1", nil,
			"rollcall.yaml line 1: the listener A://[::]:1 is on all addresses: set advertised.listeners to the one that clients can reach, such as A://localhost:1"},
		{"wildcard without host", "listeners: A://:1", nil,
			"rollcall.yaml line 1: the listener A://:1 is on all addresses: set advertised.listeners to the one that clients can reach, such as A://localhost:1"},
		{"wildcard advertised", "advertised.listeners: 0.0.0.0:9092", nil,
			"rollcall.yaml line 1: advertised.listeners has PLAINTEXT://0.0.0.0:9092: clients cannot connect to a wildcard address"},
		{"advertised without listener", "advertised.listeners: EXTERNAL://a:9092", nil,
			"rollcall.yaml line 1: advertised.listeners has EXTERNAL://a:9092, but there is no listener EXTERNAL"},
		{"same name", "listeners: A://h:1,A://h:2", nil, `rollcall.yaml line 1: listeners = "A://h:1,A://h:2": "A://h:2": the name A is used twice`},
		{"secured name", "listeners: SASL_SSL://h:1", nil,
			`rollcall.yaml line 1: listeners = "SASL_SSL://h:1": "SASL_SSL://h:1": the security protocol SASL_SSL is not supported: only plain text is`},
		{"no port", "listeners: A://h", nil, `rollcall.yaml line 1: listeners = "A://h": "A://h": address h: missing port in address`},
		{"bad port", "listeners: A://h:99999", nil, `rollcall.yaml line 1: listeners = "A://h:99999": "A://h:99999": "99999" is not a port`},
		{"no listener", "listeners: ''", nil, "rollcall.yaml line 1: listeners must name at least one address"},
		{"requests above their sum", "queued.max.request.bytes: 1048576", nil,
			`rollcall.yaml line 1: queued.max.request.bytes = "1048576": must not be below socket.request.max.bytes (104857600)`},
		{"open admin", "admin.listen: 0.0.0.0:9640", nil,
			`rollcall.yaml line 1: admin.listen = "0.0.0.0:9640": HTTP on anything but loopback needs a token: set admin.token (or ROLLCALL_ADMIN_TOKEN)`},
		{"secret in an error", "admin.token: 'my secret'", nil, `rollcall.yaml line 1: admin.token = "********": must not contain spaces`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := load(t, test.file, test.environ, nil)
			if err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

// TestAllProblems has every problem in one go, a line each.
func TestAllProblems(t *testing.T) {
	_, _, err := load(t, "group.max.size: 0\nnode.idd: 1\nlog.format: xml", nil, nil)
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v", err)
	}
}

func TestWarned(t *testing.T) {
	_, warnings, err := load(t, "num.io.threads: 8", nil, nil)
	const want = "rollcall.yaml line 1: num.io.threads has no effect: each connection has a goroutine"
	if err != nil || len(warnings) != 1 || warnings[0] != want {
		t.Errorf("got %v %q, want %q", err, warnings, want)
	}
}

func TestMissingFile(t *testing.T) {
	_, _, err := Load(Input{File: filepath.Join(t.TempDir(), "none.yaml")})
	if err == nil || !strings.HasPrefix(err.Error(), "cannot read the configuration file: open ") {
		t.Error(err)
	}
}

// TestServiceLinks has the variables that Kubernetes sets for a service "rollcall".
func TestServiceLinks(t *testing.T) {
	_, warnings, err := Load(Input{Environ: []string{
		"ROLLCALL_SERVICE_HOST=10.0.0.1", "ROLLCALL_SERVICE_PORT=9092", "ROLLCALL_SERVICE_PORT_KAFKA=9092",
		"ROLLCALL_PORT=tcp://10.0.0.1:9092", "ROLLCALL_PORT_9092_TCP=tcp://10.0.0.1:9092",
		"ROLLCALL_PORT_9092_TCP_ADDR=10.0.0.1", "ROLLCALL_ADMIN_PORT=tcp://10.0.0.1:9640", "ROLLCALL_CONFIG=/etc/rollcall.yaml",
	}})
	if err != nil || len(warnings) != 0 {
		t.Error(err, warnings)
	}
}

// TestServiceLinksHideNoKey makes sure that ignoring those hides none of our own.
func TestServiceLinksHideNoKey(t *testing.T) {
	for i := range Keys {
		if name := EnvName(Keys[i].Name); serviceLink.MatchString(name) || name == EnvFile {
			t.Errorf("%s of %s would be ignored", name, Keys[i].Name)
		}
	}
}

func TestForeignAreNotKeys(t *testing.T) {
	for name := range foreign {
		if find(name) != nil {
			t.Errorf("%s is a key and said to be foreign", name)
		}
	}
}

func TestListenersAsList(t *testing.T) {
	c, _, err := load(t, "listeners:\n  - PLAINTEXT://127.0.0.1:9092\n  - External://0.0.0.0:9094\nadvertised.listeners: [EXTERNAL://gw.example:19094]\n", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Listeners) != 2 || c.Listeners[1].String() != "EXTERNAL://0.0.0.0:9094" || len(c.Advertised) != 1 || c.Advertised[0].Host != "gw.example" {
		t.Errorf("%v advertised as %v", c.Listeners, c.Advertised)
	}
}

func TestSecretsAreMasked(t *testing.T) {
	c, _, err := load(t, "admin.token: hunter2", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v := c.values["admin.token"]; v.Shown() != "********" || c.AdminToken != "hunter2" {
		t.Error(v.Shown(), c.AdminToken)
	}
}

func TestAdminURL(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:9640": "http://127.0.0.1:9640",
		"0.0.0.0:1":      "http://127.0.0.1:1",
		":1":             "http://127.0.0.1:1",
		"[::1]:1":        "http://[::1]:1",
		"":               "",
	} {
		if got, err := (&Config{AdminListen: listen}).AdminURL(); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", listen, got, err)
		}
	}
}

func FuzzDistance(f *testing.F) {
	f.Add("store.sync", "store.snyc")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > 50 || len(b) > 50 {
			return
		}
		d := distance(a, b)
		if (d == 0) != (a == b) || d != distance(b, a) || d > max(len(a), len(b)) {
			t.Errorf("distance(%q, %q) = %d, the other way %d", a, b, d, distance(b, a))
		}
	})
}

// FuzzLoad reads anything as a configuration file: it is refused with lines that say
// what is wrong, or every key has a value that is accepted again.
func FuzzLoad(f *testing.F) {
	f.Add("store.sync: false\nlisteners: [PLAINTEXT://127.0.0.1:9092]\n")
	f.Add("group.max.size: 1e3\n? [a]\n: b\n")
	f.Add("&a [*a]: *a")
	file := filepath.Join(f.TempDir(), "rollcall.yaml")
	f.Fuzz(func(t *testing.T, content string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		c, _, err := Load(Input{File: file})
		if err != nil {
			if err.Error() == "" {
				t.Error("refused without a reason")
			}
			return
		}
		flags := map[string]Flag{}
		for _, v := range c.Effective() {
			flags[v.Key.Name] = Flag{Name: v.Key.Name, Value: v.Text}
		}
		again, _, err := Load(Input{Flags: flags})
		if err != nil {
			t.Errorf("what was accepted is refused: %v", err)
			return
		}
		for i, v := range again.Effective() {
			if want := c.Effective()[i]; v.Text != want.Text {
				t.Errorf("%s is %q, and then %q", v.Key.Name, want.Text, v.Text)
			}
		}
	})
}
