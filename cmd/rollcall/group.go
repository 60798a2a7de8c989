package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rollcall-mq/rollcall/gateway/admin/rest"
)

func groupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "group",
		Short: "List, describe, delete and reset groups of a running gateway",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(groupListCommand(), groupDescribeCommand(), groupDeleteCommand(), groupResetCommand())
	return cmd
}

func groupListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List groups, by shard and id",
		Args:  noArgs,
	}
	connect, output := withAdmin(cmd), withOutput(cmd)
	states := cmd.Flags().StringSlice("state", nil, "only groups in one of these `STATES` (Stable, Empty, PreparingRebalance, CompletingRebalance)")
	prefix := cmd.Flags().String("prefix", "", "only groups whose id begins with this `TEXT`")
	kind := cmd.Flags().String("protocol-type", "", "only groups of this protocol `TYPE`, such as consumer")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		gateway, err := connect()
		if err != nil {
			return err
		}
		query := url.Values{"state": *states, "prefix": {*prefix}, "protocol_type": {*kind}}
		body, err := gateway.open(cmd.Context(), http.MethodGet, "/v1/stream/groups?"+query.Encode(), nil)
		if err != nil {
			return err
		}
		defer body.Close()
		if *output == outputJSON {
			if _, err := io.Copy(cmd.OutOrStdout(), body); err != nil {
				return fmt.Errorf("the list broke off: %w", err)
			}
			return nil
		}
		return groupTable(cmd.OutOrStdout(), body)
	}
	return cmd
}

// groupTable prints the lines of a stream of groups, as they come.
func groupTable(w io.Writer, stream io.Reader) error {
	const format = "%-40s  %-20s  %-12s  %7s  %7s\n"
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, format, "GROUP", "STATE", "TYPE", "MEMBERS", "OFFSETS")
	err := eachGroup(stream, func(g *rest.GroupLine) {
		fmt.Fprintf(out, format, g.Group, g.State, dash(g.ProtocolType), fmt.Sprint(g.Members), fmt.Sprint(g.Offsets))
	})
	return errors.Join(err, out.Flush())
}

// eachGroup calls f with each line of a stream of groups.
func eachGroup(stream io.Reader, f func(*rest.GroupLine)) error {
	lines := json.NewDecoder(stream)
	for {
		var g rest.GroupLine
		err := lines.Decode(&g)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the list broke off: %w", err)
		}
		f(&g)
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func groupDescribeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe GROUP...",
		Short: "Show the members and committed offsets of groups",
		Args:  someArgs,
	}
	connect, output := withAdmin(cmd), withOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, groups []string) error {
		gateway, err := connect()
		if err != nil {
			return err
		}
		return describeEach(cmd, gateway, *output, groups, groupPath, describeGroup)
	}
	return cmd
}

// describeGroup prints a group as tables.
func describeGroup(w io.Writer, g *rest.GroupDescription) error {
	fmt.Fprintf(w, "group %s: %s, protocol %s (%s), %d members\n", g.Group, g.State, dash(g.Protocol), dash(g.ProtocolType), len(g.Members))
	if len(g.Members) > 0 {
		t := newTable(w, "MEMBER", "INSTANCE", "CLIENT", "HOST", "ASSIGNMENT")
		for _, m := range g.Members {
			instance := ""
			if m.Instance != nil {
				instance = *m.Instance
			}
			t.row(m.Member, instance, m.ClientID, m.ClientHost, assignment(m.Assignment))
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	if len(g.Offsets) == 0 {
		return nil
	}
	return offsetsTable(w, g.Offsets)
}

// assignment is a short form of what a member has.
func assignment(topics []rest.TopicPartitions) string {
	parts := make([]string, len(topics))
	for i, t := range topics {
		parts[i] = t.Topic + strings.ReplaceAll(fmt.Sprint(t.Partitions), " ", ",")
	}
	return strings.Join(parts, " ")
}

func groupDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete GROUP...",
		Short: "Delete groups without members, with their offsets",
		Args:  someArgs,
	}
	connect, execute := withAdmin(cmd), withExecute(cmd)
	cmd.RunE = func(cmd *cobra.Command, groups []string) error {
		gateway, err := connect()
		if err != nil {
			return err
		}
		for _, id := range groups {
			var g rest.GroupDescription
			path := "/v1/groups/" + url.PathEscape(id)
			if err := gateway.call(cmd.Context(), http.MethodGet, path, nil, &g); err != nil {
				return err
			}
			if len(g.Members) > 0 {
				return fmt.Errorf("group %q has %d members; stop them first", id, len(g.Members))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s group %s (%s) with %d committed offsets\n",
				execute.verb("delete"), g.Group, g.State, len(g.Offsets))
			if !execute.yes {
				continue
			}
			if err := gateway.call(cmd.Context(), http.MethodDelete, path, nil, nil); err != nil {
				return err
			}
		}
		return execute.hint(cmd)
	}
	return cmd
}
