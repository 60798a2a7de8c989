package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Listener is one entry of listeners or advertised.listeners.
type Listener struct {
	Name string
	Host string
	Port int
}

// Address is the HOST:PORT of the listener.
func (l Listener) Address() string { return net.JoinHostPort(l.Host, strconv.Itoa(l.Port)) }

func (l Listener) String() string { return l.Name + "://" + l.Address() }

// Wildcard tells whether the host stands for all interfaces.
func (l Listener) Wildcard() bool {
	ip := net.ParseIP(l.Host)
	return l.Host == "" || ip != nil && ip.IsUnspecified()
}

// AdvertisedFor returns what clients of a listener are told to connect to, given
// the port that it really listens on.
func (c *Config) AdvertisedFor(l Listener, port int) Listener {
	i := slices.IndexFunc(c.Advertised, func(a Listener) bool { return a.Name == l.Name })
	if i >= 0 {
		l = c.Advertised[i]
	}
	if l.Port == 0 || i < 0 {
		l.Port = port
	}
	return l
}

// securedNames are listener names that stand for a security protocol in Kafka.
// Taking them for plain text would expose what was meant to be protected.
var securedNames = []string{"SSL", "SASL_PLAINTEXT", "SASL_SSL"}

// parseListeners parses NAME://HOST:PORT,…; an entry without a name is PLAINTEXT.
func parseListeners(text string) ([]Listener, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var all []Listener
	for entry := range strings.SplitSeq(text, ",") {
		l, err := parseListener(strings.TrimSpace(entry))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(other Listener) bool { return other.Name == l.Name }) {
			return nil, fmt.Errorf("the name %s occurs twice", l.Name)
		}
		all = append(all, l)
	}
	return all, nil
}

func parseListener(entry string) (Listener, error) {
	name, address, found := strings.Cut(entry, "://")
	if !found {
		name, address = "PLAINTEXT", entry
	}
	name = strings.ToUpper(name)
	if name == "" || strings.ContainsAny(name, " /:") {
		return Listener{}, fmt.Errorf("%q has no usable name before ://", entry)
	}
	if slices.Contains(securedNames, name) {
		return Listener{}, fmt.Errorf("%s is not available: listeners are plain text", name)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return Listener{}, fmt.Errorf("%q is not NAME://HOST:PORT", entry)
	}
	if err := checkPort(port); err != nil {
		return Listener{}, err
	}
	n, _ := strconv.Atoi(port) // checked above
	return Listener{Name: name, Host: host, Port: n}, nil
}

// checkListeners checks listeners and advertised.listeners against each other.
func (c *Config) checkListeners(refuse func(key, format string, args ...any)) {
	if len(c.Listeners) == 0 {
		refuse("listeners", "must name at least one listener")
	}
	for _, a := range c.Advertised {
		if a.Wildcard() {
			refuse("advertised.listeners", "%s is no address that a client can connect to", a)
		}
		if !slices.ContainsFunc(c.Listeners, func(l Listener) bool { return l.Name == a.Name }) {
			refuse("advertised.listeners", "there is no listener %s in listeners", a.Name)
		}
	}
	for i, l := range c.Listeners {
		known := slices.ContainsFunc(c.Advertised, func(a Listener) bool { return a.Name == l.Name })
		if l.Wildcard() && !known {
			refuse("listeners", "%s listens on all interfaces, so clients must be told an address: set advertised.listeners (or --advertise), for instance %s://localhost:%d", l, l.Name, l.Port)
		}
		if l.Port != 0 && slices.ContainsFunc(c.Listeners[:i], func(o Listener) bool { return o.Port == l.Port && o.Host == l.Host }) {
			refuse("listeners", "two listeners on %s", l.Address())
		}
	}
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
