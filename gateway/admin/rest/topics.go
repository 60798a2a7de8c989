package rest

import (
	"cmp"
	"context"
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicTimeoutMillis is how long the creation of a topic may take.
const topicTimeoutMillis = 10_000

// TopicLine is a topic in a list.
type TopicLine struct {
	Topic      string `json:"topic"`
	ID         string `json:"id" doc:"As Kafka's tools show it."`
	Internal   bool   `json:"internal"`
	Partitions int    `json:"partitions"`
}

// TopicDescription is a topic with everything that is known of it.
type TopicDescription struct {
	TopicLine
	Offsets []PartitionOffsets `json:"offsets"`
	Configs []TopicConfig      `json:"configs"`
}

// PartitionOffsets is where the records of a partition begin and end.
type PartitionOffsets struct {
	Partition int32 `json:"partition"`
	Start     int64 `json:"start" doc:"The offset of the first record."`
	End       int64 `json:"end" doc:"The offset of the next record."`
}

// TopicConfig is a config of a topic with its value.
type TopicConfig struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Default bool   `json:"default" doc:"Nobody set it."`
}

// NewTopic is a topic to create.
type NewTopic struct {
	Topic      string            `json:"topic"`
	Partitions int32             `json:"partitions,omitempty" minimum:"1" doc:"num.partitions if it is missing."`
	Configs    map[string]string `json:"configs,omitempty"`
}

// TopicChange is what to change of a topic.
type TopicChange struct {
	Partitions int32              `json:"partitions,omitempty" minimum:"1" doc:"How many there are to be; more than there are."`
	Configs    map[string]*string `json:"configs,omitempty" doc:"Values to set; null goes back to the default."`
}

type (
	topicInput struct {
		Topic string `path:"topic"`
	}
	topicsOutput struct {
		Body struct {
			Topics []TopicLine `json:"topics"`
		}
	}
	topicOutput       struct{ Body TopicDescription }
	topicOffsetsInput struct {
		Topic string `path:"topic"`
		At    string `query:"at" doc:"Start is the first record that is not older than this, or end: RFC 3339, or a duration back from now such as 2h."`
	}
	topicOffsetsOutput struct {
		Body struct {
			Offsets []PartitionOffsets `json:"offsets"`
		}
	}
	newTopicInput   struct{ Body NewTopic }
	alterTopicInput struct {
		Topic string `path:"topic"`
		Body  TopicChange
	}
)

func (h *handlers) registerTopics(a huma.API) {
	huma.Register(a, operation("list-topics", http.MethodGet, "/v1/topics", "List topics, by name", "topics"), h.listTopics)
	huma.Register(a, operation("describe-topic", http.MethodGet, "/v1/topics/{topic}",
		"Describe a topic, its offsets and configs", "topics"), h.describeTopic)
	create := operation("create-topic", http.MethodPost, "/v1/topics", "Create a topic", "topics")
	create.DefaultStatus, create.Errors = http.StatusCreated, []int{http.StatusConflict, http.StatusServiceUnavailable}
	huma.Register(a, create, h.createTopic)
	huma.Register(a, operation("list-topic-offsets", http.MethodGet, "/v1/topics/{topic}/offsets",
		"Where the records of a topic begin and end, also from a time on", "topics"), h.topicOffsets)
	huma.Register(a, operation("alter-topic", http.MethodPatch, "/v1/topics/{topic}", "Change the configs of a topic, or add partitions", "topics"), h.alterTopic)
	huma.Register(a, operation("delete-topic", http.MethodDelete, "/v1/topics/{topic}",
		"Delete a topic, its records and the offsets that groups committed for it", "topics"), h.deleteTopic)
}

// metadata describes topics, all of them without names.
func (h *handlers) metadata(ctx context.Context, names ...string) ([]kmsg.MetadataResponseTopic, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = false
	for _, name := range names {
		req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{Topic: &name})
	}
	resp, err := ask[*kmsg.MetadataResponse](ctx, h.Kafka, req, 12)
	if err != nil {
		return nil, err
	}
	return resp.Topics, nil
}

func topicLine(t *kmsg.MetadataResponseTopic) TopicLine {
	line := TopicLine{ID: base64.RawURLEncoding.EncodeToString(t.TopicID[:]), Internal: t.IsInternal, Partitions: len(t.Partitions)}
	if t.Topic != nil {
		line.Topic = *t.Topic
	}
	return line
}

func (h *handlers) listTopics(ctx context.Context, _ *struct{}) (*topicsOutput, error) {
	topics, err := h.metadata(ctx)
	if err != nil {
		return nil, err
	}
	out := &topicsOutput{}
	out.Body.Topics = make([]TopicLine, len(topics))
	for i := range topics {
		out.Body.Topics[i] = topicLine(&topics[i])
	}
	slices.SortFunc(out.Body.Topics, func(a, b TopicLine) int { return cmp.Compare(a.Topic, b.Topic) })
	return out, nil
}

func (h *handlers) describeTopic(ctx context.Context, in *topicInput) (*topicOutput, error) {
	topics, err := h.metadata(ctx, in.Topic)
	if err != nil {
		return nil, err
	}
	if err := topicError(in.Topic, topics[0].ErrorCode, nil); err != nil {
		return nil, err
	}
	out := &topicOutput{Body: TopicDescription{TopicLine: topicLine(&topics[0])}}
	t := &out.Body
	if t.Offsets, err = h.partitionOffsets(ctx, in.Topic, t.Partitions); err != nil {
		return nil, err
	}
	t.Configs, err = h.topicConfigs(ctx, in.Topic)
	return out, err
}

// partitionOffsets asks for the first and the next offset of every partition.
func (h *handlers) partitionOffsets(ctx context.Context, topic string, partitions int) ([]PartitionOffsets, error) {
	starts, err := h.offsetsAt(ctx, topic, partitions, earliest)
	if err != nil {
		return nil, err
	}
	ends, err := h.offsetsAt(ctx, topic, partitions, latest)
	if err != nil {
		return nil, err
	}
	all := make([]PartitionOffsets, partitions)
	for i := range all {
		all[i] = PartitionOffsets{Partition: int32(i), Start: starts[i], End: ends[i]}
	}
	return all, nil
}

// Timestamps of ListOffsets that are none.
const (
	latest   = -1
	earliest = -2
)

// offsetsAt asks for an offset of every partition by a timestamp in milliseconds; it
// is -1 if no record is as new.
func (h *handlers) offsetsAt(ctx context.Context, topic string, partitions int, timestamp int64) ([]int64, error) {
	req, t := kmsg.NewPtrListOffsetsRequest(), kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	for i := range partitions {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = int32(i), timestamp
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	resp, err := ask[*kmsg.ListOffsetsResponse](ctx, h.Kafka, req, 7)
	if err != nil {
		return nil, err
	}
	offsets := make([]int64, partitions)
	for _, p := range resp.Topics[0].Partitions {
		if err := topicError(topic, p.ErrorCode, nil); err != nil {
			return nil, err
		}
		offsets[p.Partition] = p.Offset
	}
	return offsets, nil
}

// topicOffsets lists where the records of a topic begin and end; with at, they begin
// with the first that is not older than that.
func (h *handlers) topicOffsets(ctx context.Context, in *topicOffsetsInput) (*topicOffsetsOutput, error) {
	topics, err := h.metadata(ctx, in.Topic)
	if err != nil {
		return nil, err
	}
	if err := topicError(in.Topic, topics[0].ErrorCode, nil); err != nil {
		return nil, err
	}
	out, partitions := &topicOffsetsOutput{}, len(topics[0].Partitions)
	if out.Body.Offsets, err = h.partitionOffsets(ctx, in.Topic, partitions); err != nil || in.At == "" {
		return out, err
	}
	at, err := parseTime("at", in.At)
	if err != nil {
		return nil, err
	}
	starts, err := h.offsetsAt(ctx, in.Topic, partitions, int64(at))
	if err != nil {
		return nil, err
	}
	for i, start := range starts {
		if start < 0 {
			start = out.Body.Offsets[i].End
		}
		out.Body.Offsets[i].Start = start
	}
	return out, nil
}

func (h *handlers) topicConfigs(ctx context.Context, topic string) ([]TopicConfig, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: topic}}
	resp, err := ask[*kmsg.DescribeConfigsResponse](ctx, h.Kafka, req, 4)
	if err != nil {
		return nil, err
	}
	r := &resp.Resources[0]
	if err := topicError(topic, r.ErrorCode, r.ErrorMessage); err != nil {
		return nil, err
	}
	all := make([]TopicConfig, len(r.Configs))
	for i, c := range r.Configs {
		all[i] = TopicConfig{Name: c.Name, Default: c.Source != kmsg.ConfigSourceDynamicTopicConfig}
		if c.Value != nil {
			all[i].Value = *c.Value
		}
	}
	return all, nil
}

func (h *handlers) createTopic(ctx context.Context, in *newTopicInput) (*topicOutput, error) {
	req, t := kmsg.NewPtrCreateTopicsRequest(), kmsg.NewCreateTopicsRequestTopic()
	req.TimeoutMillis = topicTimeoutMillis
	t.Topic, t.NumPartitions, t.ReplicationFactor = in.Body.Topic, in.Body.Partitions, -1
	if t.NumPartitions == 0 {
		t.NumPartitions = -1
	}
	for name, value := range in.Body.Configs {
		t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: name, Value: &value})
	}
	req.Topics = append(req.Topics, t)
	resp, err := ask[*kmsg.CreateTopicsResponse](ctx, h.Kafka, req, 7)
	if err != nil {
		return nil, err
	}
	if err := topicError(in.Body.Topic, resp.Topics[0].ErrorCode, resp.Topics[0].ErrorMessage); err != nil {
		return nil, err
	}
	return h.describeTopic(ctx, &topicInput{in.Body.Topic})
}

// alterTopic first checks both changes and then makes them, so that a bad one leaves
// the topic as it was.
func (h *handlers) alterTopic(ctx context.Context, in *alterTopicInput) (*topicOutput, error) {
	if in.Body.Partitions == 0 && len(in.Body.Configs) == 0 {
		return nil, huma.Error422UnprocessableEntity("neither partitions nor configs are given")
	}
	for _, only := range []bool{true, false} {
		if err := h.addPartitions(ctx, in, only); err != nil {
			return nil, err
		}
		if err := h.alterConfigs(ctx, in, only); err != nil {
			return nil, err
		}
	}
	return h.describeTopic(ctx, &topicInput{in.Topic})
}

func (h *handlers) addPartitions(ctx context.Context, in *alterTopicInput, only bool) error {
	if in.Body.Partitions == 0 {
		return nil
	}
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis, req.ValidateOnly = topicTimeoutMillis, only
	req.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: in.Topic, Count: in.Body.Partitions}}
	resp, err := ask[*kmsg.CreatePartitionsResponse](ctx, h.Kafka, req, 3)
	if err != nil {
		return err
	}
	return topicError(in.Topic, resp.Topics[0].ErrorCode, resp.Topics[0].ErrorMessage)
}

func (h *handlers) alterConfigs(ctx context.Context, in *alterTopicInput, only bool) error {
	if len(in.Body.Configs) == 0 {
		return nil
	}
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.ValidateOnly = only
	r := kmsg.IncrementalAlterConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: in.Topic}
	for _, name := range slices.Sorted(maps.Keys(in.Body.Configs)) {
		rc := kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: name, Value: in.Body.Configs[name]}
		if rc.Value == nil {
			rc.Op = kmsg.IncrementalAlterConfigOpDelete
		}
		r.Configs = append(r.Configs, rc)
	}
	req.Resources = append(req.Resources, r)
	resp, err := ask[*kmsg.IncrementalAlterConfigsResponse](ctx, h.Kafka, req, 1)
	if err != nil {
		return err
	}
	return topicError(in.Topic, resp.Resources[0].ErrorCode, resp.Resources[0].ErrorMessage)
}

func (h *handlers) deleteTopic(ctx context.Context, in *topicInput) (*struct{}, error) {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = topicTimeoutMillis
	req.TopicNames = []string{in.Topic}
	resp, err := ask[*kmsg.DeleteTopicsResponse](ctx, h.Kafka, req, 5)
	if err != nil {
		return nil, err
	}
	return nil, topicError(in.Topic, resp.Topics[0].ErrorCode, resp.Topics[0].ErrorMessage)
}

// topicError is [kafkaError] about a topic.
func topicError(topic string, code int16, message *string) error {
	return kafkaError("topic "+strconv.Quote(topic), code, message)
}
