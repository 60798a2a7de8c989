package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// checkTimeout is how long `rollcall check` waits for an answer.
const checkTimeout = 5 * time.Second

// checkAnswerMax is how many bytes of an answer `rollcall check` prints.
const checkAnswerMax = 4096

func checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Exit with 0 if the gateway that this configuration describes is ready, else say why not",
		Args:  noArgs,
	}
	load := withConfig(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, _, err := load()
		if err != nil {
			return err
		}
		base, err := c.AdminURL()
		if err != nil {
			return err
		}
		answer, err := ask(base + "/readyz")
		if err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), answer)
		return nil
	}
	return cmd
}

// ask returns the line that a health URL answers, as an error unless it is 200.
func ask(url string) (string, error) {
	client := &http.Client{
		Timeout:   checkTimeout,
		Transport: &http.Transport{Proxy: nil}, // health is never asked through a proxy
	}
	resp, err := client.Get(url)
	if err != nil {
		return "", fmt.Errorf("not ready: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, checkAnswerMax))
	if err != nil {
		return "", fmt.Errorf("not ready: reading the answer of %s: %w", url, err)
	}
	line := strings.TrimSpace(string(body))
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("not ready: %s", line)
	}
	return line, nil
}
