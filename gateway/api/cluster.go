package api

import (
	"slices"
	"sync/atomic"
)

// Cluster is what Metadata, FindCoordinator and DescribeCluster tell clients
// about the gateways that stand together. It is immutable: a change is a new one,
// so that an answer is made from one view.
type Cluster struct {
	// ID is the cluster id, made at bootstrap.
	ID string
	// NodeID is this process.
	NodeID int32
	// ControllerID is the node that clients send topic administration to.
	ControllerID int32
	// Nodes are all gateways, this one included, by ascending id.
	Nodes []Node
}

// Node is one gateway.
type Node struct {
	ID   int32
	Rack *string
	// Endpoints are the advertised addresses, one a listener name.
	Endpoints []Endpoint
}

// Endpoint is an address that a node advertises for one of its listeners.
type Endpoint struct {
	Listener string
	Host     string
	Port     int32
}

// Broker is a node as the clients of one listener see it.
type Broker struct {
	ID   int32
	Host string
	Port int32
	Rack *string
}

// Brokers returns the nodes that can be reached through the listener.
func (c *Cluster) Brokers(listener string) []Broker {
	brokers := make([]Broker, 0, len(c.Nodes))
	for i := range c.Nodes {
		if b, ok := c.Nodes[i].on(listener); ok {
			brokers = append(brokers, b)
		}
	}
	return brokers
}

// Broker returns the node as it can be reached through the listener, and false
// if it cannot.
func (c *Cluster) Broker(node int32, listener string) (Broker, bool) {
	i := slices.IndexFunc(c.Nodes, func(n Node) bool { return n.ID == node })
	if i < 0 {
		return Broker{}, false
	}
	return c.Nodes[i].on(listener)
}

func (n *Node) on(listener string) (Broker, bool) {
	for _, e := range n.Endpoints {
		if e.Listener == listener {
			return Broker{ID: n.ID, Host: e.Host, Port: e.Port, Rack: n.Rack}, true
		}
	}
	return Broker{}, false
}

// ClusterView holds the current [Cluster]. Whoever knows the addresses sets it
// before connections are served; handlers read it once per request.
type ClusterView struct{ current atomic.Pointer[Cluster] }

// NewClusterView returns a view of c.
func NewClusterView(c *Cluster) *ClusterView {
	v := new(ClusterView)
	v.Set(c)
	return v
}

// Set replaces the cluster.
func (v *ClusterView) Set(c *Cluster) { v.current.Store(c) }

// Get returns the cluster; an empty one before the first Set.
func (v *ClusterView) Get() *Cluster {
	if c := v.current.Load(); c != nil {
		return c
	}
	return &Cluster{NodeID: -1, ControllerID: -1}
}
