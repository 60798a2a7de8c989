package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/rollcall-mq/rollcall/cmd/rollcall/config"
)

// keyFlags are the flags that set configuration keys.
var keyFlags = []struct{ flag, key, value, usage string }{
	{"data-dir", "data.dir", "DIR", "where state is kept"},
	{"listen", "listeners", "HOST:PORT", "where Kafka clients connect"},
	{"advertise", "advertised.listeners", "HOST:PORT", "what clients are told to connect to"},
	{"admin", "admin.listen", "HOST:PORT", "where health, metrics and administration are served over HTTP"},
	{"log-format", "log.format", "console|json", "how log lines are written"},
}

// keyValue is the value of such a flag, checked only with the whole configuration.
type keyValue struct{ text, kind string }

// String, Set and Type implement pflag.Value.
func (v *keyValue) String() string { return v.text }

func (v *keyValue) Set(text string) error {
	v.text = text
	return nil
}

func (v *keyValue) Type() string { return v.kind }

// withConfig gives a command the flags of the configuration and returns a
// function that loads it and prints warnings.
func withConfig(cmd *cobra.Command) func() (*config.Config, []string, error) {
	flags := cmd.Flags()
	file := flags.String("config", os.Getenv(config.EnvFile), "read the configuration from this YAML `FILE`")
	for _, f := range keyFlags {
		flags.Var(&keyValue{kind: f.value}, f.flag, fmt.Sprintf("%s (key %s)", f.usage, f.key))
	}
	return func() (*config.Config, []string, error) {
		in := config.Input{File: *file, Environ: os.Environ(), Flags: map[string]config.Flag{}}
		for _, f := range keyFlags {
			if given := flags.Lookup(f.flag); given.Changed {
				in.Flags[f.key] = config.Flag{Name: f.flag, Value: given.Value.String()}
			}
		}
		return config.Load(in)
	}
}
