package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// outputFormat is the value of --output.
type outputFormat string

const (
	outputTable outputFormat = "table"
	outputJSON  outputFormat = "json"
)

// String, Set and Type implement pflag.Value.
func (f *outputFormat) String() string { return string(*f) }

func (f *outputFormat) Set(text string) error {
	switch outputFormat(text) {
	case outputTable, outputJSON:
		*f = outputFormat(text)
		return nil
	}
	return fmt.Errorf("must be %s or %s", outputTable, outputJSON)
}

func (f *outputFormat) Type() string { return "table|json" }

// withOutput gives a command --output.
func withOutput(cmd *cobra.Command) *outputFormat {
	format := outputTable
	cmd.Flags().Var(&format, "output", "how to print")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{string(outputTable), string(outputJSON)}, cobra.ShellCompDirectiveNoFileComp))
	return &format
}

// printJSON prints a value as indented JSON.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// table prints rows in aligned columns.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer, columns ...string) *table {
	t := &table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.row(anySlice(columns)...)
	return t
}

func anySlice(columns []string) []any {
	all := make([]any, len(columns))
	for i, c := range columns {
		all[i] = c
	}
	return all
}

// row adds a row; an empty cell is shown as a dash.
func (t *table) row(cells ...any) {
	text := make([]string, len(cells))
	for i, c := range cells {
		if text[i] = fmt.Sprint(c); text[i] == "" {
			text[i] = "-"
		}
	}
	fmt.Fprintln(t.w, strings.Join(text, "\t"))
}

func (t *table) flush() error { return t.w.Flush() }

// describeEach gets what is at the path of each name and prints it, as JSON or by
// show, with an empty line between.
func describeEach[T any](cmd *cobra.Command, gateway *admin, format outputFormat, names []string, path func(string) string, show func(io.Writer, *T) error) error {
	w := cmd.OutOrStdout()
	for i, name := range names {
		var what T
		err := gateway.call(cmd.Context(), http.MethodGet, path(name), nil, &what)
		switch {
		case err != nil:
		case format == outputJSON:
			err = printJSON(w, &what)
		default:
			if i > 0 {
				fmt.Fprintln(w)
			}
			err = show(w, &what)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
