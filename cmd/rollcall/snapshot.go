package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-mq/rollcall/gateway/admin/rest"
)

func offsetsSnapshotCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Keep committed offsets under a name, whatever the history's limits",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(snapshotCreateCommand(), snapshotListCommand(), snapshotDeleteCommand())
	return cmd
}

func snapshotPath(name string) string { return "/v1/snapshots/" + url.PathEscape(name) }

func snapshotCreateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "create NAME", Short: "Take a snapshot of the committed offsets of all groups", Args: oneArg}
	connect := withAdmin(cmd)
	groups := cmd.Flags().StringArray("group", nil, "of this `GROUP` only; may be given again")
	prefix := cmd.Flags().String("prefix", "", "of groups whose id begins with this `TEXT` only")
	cmd.MarkFlagsMutuallyExclusive("group", "prefix")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		gateway, err := connect()
		if err != nil {
			return err
		}
		var s rest.SnapshotLine
		body := rest.NewSnapshot{Groups: *groups, Prefix: *prefix}
		if err := gateway.call(cmd.Context(), http.MethodPut, snapshotPath(args[0]), &body, &s); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "snapshot %s has %d offsets of %d groups\n", s.Snapshot, s.Offsets, s.Groups)
		return nil
	}
	return cmd
}

// snapshots lists the snapshots.
func (a *admin) snapshots(ctx context.Context) ([]rest.SnapshotLine, error) {
	var list struct {
		Snapshots []rest.SnapshotLine `json:"snapshots"`
	}
	err := a.call(ctx, http.MethodGet, "/v1/snapshots", nil, &list)
	return list.Snapshots, err
}

func snapshotListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List snapshots", Args: noArgs}
	connect, output := withAdmin(cmd), withOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		gateway, err := connect()
		if err != nil {
			return err
		}
		all, err := gateway.snapshots(cmd.Context())
		if err != nil {
			return err
		}
		if *output == outputJSON {
			return printJSON(cmd.OutOrStdout(), all)
		}
		t := newTable(cmd.OutOrStdout(), "SNAPSHOT", "TAKEN", "GROUPS", "OFFSETS")
		for _, s := range all {
			t.row(s.Snapshot, s.At.Format(time.RFC3339), s.Groups, s.Offsets)
		}
		return t.flush()
	}
	return cmd
}

func snapshotDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "delete NAME...", Short: "Delete snapshots", Args: someArgs}
	connect, execute := withAdmin(cmd), withExecute(cmd)
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		gateway, err := connect()
		if err != nil {
			return err
		}
		all, err := gateway.snapshots(cmd.Context())
		if err != nil {
			return err
		}
		known := map[string]rest.SnapshotLine{}
		for _, s := range all {
			known[s.Snapshot] = s
		}
		for _, name := range names {
			s, ok := known[name]
			if !ok {
				return fmt.Errorf("there is no snapshot %q", name)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s snapshot %s with %d offsets of %d groups\n", execute.verb("delete"), name, s.Offsets, s.Groups)
			if !execute.yes {
				continue
			}
			if err := gateway.call(cmd.Context(), http.MethodDelete, snapshotPath(name), nil, nil); err != nil {
				return err
			}
		}
		return execute.hint(cmd)
	}
	return cmd
}
