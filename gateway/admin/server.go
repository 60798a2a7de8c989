package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// The limits of the HTTP server: what it serves is small and read at once, so
// whoever is slower than this is not a client.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	headerBytesMax = 16 << 10
)

// Config is what the HTTP server needs.
type Config struct {
	// Token, if set, must be carried by every request but those for health.
	Token string
	// Ready tells whether the gateway can serve and, if not, why, in words for an
	// operator.
	Ready func() (ready bool, reason string)
	// Metrics serves /metrics.
	Metrics http.Handler
	Log     *zap.Logger
}

// Server is the HTTP server of the admin address.
type Server struct {
	http *http.Server
	log  *zap.Logger
	// rest serves what is below /v1/; nil until it is known.
	rest atomic.Pointer[http.Handler]
}

// NewServer returns a server that does not listen yet.
func NewServer(c Config) *Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ready, reason := c.Ready(); !ready {
			say(w, http.StatusServiceUnavailable, reason)
			return
		}
		say(w, http.StatusOK, "ready")
	})
	mux.Handle("GET /metrics", guard(c.Token, c.Metrics))
	mux.Handle("/", guard(c.Token, http.NotFoundHandler()))
	s := &Server{log: c.Log}
	mux.Handle("/v1/", guard(c.Token, fromPrograms(c.Token == "", http.HandlerFunc(s.serveREST))))
	s.http = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytesMax,
		ErrorLog:          zap.NewStdLog(c.Log.Named("http")),
	}
	return s
}

// HandleREST gives the server what serves the paths below /v1/. Before, they are
// answered with 503.
func (s *Server) HandleREST(h http.Handler) { s.rest.Store(&h) }

func (s *Server) serveREST(w http.ResponseWriter, r *http.Request) {
	h := s.rest.Load()
	if h == nil {
		say(w, http.StatusServiceUnavailable, "the data directory is being opened")
		return
	}
	// What takes long here works all the time, so only a client that does not read
	// is cut off.
	if err := http.NewResponseController(w).SetWriteDeadline(time.Time{}); err == nil {
		w = &patient{ResponseWriter: w}
	}
	(*h).ServeHTTP(w, r)
}

// patient gives every write its own time.
type patient struct{ http.ResponseWriter }

// Write implements [io.Writer].
func (p *patient) Write(b []byte) (int, error) {
	if err := http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return p.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// fromPrograms refuses what a browser sends for a page of somebody else's: requests
// from another origin, and, where no token protects, names that need not be this
// machine's (DNS rebinding).
func fromPrograms(open bool, next http.Handler) http.Handler {
	checked := http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if open && host != "localhost" && net.ParseIP(strings.Trim(host, "[]")) == nil {
			say(w, http.StatusForbidden, "without admin.token this address is asked by its IP address or as localhost")
			return
		}
		checked.ServeHTTP(w, r)
	})
}

// Serve answers on l until Shutdown, and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving HTTP on %s: %w", l.Addr(), err)
	}
	return nil
}

// Shutdown stops accepting and waits for requests that are being answered, until
// ctx ends; then it closes them.
func (s *Server) Shutdown(ctx context.Context) {
	if s.http.Shutdown(ctx) != nil {
		if err := s.http.Close(); err != nil {
			s.log.Warn("HTTP connections not closed", zap.Error(err))
		}
	}
}

// Close ends the server at once, also one that does not serve yet.
func (s *Server) Close() { _ = s.http.Close() }

// guard lets requests through that carry the token; all of them if it is empty.
func guard(token string, next http.Handler) http.Handler {
	if token == "" {
		return next
	}
	// Hashes have one length, so that comparing them tells nothing of the token's.
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(given))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			say(w, http.StatusUnauthorized, "this address wants the header Authorization: Bearer TOKEN with the admin.token of its configuration")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// say answers with one line of text.
func say(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, line+"\n") // the client may be gone
}
