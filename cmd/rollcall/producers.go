package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-mq/rollcall/gateway/admin/rest"
)

func producersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "producers",
		Short: "Register, show and delete the snapshots of offsets that producers keep to undo what they wrote",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(producersListCommand(), producersDescribeCommand(), producersRegisterCommand(), producersDeleteCommand())
	return cmd
}

func producerPath(id string) string { return "/v1/producers/" + url.PathEscape(id) }

func producersListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the producers that have a snapshot", Args: noArgs}
	connect, output := withAdmin(cmd), withOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		gateway, err := connect()
		if err != nil {
			return err
		}
		all := []rest.ProducerSnapshot{}
		for after := ""; ; {
			var page struct {
				Producers []rest.ProducerSnapshot `json:"producers"`
				Next      string                  `json:"next"`
			}
			query := url.Values{"limit": {"1000"}, "after": {after}}
			if err := gateway.call(cmd.Context(), http.MethodGet, "/v1/producers?"+query.Encode(), nil, &page); err != nil {
				return err
			}
			all = append(all, page.Producers...)
			if after = page.Next; after == "" {
				break
			}
		}
		if *output == outputJSON {
			return printJSON(cmd.OutOrStdout(), all)
		}
		t := newTable(cmd.OutOrStdout(), "PRODUCER", "VERSION", "OFFSETS", "EXPIRES")
		for _, p := range all {
			t.row(p.Producer, p.Version, len(p.Offsets), p.Expires.Format(time.RFC3339))
		}
		return t.flush()
	}
	return cmd
}

func producersDescribeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "describe ID...", Short: "Show the snapshots of producers", Args: someArgs}
	connect, output := withAdmin(cmd), withOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		gateway, err := connect()
		if err != nil {
			return err
		}
		return describeEach(cmd, gateway, *output, ids, producerPath, describeProducer)
	}
	return cmd
}

// describeProducer prints a snapshot as a table.
func describeProducer(w io.Writer, p *rest.ProducerSnapshot) error {
	fmt.Fprintf(w, "producer %s: version %d, expires %s\n", p.Producer, p.Version, p.Expires.Format(time.RFC3339))
	t := newTable(w, "TOPIC", "PARTITION", "OFFSET")
	for _, o := range p.Offsets {
		t.row(o.Topic, o.Partition, o.Offset)
	}
	return t.flush()
}

func producersRegisterCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "register ID", Short: "Register a snapshot of offsets for a producer that has none", Args: oneArg}
	connect := withAdmin(cmd)
	file := cmd.Flags().String("from-file", "", "the offsets, a `FILE` of lines TOPIC PARTITION OFFSET; - is standard input")
	ttl := cmd.Flags().String("ttl", "", "how long it lives, a `DURATION` such as 12h or 7d; the default is producer.snapshots.retention.ms of the gateway")
	_ = cmd.MarkFlagRequired("from-file")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		body := rest.NewProducerSnapshot{Offsets: []rest.ProducerOffset{}}
		if *ttl != "" {
			d, err := rest.ParseDuration(*ttl)
			if err != nil {
				return usageError{fmt.Errorf("--ttl: %w", err)}
			}
			ms := d.Milliseconds()
			body.TTLMillis = &ms
		}
		offsets, err := readOffsets(*file, cmd.InOrStdin())
		if err != nil {
			return err
		}
		for _, o := range offsets {
			body.Offsets = append(body.Offsets, rest.ProducerOffset{Topic: o.Topic, Partition: o.Partition, Offset: o.Offset})
		}
		gateway, err := connect()
		if err != nil {
			return err
		}
		var answer struct {
			Result  string `json:"result"`
			Version uint64 `json:"version"`
		}
		if err := gateway.call(cmd.Context(), http.MethodPut, producerPath(args[0]), &body, &answer); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s version %d\n", answer.Result, answer.Version)
		return nil
	}
	return cmd
}

func producersDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "delete ID...", Short: "Delete the snapshots of producers", Args: someArgs}
	connect, execute := withAdmin(cmd), withExecute(cmd)
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		gateway, err := connect()
		if err != nil {
			return err
		}
		for _, id := range ids {
			var p rest.ProducerSnapshot
			if err := gateway.call(cmd.Context(), http.MethodGet, producerPath(id), nil, &p); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s the snapshot of producer %s, version %d with %d offsets\n", execute.verb("delete"), id, p.Version, len(p.Offsets))
			if !execute.yes {
				continue
			}
			if err := gateway.call(cmd.Context(), http.MethodDelete, producerPath(id), nil, nil); err != nil {
				return err
			}
		}
		return execute.hint(cmd)
	}
	return cmd
}
