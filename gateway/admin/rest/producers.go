package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rollcall-mq/rollcall/store/named"
)

// Limits of producer snapshots.
const (
	// producerIDMax is the longest id, in characters.
	producerIDMax = 200
	// producerTTLMax is the longest life that a snapshot may be given.
	producerTTLMax = 30 * 24 * time.Hour
	// producerWaitMax is how long a request may wait for a snapshot.
	producerWaitMax = 30 * time.Second
)

// ProducerOffset is how far a partition was when a producer registered.
type ProducerOffset struct {
	Topic     string `json:"topic" minLength:"1" maxLength:"249"`
	Partition int32  `json:"partition" minimum:"0"`
	Offset    int64  `json:"offset" minimum:"0"`
}

// ProducerSnapshot is what a producer registered before it began to write: the
// offsets from which on what it wrote may have to be undone.
type ProducerSnapshot struct {
	Producer string           `json:"producer"`
	Version  uint64           `json:"version" doc:"Grows with every registration; also the ETag."`
	Expires  time.Time        `json:"expires"`
	Offsets  []ProducerOffset `json:"offsets"`
}

// NewProducerSnapshot is a snapshot to register.
type NewProducerSnapshot struct {
	TTLMillis *int64           `json:"ttl_ms,omitempty" minimum:"1" maximum:"2592000000" doc:"How long the snapshot lives, 30 days at most; producer.snapshots.retention.ms if it is missing."`
	Offsets   []ProducerOffset `json:"offsets" doc:"Each partition once; there may be none."`
}

// The results of a registration.
const (
	ResultCreated       = "CREATED"
	ResultAlreadyExists = "ALREADY_EXISTS"
)

type (
	producerInput struct {
		ID   string `path:"id" doc:"1 to 200 of A-Z, a-z, 0-9, _ and -."`
		Wait int32  `query:"wait_ms" minimum:"0" maximum:"30000" doc:"Wait so long for a snapshot that is not there."`
	}
	registerInput struct {
		ID   string `path:"id" doc:"1 to 200 of A-Z, a-z, 0-9, _ and -."`
		Body NewProducerSnapshot
	}
	registerOutput struct {
		Status int
		ETag   string `header:"ETag"`
		Body   struct {
			Result string `json:"result" enum:"CREATED,ALREADY_EXISTS"`
			ProducerSnapshot
		}
	}
	producerOutput struct {
		ETag string `header:"ETag"`
		Body ProducerSnapshot
	}
	deleteProducerInput struct {
		ID      string `path:"id" doc:"1 to 200 of A-Z, a-z, 0-9, _ and -."`
		IfMatch string `header:"If-Match" doc:"Delete this version only, as an ETag has it."`
	}
	listProducersInput struct {
		Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"The most snapshots of a page."`
		After string `query:"after" doc:"The last id of the page before."`
	}
	producersOutput struct {
		Body struct {
			Producers []ProducerSnapshot `json:"producers" doc:"By id."`
			Next      string             `json:"next,omitempty" doc:"What to give as after for the next page; missing on the last one."`
		}
	}
)

func (h *handlers) registerProducers(a huma.API) {
	register := operation("register-producer", http.MethodPut, "/v1/producers/{id}",
		"Register a snapshot of offsets, unless the producer has one: then the answer has that one", "producers")
	register.DefaultStatus = http.StatusCreated
	register.Responses = map[string]*huma.Response{"200": {Description: "There was one: result is ALREADY_EXISTS."}}
	huma.Register(a, register, h.registerProducer)
	huma.Register(a, operation("get-producer", http.MethodGet, "/v1/producers/{id}",
		"The snapshot of a producer", "producers"), h.getProducer)
	huma.Register(a, operation("list-producers", http.MethodGet, "/v1/producers",
		"List the snapshots of all producers, a page at a time", "producers"), h.listProducers)
	remove := operation("delete-producer", http.MethodDelete, "/v1/producers/{id}",
		"Delete the snapshot of a producer; that it is gone already is no error", "producers")
	remove.Errors = append(remove.Errors, http.StatusPreconditionFailed)
	huma.Register(a, remove, h.deleteProducer)
}

// checkProducerID refuses ids that could not be names of files.
func checkProducerID(id string) error {
	problem := ""
	switch {
	case id == "":
		problem = "the empty string is not allowed"
	case id == "." || id == "..":
		problem = "'" + id + "' is not allowed"
	case len(id) > producerIDMax:
		problem = fmt.Sprintf("it is longer than %d characters", producerIDMax)
	case strings.ContainsFunc(id, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-'
	}):
		problem = "it contains one or more characters other than letters, digits, '_' and '-'"
	default:
		return nil
	}
	return huma.Error422UnprocessableEntity("INVALID_PRODUCER_ID: " + strconv.Quote(id) + ": " + problem)
}

// storedOffsets is the value of a row.
type storedOffsets struct {
	Version int              `json:"version"`
	Offsets []ProducerOffset `json:"offsets"`
}

// storedVersion is the version of [storedOffsets].
const storedVersion = 1

func producerSnapshot(r *named.Row) (ProducerSnapshot, error) {
	var stored storedOffsets
	if err := json.Unmarshal(r.Value, &stored); err != nil {
		return ProducerSnapshot{}, fmt.Errorf("the snapshot of producer %q cannot be read: %w", r.Name, err)
	}
	if stored.Version != storedVersion {
		return ProducerSnapshot{}, fmt.Errorf("the snapshot of producer %q has version %d, which this release does not know", r.Name, stored.Version)
	}
	return ProducerSnapshot{Producer: r.Name, Version: r.Version, Expires: r.Expires.UTC(), Offsets: stored.Offsets}, nil
}

func (h *handlers) registerProducer(_ context.Context, in *registerInput) (*registerOutput, error) {
	if err := checkProducerID(in.ID); err != nil {
		return nil, err
	}
	offsets := slices.Clone(in.Body.Offsets)
	if offsets == nil {
		offsets = []ProducerOffset{}
	}
	slices.SortFunc(offsets, func(a, b ProducerOffset) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	for i := 1; i < len(offsets); i++ {
		if a, b := &offsets[i-1], &offsets[i]; a.Topic == b.Topic && a.Partition == b.Partition {
			return nil, huma.Error422UnprocessableEntity(fmt.Sprintf("topic %q: partition %d comes twice", b.Topic, b.Partition))
		}
	}
	ttl := h.ProducerRetention
	if in.Body.TTLMillis != nil {
		ttl = time.Duration(*in.Body.TTLMillis) * time.Millisecond
	}
	value, err := json.Marshal(storedOffsets{storedVersion, offsets})
	if err != nil {
		return nil, err
	}
	row, created, err := h.Producers.Add(in.ID, value, time.Now().Add(min(ttl, producerTTLMax)))
	if err != nil {
		return nil, err
	}
	out := &registerOutput{Status: http.StatusOK, ETag: etag(row.Version)}
	if out.Body.Result = ResultAlreadyExists; created {
		out.Status, out.Body.Result = http.StatusCreated, ResultCreated
	}
	out.Body.ProducerSnapshot, err = producerSnapshot(&row)
	return out, err
}

func etag(version uint64) string { return `"` + strconv.FormatUint(version, 10) + `"` }

func (h *handlers) getProducer(ctx context.Context, in *producerInput) (*producerOutput, error) {
	if err := checkProducerID(in.ID); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, min(time.Duration(in.Wait)*time.Millisecond, producerWaitMax))
	defer cancel()
	row, ok, err := h.Producers.Await(ctx, in.ID)
	if errors.Is(err, named.ErrReleased) {
		return nil, huma.Error503ServiceUnavailable(err.Error())
	}
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, huma.Error404NotFound(fmt.Sprintf("producer %q has no snapshot", in.ID))
	}
	out := &producerOutput{ETag: etag(row.Version)}
	out.Body, err = producerSnapshot(&row)
	return out, err
}

func (h *handlers) listProducers(_ context.Context, in *listProducersInput) (*producersOutput, error) {
	out := &producersOutput{}
	page := &out.Body
	page.Producers = []ProducerSnapshot{}
	var bad error
	err := h.Producers.List(in.After, func(r named.Row) bool {
		if len(page.Producers) == in.Limit {
			page.Next = page.Producers[in.Limit-1].Producer
			return false
		}
		s, err := producerSnapshot(&r)
		page.Producers, bad = append(page.Producers, s), err
		return err == nil
	})
	return out, errors.Join(err, bad)
}

func (h *handlers) deleteProducer(_ context.Context, in *deleteProducerInput) (*struct{}, error) {
	if err := checkProducerID(in.ID); err != nil {
		return nil, err
	}
	version := uint64(0)
	if in.IfMatch != "" && in.IfMatch != "*" {
		var err error
		if version, err = strconv.ParseUint(strings.Trim(in.IfMatch, `"`), 10, 64); err != nil || version == 0 {
			return nil, huma.Error422UnprocessableEntity(fmt.Sprintf("If-Match: %s is no version", in.IfMatch))
		}
	}
	err := h.Producers.Delete(in.ID, version)
	if errors.Is(err, named.ErrVersion) {
		return nil, huma.Error412PreconditionFailed(fmt.Sprintf("producer %q: %v", in.ID, err))
	}
	return nil, err
}
