// Package rest is the administration of a gateway over HTTP: groups, committed
// offsets, topics and the configuration, below /v1. Errors are problem details
// (RFC 9457); /v1/openapi.json describes everything and is made from the handlers.
package rest

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/coordinator"
	"github.com/rollcall-mq/rollcall/gateway/api"
	"github.com/rollcall-mq/rollcall/store/named"
)

// bodyBytesMax is the longest body of a request.
const bodyBytesMax = 1 << 20

// Kafka answers requests as it does those of a Kafka client; [api.Table] is one.
type Kafka interface {
	Do(ctx context.Context, s api.Session, req kmsg.Request) (kmsg.Response, error)
}

// Setting is one key of the configuration, as far as it may be seen.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value" doc:"Secrets are masked."`
	Source string `json:"source" doc:"Where the value came from: default, a file and line, an environment variable or a flag."`
}

// Config is what the API works on.
type Config struct {
	// Version is that of Rollcall.
	Version string
	Groups  coordinator.Groups
	Kafka   Kafka
	History History
	// Producers has the snapshots that producers register, Snapshots those of
	// committed offsets.
	Producers, Snapshots *named.Table
	// ProducerRetention is how long a producer's snapshot lives that does not say
	// so itself.
	ProducerRetention time.Duration
	// Settings is the effective configuration, in order.
	Settings []Setting
}

// handlers has the operations.
type handlers struct {
	Config
}

// New returns the handler of everything below /v1/.
func New(c Config) http.Handler {
	mux := http.NewServeMux()
	h := &handlers{c}
	h.register(humago.New(mux, description(c.Version)))
	mux.Handle("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem(w, http.StatusNotFound, "there is nothing at "+r.URL.Path+"; /v1/openapi.json says what there is")
	}))
	return withCaller(mux)
}

// description is the head of the OpenAPI document. Answers carry no links to
// schemas, and there is no page that would load scripts from elsewhere.
func description(version string) huma.Config {
	c := huma.DefaultConfig("Rollcall", version)
	c.Info.Description = "Administration of a Rollcall gateway."
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "/v1/openapi", "", ""
	c.CreateHooks = nil
	return c
}

func (h *handlers) register(a huma.API) {
	h.registerGroups(a)
	h.registerOffsets(a)
	h.registerHistory(a)
	h.registerTopics(a)
	h.registerSnapshots(a)
	h.registerProducers(a)
	h.registerSettings(a)
}

// operation is what all operations share.
func operation(id, method, path, summary, tag string) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: method, Path: path, Summary: summary, Tags: []string{tag},
		MaxBodyBytes: bodyBytesMax,
		Errors:       []int{http.StatusNotFound, http.StatusServiceUnavailable},
	}
}

// callerKey is the key of the caller's address in a context.
type callerKey struct{}

// withCaller remembers who asks.
func withCaller(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			host = r.RemoteAddr
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, "/"+host)))
	})
}

// clientName is the client id of requests that come over HTTP.
const clientName = "rollcall-admin"

// session says who asks, to handlers and for the change log.
func session(ctx context.Context) api.Session {
	host, _ := ctx.Value(callerKey{}).(string)
	return api.Session{Principal: "User:admin", Host: host, Listener: "HTTP", SoftwareName: clientName}
}

// ask sends a request in a version and returns its response.
func ask[R kmsg.Response](ctx context.Context, k Kafka, req kmsg.Request, version int16) (R, error) {
	req.SetVersion(version)
	resp, err := k.Do(ctx, session(ctx), req)
	if err != nil {
		var none R
		return none, huma.Error503ServiceUnavailable("the gateway did not answer", err)
	}
	return resp.(R), nil
}
