package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show or check the configuration, without starting anything",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(configShowCommand(), configCheckCommand())
	return cmd
}

func configShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print every key with its value and where it came from, as YAML",
		Args:  noArgs,
	}
	load := withConfig(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, warnings, err := load()
		if err != nil {
			return err
		}
		warn(cmd, warnings)
		for _, v := range c.Effective() {
			value, err := yaml.Dump(v.Shown(), yaml.WithLineWidth(-1))
			if err != nil {
				return fmt.Errorf("printing %s: %w", v.Key.Name, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s  # %s\n", v.Key.Name, plain(string(value), v.Key.Type), v.Source)
		}
		return nil
	}
	return cmd
}

func configCheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Exit with 0 if the configuration is valid, else say what is wrong",
		Args:  noArgs,
	}
	load := withConfig(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		_, warnings, err := load()
		if err != nil {
			return err
		}
		warn(cmd, warnings)
		fmt.Fprintln(cmd.OutOrStdout(), "the configuration is valid")
		return nil
	}
	return cmd
}

// plain takes the quotes from numbers and booleans, which the configuration keeps
// as text.
func plain(value, kind string) string {
	value = strings.TrimSpace(value)
	if kind == "int" || kind == "boolean" {
		return strings.Trim(value, `"'`)
	}
	return value
}

func warn(cmd *cobra.Command, warnings []string) {
	for _, w := range warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "rollcall: warning: "+w)
	}
}
