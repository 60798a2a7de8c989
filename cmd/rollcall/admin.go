package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/spf13/cobra"

	"github.com/rollcall-mq/rollcall/cmd/rollcall/config"
)

// adminConnectTimeout is how long a command waits for the first byte of an answer.
const adminConnectTimeout = 30 * time.Second

// admin asks a running gateway over HTTP.
type admin struct {
	base, token string
	http        *http.Client
}

// withAdmin gives a command the flags that say which gateway it talks to. The
// returned function makes the client.
func withAdmin(cmd *cobra.Command) func() (*admin, error) {
	flags := cmd.Flags()
	file := flags.String("config", os.Getenv(config.EnvFile), "read admin.listen and admin.token from this YAML `FILE`")
	address := &keyValue{kind: "HOST:PORT"}
	flags.Var(address, "admin", "the admin address of the gateway (key admin.listen)")
	return func() (*admin, error) {
		in := config.Input{File: *file, Environ: os.Environ(), Flags: map[string]config.Flag{}}
		c, _, err := config.Load(in)
		if err != nil {
			return nil, err
		}
		if address.text != "" { // not a flag of the configuration: it may be another machine's
			c.AdminListen = address.text
		}
		base, err := c.AdminURL()
		if err != nil {
			return nil, usageError{fmt.Errorf("--admin %s: %w", address.text, err)}
		}
		return &admin{base: base, token: c.AdminToken, http: &http.Client{
			Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: adminConnectTimeout},
		}}, nil
	}
}

// call sends a request and decodes the JSON answer into out; in and out may be nil.
func (a *admin) call(ctx context.Context, method, path string, in, out any) error {
	body, err := a.open(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer body.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(body).Decode(out); err != nil {
		return fmt.Errorf("the answer of %s%s is not what was expected: %w", a.base, path, err)
	}
	return nil
}

// open sends a request and returns the body of an answer that is no error.
func (a *admin) open(ctx context.Context, method, path string, in any) (io.ReadCloser, error) {
	var content io.Reader
	if in != nil {
		encoded, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, content)
	if err != nil {
		return nil, err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the gateway: %w; is it running, and is --admin its admin address?", errors.Unwrap(err))
	}
	if resp.StatusCode >= http.StatusBadRequest {
		defer resp.Body.Close()
		return nil, refused(resp)
	}
	return resp.Body, nil
}

// refusal is what the gateway answered instead of doing what it was asked.
type refusal struct {
	status int
	line   string
}

func (r *refusal) Error() string { return r.line }

// isNotFound tells whether what was asked about is not there.
func isNotFound(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.status == http.StatusNotFound
}

// refused makes one line of an answer that is an error.
func refused(resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, checkAnswerMax))
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	var p huma.ErrorModel
	if json.Unmarshal(text, &p) != nil || p.Detail == "" {
		line := fmt.Sprintf("%s: %s", resp.Status, bytes.TrimSpace(text))
		if resp.StatusCode == http.StatusUnauthorized {
			line = fmt.Sprintf("the gateway wants its admin.token; set %s, or give its file with --config", config.EnvName("admin.token"))
		}
		return &refusal{resp.StatusCode, line}
	}
	line := p.Detail
	for _, e := range p.Errors {
		line += fmt.Sprintf("; %s: %s", e.Location, e.Message)
	}
	return &refusal{resp.StatusCode, line}
}
