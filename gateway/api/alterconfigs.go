package api

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rollcall-mq/rollcall/store/topics"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// alteration is what a request wants to change of one resource.
type alteration struct {
	topics.Alteration
	kind kmsg.ConfigResourceType
	name string
	// nulls are the configurations to which null is to be set, twice whether one is
	// named twice.
	nulls []string
	twice bool
}

func (a *alteration) add(op topics.ConfigOp, name string, value *string) {
	c := topics.ConfigChange{Op: op, Name: name}
	if value != nil {
		c.Value = *value
	} else if op != topics.DeleteConfig {
		a.nulls = append(a.nulls, name)
	}
	for i := range a.Changes {
		a.twice = a.twice || a.Changes[i].Name == name
	}
	a.Changes = append(a.Changes, c)
}

// alterAll makes the alterations and answers with resp, in which set puts the outcome
// of one of them.
func (h *TopicHandlers) alterAll(c *Call, all []alteration, only bool, resp kmsg.Response, set func(i int, code int16, message *string)) {
	type resource struct {
		kind kmsg.ConfigResourceType
		name string
	}
	times := make(map[resource]int, len(all))
	for i := range all {
		times[resource{all[i].kind, all[i].name}]++
	}
	c.Await(len(all)+1, func() kmsg.Response { return resp })
	for i := range all {
		a := &all[i]
		done := func(r *topics.Refusal, err error) {
			if r == nil {
				set(i, codeFor(err), nil)
			} else {
				set(i, int16(r.Code), nullable(r.Message))
			}
			c.Done()
		}
		if times[resource{a.kind, a.name}] > 1 {
			done(refusal(kerr.InvalidRequest, "Each resource must appear at most once."), nil)
			continue
		}
		h.alter(c, a, only, done)
	}
	c.Done()
}

// alter makes one alteration. The order of the checks is that of Kafka's
// ConfigAdminManager, whose part before the controller comes first.
func (h *TopicHandlers) alter(c *Call, a *alteration, only bool, done func(*topics.Refusal, error)) {
	r := h.refusedAlteration(c, a)
	switch {
	case r != nil:
		done(r, nil)
	case a.kind == kmsg.ConfigResourceTypeTopic:
		h.Log.AlterTopic(a.name, a.Alteration, only, done)
	case a.kind == kmsg.ConfigResourceTypeGroupConfig:
		h.Log.AlterGroup(a.name, a.Alteration, only, done)
	default:
		done(nil, nil) // of the node nothing is left to change
	}
}

func (h *TopicHandlers) refusedAlteration(c *Call, a *alteration) *topics.Refusal {
	switch {
	case a.twice:
		return refusal(kerr.InvalidRequest, "Error due to duplicate config keys")
	case len(a.nulls) > 0:
		return refusal(kerr.InvalidRequest, "Null value not supported for : "+strings.Join(a.nulls, ","))
	}
	switch a.kind {
	case kmsg.ConfigResourceTypeTopic:
		return h.refusedTopicAlteration(c, a)
	case kmsg.ConfigResourceTypeGroupConfig:
		return h.refusedGroupAlteration(c, a)
	case kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger:
		if a.kind == kmsg.ConfigResourceTypeBrokerLogger && a.Replace {
			break // Kafka's loggers are for IncrementalAlterConfigs alone
		}
		return h.refusedNodeAlteration(c, a)
	}
	return refusal(kerr.InvalidRequest, fmt.Sprintf("Unknown resource type %d", a.kind))
}

func (h *TopicHandlers) refusedTopicAlteration(c *Call, a *alteration) *topics.Refusal {
	switch {
	case !h.allowed(c, OpAlterConfigs, ResourceTopic, a.name):
		return refusal(kerr.TopicAuthorizationFailed, kerr.TopicAuthorizationFailed.Description)
	case a.name == "":
		return refusal(kerr.InvalidRequest, "Default topic resources are not allowed.")
	case topics.Reserved(a.name):
		return refusal(kerr.InvalidTopicException, "Names that begin with '__' are reserved for the gateway.")
	}
	if msg := topics.CheckName(a.name); msg != "" {
		return refusal(kerr.InvalidTopicException, "Topic name is invalid: "+msg)
	}
	return nil
}

// refusedNodeAlteration refuses to set anything of the node or its loggers. To delete
// what is not set is no change.
func (h *TopicHandlers) refusedNodeAlteration(c *Call, a *alteration) *topics.Refusal {
	if !h.allowed(c, OpAlterConfigs, ResourceCluster, ClusterResource) {
		return refusal(kerr.ClusterAuthorizationFailed, kerr.ClusterAuthorizationFailed.Description)
	}
	loggers := a.kind == kmsg.ConfigResourceTypeBrokerLogger
	if a.name != "" || loggers { // no name: the defaults of all nodes
		id, err := strconv.ParseInt(a.name, 10, 32)
		if err != nil {
			return refusal(kerr.InvalidRequest, "Node id must be an integer, but it is: "+a.name)
		}
		if node := h.Cluster.Get().NodeID; int32(id) != node {
			format := "Unexpected broker id, expected %d, but received %d"
			if loggers {
				format = "Unexpected node id. Expected %d, but received %d"
			}
			return refusal(kerr.InvalidRequest, fmt.Sprintf(format, node, id))
		}
	}
	var fixed []string
	for _, change := range a.Changes {
		if loggers {
			return refusal(kerr.InvalidConfig, fmt.Sprintf("Logger %s does not exist!", change.Name))
		}
		if change.Op != topics.DeleteConfig {
			fixed = append(fixed, change.Name)
		}
	}
	if fixed != nil {
		return refusal(kerr.InvalidRequest, fmt.Sprintf("Cannot update these configs dynamically: [%s]", strings.Join(fixed, ", ")))
	}
	return nil
}

func (h *TopicHandlers) refusedGroupAlteration(c *Call, a *alteration) *topics.Refusal {
	switch {
	case !h.allowed(c, OpAlterConfigs, ResourceGroup, a.name):
		return refusal(kerr.GroupAuthorizationFailed, kerr.GroupAuthorizationFailed.Description)
	case a.name == "":
		return refusal(kerr.InvalidRequest, "Default group resources are not allowed.")
	}
	return nil
}
