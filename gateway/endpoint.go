package gateway

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Endpoint is one entry of listeners or advertised.listeners: NAME://host:port.
type Endpoint struct {
	// Name is in upper case.
	Name string
	// Host has no brackets, also if it is an IPv6 address. Empty means all addresses.
	Host string
	Port int
}

// String is the form that [ParseEndpoints] reads.
func (e Endpoint) String() string { return e.Name + "://" + e.Address() }

// Address is host:port, as net takes it.
func (e Endpoint) Address() string { return net.JoinHostPort(e.Host, strconv.Itoa(e.Port)) }

// Wildcard tells whether the host stands for all addresses of the machine.
func (e Endpoint) Wildcard() bool {
	if e.Host == "" {
		return true
	}
	ip := net.ParseIP(e.Host)
	return ip != nil && ip.IsUnspecified()
}

// securityProtocols are names for which Kafka has a meaning that is not built yet.
var securityProtocols = []string{"SSL", "SASL_PLAINTEXT", "SASL_SSL"}

// ParseEndpoints reads the value of listeners or advertised.listeners: a list with
// commas. Names may be any but those of security protocols that are not spoken.
func ParseEndpoints(list string) ([]Endpoint, error) {
	var endpoints []Endpoint
	for _, item := range strings.Split(list, ",") {
		item = strings.TrimSpace(item)
		e, err := parseEndpoint(item)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", item, err)
		}
		for _, other := range endpoints {
			if other.Name == e.Name {
				return nil, fmt.Errorf("%q: the name %s is used twice", item, e.Name)
			}
		}
		endpoints = append(endpoints, e)
	}
	return endpoints, nil
}

func parseEndpoint(item string) (Endpoint, error) {
	name, address, ok := strings.Cut(item, "://")
	if !ok || name == "" {
		return Endpoint{}, fmt.Errorf("must look like PLAINTEXT://host:port")
	}
	e := Endpoint{Name: strings.ToUpper(name)}
	if strings.IndexFunc(e.Name, func(r rune) bool {
		return !('A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' || r == '.')
	}) >= 0 {
		return e, fmt.Errorf("the name %q has other characters than letters, digits, '_', '-' and '.'", name)
	}
	if slices.Contains(securityProtocols, e.Name) {
		return e, fmt.Errorf("the security protocol %s is not supported: only plain text is", e.Name)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return e, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return e, fmt.Errorf("%q is not a port", port)
	}
	e.Host, e.Port = host, int(number)
	return e, nil
}

// Listen opens the endpoint. If its port is 0, a free one is taken; [Bound] tells
// which.
func Listen(ctx context.Context, e Endpoint) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", e.Address())
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", e, err)
	}
	return ln, nil
}

// Bound is the endpoint with the port that the listener really has.
func Bound(e Endpoint, ln net.Listener) Endpoint {
	if a, ok := ln.Addr().(*net.TCPAddr); ok {
		e.Port = a.Port
	}
	return e
}

// Advertise tells for each listener what clients that came in on it are told to
// connect to: its entry in advertised, or else the listener itself. A port 0 in
// advertised means the one that the listener has. Listeners are as [Bound] gave them;
// the results have the same order.
func Advertise(listeners, advertised []Endpoint) ([]Endpoint, error) {
	result := slices.Clone(listeners)
	for _, a := range advertised {
		i := slices.IndexFunc(listeners, func(l Endpoint) bool { return l.Name == a.Name })
		if i < 0 {
			return nil, fmt.Errorf("advertised.listeners has %s, but there is no listener %s", a, a.Name)
		}
		if a.Wildcard() {
			return nil, fmt.Errorf("advertised.listeners has %s: clients cannot connect to a wildcard address", a)
		}
		if a.Port == 0 {
			a.Port = listeners[i].Port
		}
		result[i] = a
	}
	for _, e := range result {
		if e.Wildcard() {
			return nil, fmt.Errorf("the listener %s is on all addresses: set advertised.listeners to the one that clients can reach, such as %s://localhost:%d", e, e.Name, e.Port)
		}
	}
	return result, nil
}
