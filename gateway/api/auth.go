package api

// Resource is the kind of thing that an operation is allowed or denied on.
type Resource uint8

// The resources that handlers ask for, with Kafka's numbers.
const (
	ResourceTopic           Resource = 2
	ResourceGroup           Resource = 3
	ResourceCluster         Resource = 4
	ResourceTransactionalID Resource = 5
)

// Operation is what a principal wants to do with a resource, with Kafka's numbers.
type Operation uint8

// The operations that handlers ask for.
const (
	OpRead            Operation = 3
	OpWrite           Operation = 4
	OpCreate          Operation = 5
	OpDelete          Operation = 6
	OpAlter           Operation = 7
	OpDescribe        Operation = 8
	OpClusterAction   Operation = 9
	OpDescribeConfigs Operation = 10
	OpAlterConfigs    Operation = 11
	OpIdempotentWrite Operation = 12
)

// ClusterResource is the name of the one resource of kind [ResourceCluster].
const ClusterResource = "kafka-cluster"

// Authorizer decides who may do what. It answers from memory.
type Authorizer interface {
	Authorize(s *Session, op Operation, kind Resource, name string) bool
}

// AllowAll is the [Authorizer] of a gateway without security.
type AllowAll struct{}

// Authorize allows everything.
func (AllowAll) Authorize(*Session, Operation, Resource, string) bool { return true }
