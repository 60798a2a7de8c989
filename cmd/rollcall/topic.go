package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rollcall-mq/rollcall/gateway/admin/rest"
)

func topicCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topic",
		Short: "List, create, describe, alter and delete topics of a running gateway",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(topicListCommand(), topicCreateCommand(), topicDescribeCommand(), topicAlterCommand(), topicDeleteCommand())
	return cmd
}

func topicPath(name string) string { return "/v1/topics/" + url.PathEscape(name) }

func topicListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List topics, by name", Args: noArgs}
	connect, output := withAdmin(cmd), withOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		gateway, err := connect()
		if err != nil {
			return err
		}
		var list struct {
			Topics []rest.TopicLine `json:"topics"`
		}
		if err := gateway.call(cmd.Context(), http.MethodGet, "/v1/topics", nil, &list); err != nil {
			return err
		}
		if *output == outputJSON {
			return printJSON(cmd.OutOrStdout(), list.Topics)
		}
		t := newTable(cmd.OutOrStdout(), "TOPIC", "PARTITIONS", "ID")
		for _, topic := range list.Topics {
			t.row(topic.Topic, topic.Partitions, topic.ID)
		}
		return t.flush()
	}
	return cmd
}

func topicCreateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "create TOPIC...", Short: "Create topics", Args: someArgs}
	connect := withAdmin(cmd)
	partitions := cmd.Flags().Int32("partitions", 0, "how many `PARTITIONS`; the default is num.partitions of the gateway")
	configs := cmd.Flags().StringArray("set", nil, "give it a config, `KEY=VALUE`; may be given again")
	cmd.RunE = func(cmd *cobra.Command, topics []string) error {
		set, err := keyValues(*configs)
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("partitions") && *partitions < 1 {
			return usageError{fmt.Errorf("--partitions %d: a topic has one at least", *partitions)}
		}
		gateway, err := connect()
		if err != nil {
			return err
		}
		for _, name := range topics {
			var created rest.TopicDescription
			topic := rest.NewTopic{Topic: name, Partitions: *partitions, Configs: set}
			if err := gateway.call(cmd.Context(), http.MethodPost, "/v1/topics", &topic, &created); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "created topic %s with %d partitions\n", created.Topic, created.Partitions)
		}
		return nil
	}
	return cmd
}

// keyValues reads what --set was given.
func keyValues(given []string) (map[string]string, error) {
	set := map[string]string{}
	for _, c := range given {
		key, value, ok := strings.Cut(c, "=")
		if !ok {
			return nil, usageError{fmt.Errorf("--set %q is not KEY=VALUE", c)}
		}
		set[key] = value
	}
	return set, nil
}

func topicDescribeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "describe TOPIC...", Short: "Show the offsets and configs of topics", Args: someArgs}
	connect, output := withAdmin(cmd), withOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, topics []string) error {
		gateway, err := connect()
		if err != nil {
			return err
		}
		return describeEach(cmd, gateway, *output, topics, topicPath, describeTopic)
	}
	return cmd
}

// describeTopic prints a topic as a table, with the configs that somebody set.
func describeTopic(w io.Writer, d *rest.TopicDescription) error {
	fmt.Fprintf(w, "topic %s: id %s, %d partitions\n", d.Topic, d.ID, d.Partitions)
	for _, c := range d.Configs {
		if !c.Default {
			fmt.Fprintf(w, "  %s=%s\n", c.Name, c.Value)
		}
	}
	t := newTable(w, "PARTITION", "START", "END")
	for _, o := range d.Offsets {
		t.row(o.Partition, o.Start, o.End)
	}
	return t.flush()
}

func topicAlterCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "alter TOPIC...", Short: "Change the configs of topics, or add partitions", Args: someArgs}
	connect := withAdmin(cmd)
	partitions := cmd.Flags().Int32("partitions", 0, "how many `PARTITIONS` there are to be")
	set := cmd.Flags().StringArray("set", nil, "set a config, `KEY=VALUE`; may be given again")
	unset := cmd.Flags().StringArray("unset", nil, "let the config `KEY` go back to its default; may be given again")
	cmd.RunE = func(cmd *cobra.Command, topics []string) error {
		change, err := topicChange(*partitions, *set, *unset)
		if err != nil {
			return err
		}
		gateway, err := connect()
		if err != nil {
			return err
		}
		for _, name := range topics {
			var t rest.TopicDescription
			if err := gateway.call(cmd.Context(), http.MethodPatch, topicPath(name), change, &t); err != nil {
				return err
			}
			if *partitions > 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "topic %s has %d partitions\n", t.Topic, t.Partitions)
			}
			for _, c := range t.Configs {
				if _, ok := change.Configs[c.Name]; ok {
					fmt.Fprintf(cmd.OutOrStdout(), "topic %s has %s=%s\n", t.Topic, c.Name, c.Value)
				}
			}
		}
		return nil
	}
	return cmd
}

// topicChange is what the flags of topic alter ask for.
func topicChange(partitions int32, set, unset []string) (*rest.TopicChange, error) {
	values, err := keyValues(set)
	if err != nil {
		return nil, err
	}
	change := &rest.TopicChange{Partitions: partitions, Configs: map[string]*string{}}
	for key, value := range values {
		change.Configs[key] = &value
	}
	for _, key := range unset {
		if _, both := values[key]; both {
			return nil, usageError{fmt.Errorf("%s is both --set and --unset", key)}
		}
		change.Configs[key] = nil
	}
	if partitions == 0 && len(change.Configs) == 0 {
		return nil, usageError{errors.New("nothing to change: give --partitions, --set or --unset")}
	}
	return change, nil
}

func topicDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "delete TOPIC...", Short: "Delete topics, with their records and the offsets committed for them", Args: someArgs}
	connect, execute := withAdmin(cmd), withExecute(cmd)
	cmd.RunE = func(cmd *cobra.Command, topics []string) error {
		gateway, err := connect()
		if err != nil {
			return err
		}
		for _, name := range topics {
			var t rest.TopicDescription
			if err := gateway.call(cmd.Context(), http.MethodGet, topicPath(name), nil, &t); err != nil {
				return err
			}
			records := int64(0)
			for _, o := range t.Offsets {
				records += o.End - o.Start
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s topic %s with %d partitions and up to %d records\n", execute.verb("delete"), name, t.Partitions, records)
			if !execute.yes {
				continue
			}
			if err := gateway.call(cmd.Context(), http.MethodDelete, topicPath(name), nil, nil); err != nil {
				return err
			}
		}
		return execute.hint(cmd)
	}
	return cmd
}
