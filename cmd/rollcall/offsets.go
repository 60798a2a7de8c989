package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-mq/rollcall/gateway/admin/rest"
)

func offsetsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "offsets",
		Short: "Look into the history of committed offsets, and restore them",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(offsetsHistoryCommand(), offsetsDiffCommand(), offsetsAsOfCommand(), offsetsRestoreCommand(), offsetsSnapshotCommand())
	return cmd
}

// timeHelp ends the help of flags and arguments that are points in time.
const timeHelp = "RFC 3339, or a duration back from now such as 2h30m or 7d"

func groupPath(id string) string { return "/v1/groups/" + url.PathEscape(id) }

func offsetsHistoryCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "history GROUP", Short: "Show what was committed, when and by whom", Args: oneArg}
	connect, output := withAdmin(cmd), withOutput(cmd)
	topic := cmd.Flags().String("topic", "", "only offsets of this `TOPIC`")
	partition := cmd.Flags().Int32("partition", -1, "only offsets of this `PARTITION`")
	since := cmd.Flags().String("since", "", "only changes since this `TIME`: "+timeHelp)
	limit := cmd.Flags().Int("limit", 1000, "the newest `N` changes")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		gateway, err := connect()
		if err != nil {
			return err
		}
		query := url.Values{"topic": {*topic}, "partition": {strconv.Itoa(int(*partition))}, "since": {*since}, "limit": {strconv.Itoa(*limit)}}
		var history struct {
			Changes []rest.Change `json:"changes"`
			More    bool          `json:"more"`
		}
		if err := gateway.call(cmd.Context(), http.MethodGet, groupPath(args[0])+"/history?"+query.Encode(), nil, &history); err != nil {
			return err
		}
		if len(history.Changes) == 0 {
			if err := gateway.known(cmd.Context(), args[0]); err != nil {
				return err
			}
		}
		if history.More {
			fmt.Fprintf(cmd.ErrOrStderr(), "rollcall: there are older changes; --limit shows more than %d\n", *limit)
		}
		if *output == outputJSON {
			return printJSON(cmd.OutOrStdout(), history.Changes)
		}
		return historyTable(cmd.OutOrStdout(), history.Changes)
	}
	return cmd
}

// historyTable prints a line for each offset that changed, and for each other change.
func historyTable(w io.Writer, changes []rest.Change) error {
	t := newTable(w, "TIME", "CHANGE", "TOPIC", "PARTITION", "OFFSET", "CLIENT", "HOST", "MEMBER", "GENERATION")
	for i := range changes {
		c := &changes[i]
		at, by := c.At.Format(time.RFC3339Nano), &c.By
		if len(c.Offsets) == 0 {
			t.row(at, c.Kind, "", "", "", by.ClientID, by.Host, by.Member, c.Generation)
		}
		for _, o := range c.Offsets {
			offset := any(o.Offset)
			if c.Kind == "delete-offsets" {
				offset = ""
			}
			t.row(at, c.Kind, o.Topic, o.Partition, offset, by.ClientID, by.Host, by.Member, by.Generation)
		}
	}
	return t.flush()
}

func offsetsDiffCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "diff GROUP", Short: "Show how the committed offsets of two moments differ", Args: oneArg}
	connect, output := withAdmin(cmd), withOutput(cmd)
	from := cmd.Flags().String("from", "", "the earlier `TIME`: "+timeHelp)
	to := cmd.Flags().String("to", "0s", "the later `TIME`")
	_ = cmd.MarkFlagRequired("from")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		gateway, err := connect()
		if err != nil {
			return err
		}
		query := url.Values{"from": {*from}, "to": {*to}}
		var diff struct {
			Differences []rest.Difference `json:"differences"`
		}
		if err := gateway.call(cmd.Context(), http.MethodGet, groupPath(args[0])+"/diff?"+query.Encode(), nil, &diff); err != nil {
			return err
		}
		if *output == outputJSON {
			return printJSON(cmd.OutOrStdout(), diff.Differences)
		}
		return diffTable(cmd.OutOrStdout(), diff.Differences)
	}
	return cmd
}

func diffTable(w io.Writer, differences []rest.Difference) error {
	t := newTable(w, "TOPIC", "PARTITION", "FROM", "TO", "BY")
	for _, d := range differences {
		by := ""
		if d.From != nil && d.To != nil {
			by = fmt.Sprintf("%+d", *d.To-*d.From)
		}
		t.row(d.Topic, d.Partition, orDash(d.From), orDash(d.To), by)
	}
	return t.flush()
}

// orDash shows an offset that may be missing.
func orDash(offset *int64) string {
	if offset == nil {
		return "-"
	}
	return strconv.FormatInt(*offset, 10)
}

func offsetsAsOfCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "as-of GROUP TIME", Short: "Show the committed offsets of an earlier time", Args: cobra.ArbitraryArgs}
	cmd.Long = cmd.Short + ".\n\nTIME is " + timeHelp + "."
	connect, output := withAdmin(cmd), withOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) != 2 {
			return usageError{fmt.Errorf("%s wants GROUP TIME; see %[1]s --help", cmd.CommandPath())}
		}
		gateway, err := connect()
		if err != nil {
			return err
		}
		offsets, err := gateway.offsets(cmd.Context(), args[0], args[1])
		if err == nil && len(offsets) == 0 {
			err = gateway.known(cmd.Context(), args[0])
		}
		if err != nil {
			return err
		}
		if *output == outputJSON {
			return printJSON(cmd.OutOrStdout(), offsets)
		}
		return offsetsTable(cmd.OutOrStdout(), offsets)
	}
	return cmd
}

// offsetsTable prints committed offsets.
func offsetsTable(w io.Writer, offsets []rest.CommittedOffset) error {
	t := newTable(w, "TOPIC", "PARTITION", "OFFSET", "LEADER-EPOCH", "METADATA")
	for _, o := range offsets {
		t.row(o.Topic, o.Partition, o.Offset, o.LeaderEpoch, o.Metadata)
	}
	return t.flush()
}

// known fails unless a group exists.
func (a *admin) known(ctx context.Context, id string) error {
	return a.call(ctx, http.MethodGet, groupPath(id), nil, nil)
}

// offsets returns the committed offsets of a group, as of a time unless it is empty.
func (a *admin) offsets(ctx context.Context, id, asOf string) ([]rest.CommittedOffset, error) {
	return a.offsetsAt(ctx, groupPath(id)+"/offsets?"+url.Values{"as_of": {asOf}}.Encode())
}

// offsetsAt returns the committed offsets that a path answers.
func (a *admin) offsetsAt(ctx context.Context, path string) ([]rest.CommittedOffset, error) {
	var list struct {
		Offsets []rest.CommittedOffset `json:"offsets"`
	}
	err := a.call(ctx, http.MethodGet, path, nil, &list)
	return list.Offsets, err
}

func offsetsRestoreCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "restore GROUP...", Short: "Give groups the committed offsets of an earlier time or of a snapshot", Args: someArgs}
	connect, execute := withAdmin(cmd), withExecute(cmd)
	asOf := cmd.Flags().String("as-of", "", "the `TIME`: "+timeHelp)
	snapshot := cmd.Flags().String("snapshot", "", "the `NAME` of a snapshot")
	hold := withHold(cmd)
	cmd.MarkFlagsOneRequired("as-of", "snapshot")
	cmd.MarkFlagsMutuallyExclusive("as-of", "snapshot")
	cmd.RunE = func(cmd *cobra.Command, groups []string) error {
		gateway, err := connect()
		if err != nil {
			return err
		}
		at := time.Time{}
		if *snapshot == "" { // one moment for all groups
			if at, err = rest.ParseTime(*asOf, time.Now()); err != nil {
				return usageError{fmt.Errorf("--as-of: %w", err)}
			}
		}
		plan := &resetPlan{gateway: gateway, replace: true, fence: *hold}
		for _, id := range groups {
			path := groupPath(id) + "/offsets?" + url.Values{"as_of": {at.UTC().Format(time.RFC3339Nano)}}.Encode()
			if *snapshot != "" {
				path = snapshotPath(*snapshot) + groupPath(id)[len("/v1"):] + "/offsets"
			}
			then, err := gateway.offsetsAt(cmd.Context(), path)
			if err != nil {
				return err
			}
			if err := plan.add(cmd.Context(), id, then); err != nil {
				return err
			}
		}
		return plan.run(cmd, execute)
	}
	return cmd
}
