package admin

import (
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rollcall-mq/rollcall/gateway"
)

// Connections counts what happens on connections. It implements
// [gateway.Observer].
type Connections struct {
	metrics *Metrics

	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	in, out  *prometheus.CounterVec
	// apis has the series of each API key, made when it is first asked for.
	apis [apiKeys]atomic.Pointer[apiSeries]

	opened *prometheus.CounterVec
	closed *prometheus.CounterVec
}

// The API keys and error codes that have series of their own; Kafka's highest are
// well below. What is beyond shares one.
const (
	apiKeys    = 128
	errorCodes = 192
)

// apiSeries are the series of one API key.
type apiSeries struct {
	name    string
	seconds prometheus.Observer
	in, out prometheus.Counter
	// codes has the counter of each error code, from -1 on.
	codes [errorCodes]atomic.Pointer[prometheus.Counter]
}

var _ gateway.Observer = (*Connections)(nil)

// Connections returns the observer of a server's connections on these listeners.
func (m *Metrics) Connections(listeners ...string) *Connections {
	c := &Connections{metrics: m}
	c.opened = m.counter("connections_opened_total", "Connections that were accepted.", "listener")
	c.closed = m.counter("connections_closed_total", "Connections that were closed, by reason.", "listener", "reason")
	for _, l := range listeners { // so that a rate can be taken from the first one on
		c.opened.WithLabelValues(l)
		for _, r := range gateway.CloseReasons() {
			c.closed.WithLabelValues(l, r.String())
		}
	}
	c.requests = m.counter("requests_total", "Requests that were answered, by API and error code (the first in the answer).", "api", "code")
	c.seconds = m.histogram("request_seconds", "Time from the decoding of a request to its answer, holding included.", timeBuckets, "api")
	c.in = m.counter("request_bytes_total", "Bytes of requests.", "api")
	c.out = m.counter("response_bytes_total", "Bytes of answers.", "api")
	return c
}

// Open adds gauges that are read when they are scraped: how many connections are
// open, and how much of queued.max.request.bytes is used.
func (c *Connections) Open(connections func() int, queuedBytes func() int64) {
	c.metrics.gaugeFunc("connections", "Connections that are open.", func() float64 { return float64(connections()) })
	c.metrics.gaugeFunc("queued_request_bytes", "How much of queued.max.request.bytes is used.", func() float64 { return float64(queuedBytes()) })
}

// ConnectionOpened implements [gateway.Observer].
func (c *Connections) ConnectionOpened(listener string) { c.opened.WithLabelValues(listener).Inc() }

// ConnectionClosed implements [gateway.Observer].
func (c *Connections) ConnectionClosed(listener string, reason gateway.CloseReason) {
	c.closed.WithLabelValues(listener, reason.String()).Inc()
}

// RequestDone implements [gateway.Observer]. It runs for every request, so it
// allocates nothing once the series are there.
func (c *Connections) RequestDone(r gateway.RequestInfo) {
	s := c.api(r.Key)
	s.seconds.Observe(r.Took.Seconds())
	s.in.Add(float64(r.In))
	s.out.Add(float64(r.Out))
	c.code(s, r.Code).Inc()
}

func (c *Connections) api(key int16) *apiSeries {
	i := min(uint(uint16(key)), apiKeys-1)
	if s := c.apis[i].Load(); s != nil {
		return s
	}
	name := kmsg.NameForKey(key)
	s := &apiSeries{name: name, seconds: c.seconds.WithLabelValues(name), in: c.in.WithLabelValues(name), out: c.out.WithLabelValues(name)}
	if !c.apis[i].CompareAndSwap(nil, s) {
		s = c.apis[i].Load()
	}
	return s
}

func (c *Connections) code(s *apiSeries, code int16) prometheus.Counter {
	i := min(uint(uint16(code+1)), errorCodes-1)
	if counter := s.codes[i].Load(); counter != nil {
		return *counter
	}
	counter := c.requests.WithLabelValues(s.name, codeName(code))
	s.codes[i].Store(&counter)
	return counter
}

// codeName is Kafka's name of an error code.
func codeName(code int16) string {
	if code == 0 {
		return "NONE"
	}
	if err := kerr.TypedErrorForCode(code); err != nil {
		return err.Message
	}
	return strconv.Itoa(int(code))
}
