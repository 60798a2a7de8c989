package admin

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// get asks a server for a path, with an Authorization header unless it is empty.
func get(t *testing.T, s *Server, path, authorization string) (status int, body string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, r)
	content, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, strings.TrimSpace(string(content))
}

func newTestServer(token, notReady string) *Server {
	return NewServer(Config{
		Token:   token,
		Ready:   func() (bool, string) { return notReady == "", notReady },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "figures") }),
		Log:     zap.NewNop(),
	})
}

func TestHealth(t *testing.T) {
	for _, test := range []struct {
		path     string
		notReady string
		status   int
		body     string
	}{
		{"/livez", "loading", http.StatusOK, "alive"},
		{"/readyz", "", http.StatusOK, "ready"},
		{"/readyz", "3 of 50 shards are loading", http.StatusServiceUnavailable, "3 of 50 shards are loading"},
		{"/metrics", "", http.StatusOK, "figures"},
		{"/elsewhere", "", http.StatusNotFound, "404 page not found"},
	} {
		status, body := get(t, newTestServer("", test.notReady), test.path, "")
		if status != test.status || body != test.body {
			t.Errorf("%s with %q: %d %q, want %d %q", test.path, test.notReady, status, body, test.status, test.body)
		}
	}
}

// TestToken has what a token opens, and that health needs none.
func TestToken(t *testing.T) {
	s := newTestServer("s3cret", "")
	for _, test := range []struct {
		path, authorization string
		status              int
	}{
		{"/livez", "", http.StatusOK},
		{"/readyz", "", http.StatusOK},
		{"/metrics", "", http.StatusUnauthorized},
		{"/metrics", "Bearer wrong", http.StatusUnauthorized},
		{"/metrics", "Bearer ", http.StatusUnauthorized},
		{"/metrics", "s3cret", http.StatusUnauthorized},
		{"/metrics", "Basic s3cret", http.StatusUnauthorized},
		{"/metrics", "Bearer s3cret", http.StatusOK},
		{"/metrics", "bearer s3cret", http.StatusOK},
		{"/elsewhere", "", http.StatusUnauthorized},
	} {
		if status, body := get(t, s, test.path, test.authorization); status != test.status {
			t.Errorf("%s with %q: %d %q, want %d", test.path, test.authorization, status, body, test.status)
		}
	}
}

func TestOnlyGet(t *testing.T) {
	w := httptest.NewRecorder()
	newTestServer("", "").http.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/readyz", nil))
	if w.Code != http.StatusNotFound && w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST /readyz: %d", w.Code)
	}
}

// TestForeignOrigin has what is answered to pages of other sites: nothing.
func TestForeignOrigin(t *testing.T) {
	for _, test := range []struct {
		token, method, host, origin string
		status                      int
	}{
		{"", http.MethodGet, "127.0.0.1:9640", "", http.StatusOK},
		{"", http.MethodGet, "[::1]:9640", "", http.StatusOK},
		{"", http.MethodGet, "localhost:9640", "", http.StatusOK},
		{"", http.MethodGet, "localhost", "", http.StatusOK},
		{"", http.MethodGet, "rebound.example:9640", "", http.StatusForbidden},
		{"s3cret", http.MethodGet, "gateway.example:9640", "", http.StatusOK},
		{"", http.MethodDelete, "127.0.0.1:9640", "", http.StatusOK},
		{"", http.MethodDelete, "127.0.0.1:9640", "http://127.0.0.1:9640", http.StatusOK},
		{"", http.MethodDelete, "127.0.0.1:9640", "http://page.example", http.StatusForbidden},
	} {
		s := newTestServer(test.token, "")
		s.HandleREST(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "done") }))
		r := httptest.NewRequest(test.method, "/v1/groups/g", nil)
		r.Host = test.host
		r.Header.Set("Authorization", "Bearer "+test.token)
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, r)
		if w.Code != test.status {
			t.Errorf("%+v: %d", test, w.Code)
		}
	}
	if status, _ := get(t, newTestServer("", ""), "http://127.0.0.1/v1/groups", ""); status != http.StatusServiceUnavailable {
		t.Errorf("before it is known what serves /v1/: %d", status)
	}
}
