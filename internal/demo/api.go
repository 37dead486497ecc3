package demo

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// local serves a handler on a free port of loopback until it is closed.
func local(h http.Handler) (url string, closed func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = s.Serve(l) }()
	return "http://" + l.Addr().String(), s.Close, nil
}

// unreliable is an API as they are: moved, busy, expired, down, and changed
// without a word.
type unreliable struct {
	mu   sync.Mutex
	busy map[string]int
}

func newUnreliable() http.Handler {
	u := &unreliable{busy: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/users/{id}", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusNotFound, `{"error":"v1 was switched off"}`)
	})
	mux.HandleFunc("GET /v2/users/{id}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, fmt.Sprintf(`{"id":%q,"name":"Alice"}`, r.PathValue("id")))
	})
	mux.HandleFunc("GET /old/users/{id}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", fmt.Sprintf(`</v2/users/%s>; rel="successor-version"`, r.PathValue("id")))
		answer(w, http.StatusGone, `{"error":"this version has been retired"}`)
	})
	mux.HandleFunc("GET /profiles/{id}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, fmt.Sprintf(`{"user_id":%q,"name":"Alice"}`, r.PathValue("id")))
	})
	mux.HandleFunc("GET /orders", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusUnauthorized, `{"error":"token expired"}`)
	})
	mux.HandleFunc("GET /reports", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusInternalServerError, `{"error":"the report database is down"}`)
	})
	mux.HandleFunc("GET /busy/{run}", u.sometimes)
	mux.HandleFunc("GET /slow/{id}", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(700 * time.Millisecond):
			answer(w, http.StatusOK, fmt.Sprintf(`{"id":%q,"late":true}`, r.PathValue("id")))
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("GET /invoices", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Tenant") == "" {
			answer(w, http.StatusBadRequest, `{"error":"bad request"}`)
			return
		}
		answer(w, http.StatusOK, `{"rows":3}`)
	})
	return mux
}

// sometimes is busy twice for each run: first it says for how long.
func (u *unreliable) sometimes(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	u.busy[r.PathValue("run")]++
	n := u.busy[r.PathValue("run")]
	u.mu.Unlock()
	if n == 1 {
		w.Header().Set("Retry-After", "1")
		answer(w, http.StatusTooManyRequests, `{"error":"slow down"}`)
		return
	}
	if n == 2 {
		answer(w, http.StatusServiceUnavailable, `{"error":"busy"}`)
		return
	}
	answer(w, http.StatusOK, `{"ok":true}`)
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.Copy(w, strings.NewReader(body))
}
