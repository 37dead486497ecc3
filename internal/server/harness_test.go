package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/nettest"
	"github.com/longstop-dev/longstop/internal/server"
)

// stop is a whole Longstop in this process, used as an outsider uses it.
type stop struct {
	t   *testing.T
	dir string
	s   *server.Server
	log *lines
	db  string // the URL of the PostgreSQL database, if it is one
}

// lines keeps what the server logs.
type lines struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	wrote chan struct{} // closed with every line, and made anew
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wrote != nil {
		close(l.wrote)
		l.wrote = nil
	}
	return l.buf.Write(b)
}

// await waits for a line with this text.
func (l *lines) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		l.mu.Lock()
		if strings.Contains(l.buf.String(), text) {
			l.mu.Unlock()
			return
		}
		if l.wrote == nil {
			l.wrote = make(chan struct{})
		}
		wrote := l.wrote
		l.mu.Unlock()
		select {
		case <-wrote:
		case <-late:
			t.Fatalf("the log does not say %q", text)
		}
	}
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func begin(t *testing.T, change ...func(*server.Config)) *stop {
	t.Helper()
	st := &stop{t: t, dir: t.TempDir(), log: &lines{}}
	c := server.Config{DataDir: st.dir, Listen: "127.0.0.1:0", AllowPrivate: true, AllowStdio: true,
		Log: slog.New(slog.NewJSONHandler(st.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, f := range change {
		f(&c)
	}
	st.db, st.dir = c.DatabaseURL, c.DataDir
	var err error
	if st.s, err = server.Start(context.Background(), c); err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(st.end)
	return st
}

func (st *stop) end() {
	if st.s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := st.s.Stop(ctx); err != nil {
		st.t.Errorf("stop: %v", err)
	}
	st.s = nil
}

// call sends a request as the owner; the answer is decoded into out if it is
// a success, and the status and body are given.
func (st *stop) call(method, path string, body any, out any) (int, string) {
	st.t.Helper()
	var rd io.Reader
	kind := "application/json"
	switch b := body.(type) {
	case nil:
	case string:
		rd, kind = strings.NewReader(b), "application/yaml"
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			st.t.Fatal(err)
		}
		rd = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, st.s.URL()+path, rd)
	if err != nil {
		st.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+st.s.Key())
	req.Header.Set("Content-Type", kind)
	resp, err := nettest.Client().Do(req)
	if err != nil {
		st.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		st.t.Fatal(err)
	}
	if out != nil && resp.StatusCode < 300 {
		if err := json.Unmarshal(b, out); err != nil {
			st.t.Fatalf("%s %s: %v in %s", method, path, err, b)
		}
	}
	return resp.StatusCode, string(b)
}

func (st *stop) must(method, path string, body any, out any) {
	st.t.Helper()
	if code, b := st.call(method, path, body, out); code >= 300 {
		st.t.Fatalf("%s %s: %d %s", method, path, code, b)
	}
}

func (st *stop) set(key string, value any) {
	st.t.Helper()
	st.must("PUT", "/v1/settings/"+key, map[string]any{"value": value}, nil)
}

type runView struct {
	ID, Status, Error string
	Output            json.RawMessage
	Steps             []struct {
		Index                  int
		Status, Error, Message string
		Source                 *string `json:"recovery_source"`
		Attempts               int
	}
	Gates []struct {
		ID, Kind       string
		Agent, Builtin *struct{ Diagnosis, Suggestion string }
	}
}

func (r runView) source(i int) string {
	if r.Steps[i].Source == nil {
		return "null"
	}
	return *r.Steps[i].Source
}

// run stores a definition and starts a run of it.
func (st *stop) run(yaml string, input any) string {
	st.t.Helper()
	var w struct{ Name, VersionID string }
	st.must("POST", "/v1/workflows?publish=false", yaml, &w)
	var r runView
	st.must("POST", "/v1/workflows/"+w.Name+"/runs", map[string]any{"input": input, "versionId": w.VersionID}, &r)
	return r.ID
}

type event struct {
	Seq  int64
	Type string
	Data json.RawMessage
}

// follow reads a run's events as they come, until stop says so or the run has
// ended.
func (st *stop) follow(id string, enough func(event) bool) []event {
	st.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", st.s.URL()+"/v1/runs/"+id+"/events", nil)
	if err != nil {
		st.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+st.s.Key())
	req.Header.Set("Accept", "text/event-stream")
	resp, err := nettest.Client().Do(req)
	if err != nil {
		st.t.Fatal(err)
	}
	defer resp.Body.Close()
	var out []event
	var rest string
	buf := make([]byte, 64<<10)
	for {
		n, err := resp.Body.Read(buf)
		rest += string(buf[:n])
		for {
			line, after, ok := strings.Cut(rest, "\n")
			if !ok {
				break
			}
			rest = after
			data, ok := strings.CutPrefix(line, "data:")
			if !ok {
				continue
			}
			var e event
			if json.Unmarshal([]byte(data), &e) != nil || e.Type == "" {
				continue
			}
			out = append(out, e)
			if enough != nil && enough(e) {
				return out
			}
		}
		if err == io.EOF {
			return out
		}
		if err != nil {
			st.t.Fatalf("events of %s: %v after %+v", id, err, out)
		}
	}
}

func (st *stop) get(id string) runView {
	st.t.Helper()
	var r runView
	st.must("GET", "/v1/runs/"+id, nil, &r)
	return r
}

// ended waits for a run's end.
func (st *stop) ended(id string) runView {
	st.t.Helper()
	st.follow(id, nil)
	r := st.get(id)
	if r.Status != "succeeded" && r.Status != "failed" && r.Status != "cancelled" {
		st.t.Fatalf("run %s: its events ended while it is %s", id, r.Status)
	}
	return r
}

// gated waits until a run is parked at a gate.
func (st *stop) gated(id string) runView {
	st.t.Helper()
	st.follow(id, func(e event) bool { return e.Type == "gate:opened" })
	r := st.get(id)
	if len(r.Gates) != 1 {
		st.t.Fatalf("run %s: got %d open gates and status %s (%s), want 1", id, len(r.Gates), r.Status, r.Error)
	}
	return r
}

// holds searches everything that the server has written for a text: database,
// logs, and what the paths given answer.
func (st *stop) holds(text string, paths ...string) []string {
	st.t.Helper()
	var where []string
	for _, p := range paths {
		if _, b := st.call("GET", p, nil, nil); strings.Contains(b, text) {
			where = append(where, p)
		}
	}
	if strings.Contains(st.log.String(), text) {
		where = append(where, "log")
	}
	for path, all := range st.files() {
		if strings.Contains(all, text) {
			where = append(where, path)
		}
	}
	if st.db != "" {
		for table, all := range rows(st.t, st.db) {
			if strings.Contains(all, text) {
				where = append(where, "table "+table)
			}
		}
	}
	return where
}

// files gives the content of everything in the data folder.
func (st *stop) files() map[string]string {
	st.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(st.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(path, filepath.Join(st.dir, "cache")) { // compiled code
			return err
		}
		b, err := os.ReadFile(path)
		out[path] = string(b)
		return err
	})
	if err != nil {
		st.t.Fatal(err)
	}
	return out
}

// api is an upstream that moved: /v1 is gone and says where to.
func api(t *testing.T) *httptest.Server {
	u := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasPrefix(r.URL.Path, "/v1/"):
			w.Header().Set("Link", `</v2/`+strings.TrimPrefix(r.URL.Path, "/v1/")+`>; rel="successor-version"`)
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"error":"v1 is gone","seen":"`+r.Header.Get("Authorization")+`"}`)
		case strings.HasPrefix(r.URL.Path, "/v2/"):
			io.WriteString(w, `{"id":42,"name":"Alice","auth":"`+r.Header.Get("Authorization")+`"}`)
		default:
			w.WriteHeader(http.StatusUnauthorized)
			io.WriteString(w, `{"error":"token expired"}`)
		}
	}))
	t.Cleanup(u.Close)
	return u
}
