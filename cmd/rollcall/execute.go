package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// execution is the flag of commands that destroy something: without it they say
// what they would do and change nothing.
type execution struct{ yes bool }

// withExecute gives a command --execute.
func withExecute(cmd *cobra.Command) *execution {
	e := &execution{}
	cmd.Flags().BoolVar(&e.yes, "execute", false, "do it; without this flag only say what would be done")
	cmd.Long = cmd.Short + ".\n\nWithout --execute it prints what it would do and changes nothing."
	return e
}

// verb begins the line that says what is done.
func (e *execution) verb(what string) string {
	if e.yes {
		return what
	}
	return "would " + what
}

// hint ends the output of a command that only said what it would do.
func (e *execution) hint(cmd *cobra.Command) error {
	if !e.yes {
		fmt.Fprintln(cmd.ErrOrStderr(), "rollcall: nothing was changed; add --execute to do it")
	}
	return nil
}
