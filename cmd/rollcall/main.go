// Command rollcall is a Kafka wire-protocol gateway: consumer groups, committed
// offsets and topics in one process.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rollcall-mq/rollcall/cmd/rollcall/config"
)

// Exit codes.
const (
	exitFailed = 1 // it could not start, failed while running, is not ready (check), or was refused
	exitUsage  = 2 // the command line or the configuration is wrong
)

// usageError is an error of the command line.
type usageError struct{ error }

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run runs the command line and returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	if err == nil {
		return 0
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintln(stderr, "rollcall: "+strings.TrimRight(line, "\n"))
	}
	var usage usageError
	var invalid *config.Error
	if errors.As(err, &usage) || errors.As(err, &invalid) {
		return exitUsage
	}
	return exitFailed
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "rollcall",
		Short: "A Kafka wire-protocol gateway: consumer groups, committed offsets and topics in one process",
		Long: `A Kafka wire-protocol gateway: consumer groups, committed offsets and topics in one process.

Exit codes: 0 done; 1 it could not start, failed while running, is not ready
(check), or the gateway refused or was not reached; 2 the command line or the
configuration is wrong.`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q; see rollcall --help", args[0])}
			}
			return cmd.Help()
		},
		Args: cobra.ArbitraryArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { // or they would not be errors of the command line
			if err := errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups()); err != nil {
				return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
			}
			return nil
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	root.AddCommand(serveCommand(), checkCommand(), configCommand(), benchCommand(), groupCommand(), offsetsCommand(), producersCommand(), topicCommand(), versionCommand())
	return root
}

// noArgs refuses arguments, as an error of the command line.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected %q; see %s --help", args[0], cmd.CommandPath())}
	}
	return nil
}

// someArgs refuses a command line without arguments.
func someArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageError{fmt.Errorf("%s wants %s; see %s --help", cmd.CommandPath(), strings.TrimPrefix(cmd.Use, cmd.Name()+" "), cmd.CommandPath())}
	}
	return nil
}

// oneArg wants exactly one argument.
func oneArg(cmd *cobra.Command, args []string) error {
	if err := someArgs(cmd, args); err != nil {
		return err
	}
	return noArgs(cmd, args[1:])
}
