package admin

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
)

// namespace begins the names of all metrics of Rollcall's own.
const namespace = "rollcall"

// Buckets of the histograms. Times are seconds, from the cost of a step in memory
// to that of a disk in trouble; counts are powers of four.
var (
	timeBuckets  = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	countBuckets = []float64{1, 4, 16, 64, 256, 1024, 4096}
)

// definition is what docs/metrics.md says about a metric.
type definition struct {
	name, kind, help string
	labels           []string
}

// Metrics is the process's metrics. Labels come from closed sets (API keys, error
// codes, rules, reasons), never from a group or a client.
type Metrics struct {
	registry    *prometheus.Registry
	definitions []definition
}

// NewMetrics returns an empty registry with the metrics of the Go runtime, of the
// process and of this build.
func NewMetrics(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.gauge("build_info", "Always 1; the version of this build is a label.", "version").WithLabelValues(version).Set(1)
	return m
}

// Handler serves the metrics in the Prometheus text format.
func (m *Metrics) Handler(log *zap.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog:            zap.NewStdLog(log.Named("metrics")),
		MaxRequestsInFlight: scrapesMax,
	})
}

// scrapesMax is how many scrapes are answered at the same time.
const scrapesMax = 4

func (m *Metrics) define(name, kind, help string, labels []string) {
	m.definitions = append(m.definitions, definition{namespace + "_" + name, kind, help, labels})
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	m.define(name, "counter", help, labels)
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	m.define(name, "gauge", help, labels)
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
	m.registry.MustRegister(g)
	return g
}

func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	m.define(name, "histogram", help, labels)
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(h)
	return h
}

// gaugeFunc is a gauge without labels that is read when it is scraped.
func (m *Metrics) gaugeFunc(name, help string, read func() float64) {
	m.define(name, "gauge", help, nil)
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, read))
}
