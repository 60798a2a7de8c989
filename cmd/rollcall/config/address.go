package config

import (
	"errors"
	"net"
	"strings"

	"github.com/rollcall-mq/rollcall/gateway"
)

// parseEndpoints parses NAME://HOST:PORT,…; an entry without a name is PLAINTEXT.
func parseEndpoints(text string) ([]gateway.Endpoint, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	entries := strings.Split(text, ",")
	for i, entry := range entries {
		if entry = strings.TrimSpace(entry); !strings.Contains(entry, "://") {
			entry = "PLAINTEXT://" + entry
		}
		entries[i] = entry
	}
	return gateway.ParseEndpoints(strings.Join(entries, ","))
}

// loopback tells whether a HOST:PORT can be reached from this machine only.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// AdminURL is the base URL of the HTTP server as this machine reaches it, or an
// error if there is none.
func (c *Config) AdminURL() (string, error) {
	if c.AdminListen == "" {
		return "", errors.New("admin.listen is empty: there is no HTTP server to ask")
	}
	host, port, err := net.SplitHostPort(c.AdminListen)
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}
