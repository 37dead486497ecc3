package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/a-h/templ"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/recovery"
	"github.com/longstop-dev/longstop/internal/secret"
)

// Bounds of what a page shows; the rest is for the API.
const (
	maxLogs  = 1000
	maxCases = 200
	maxGates = 200
)

// run shows a run. A page that is open asks again with ?seen=, the sequence
// number of what it shows, and gets nothing while there is nothing new.
func (f *Face) run(w http.ResponseWriter, r *http.Request) {
	by, ok := f.caller(w, r)
	if !ok {
		return
	}
	if err := f.may(by, "runs.get", "runs.logs", "cases.list", "gates.list"); err != nil {
		f.fail(w, r, err)
		return
	}
	id := r.PathValue("id")
	run, err := f.c.Runs.GetRun(r.Context(), by, &engine.RunIn{ID: id})
	if err != nil {
		f.fail(w, r, err)
		return
	}
	if r.Header.Get("HX-Request") != "" && r.URL.Query().Get("seen") == strconv.FormatInt(run.Seq, 10) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	logs, err := f.c.Runs.ListLogs(r.Context(), by, &engine.RecordsIn{ID: id, Limit: maxLogs})
	if err != nil {
		f.fail(w, r, err)
		return
	}
	cases, err := f.c.Cases.CasesList(r.Context(), by, &recovery.CasesListIn{RunID: id, Limit: maxCases})
	if err != nil {
		f.fail(w, r, err)
		return
	}
	gates, err := f.c.Cases.GatesList(r.Context(), by, &recovery.GatesListIn{RunID: id, Limit: maxGates})
	if err != nil {
		f.fail(w, r, err)
		return
	}
	m, err := f.c.Secrets.Masker(r.Context(), by.Workspace) // of secrets that have come since it was stored
	if err != nil {
		f.fail(w, r, err)
		return
	}
	f.render(w, r, http.StatusOK, runPage(newStory(f.now(), secret.Masked(m, run), secret.Masked(m, logs.Items), secret.Masked(m, cases.Items), secret.Masked(m, gates.Items))))
}

// fail answers an error as a page.
func (f *Face) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := http.StatusInternalServerError, "The server could not answer. Its log says why."
	switch flow.CodeOf(err) {
	case flow.CodeNotFound:
		status, text = http.StatusNotFound, err.Error()
	case flow.CodeForbidden:
		status, text = http.StatusForbidden, err.Error()
	case flow.CodeUnavailable:
		status, text = http.StatusServiceUnavailable, "The database does not answer. Try again."
		fallthrough
	default:
		f.log.Error("page", "path", r.Pattern, "error", err)
	}
	f.render(w, r, status, errorPage(status, text))
}

// render writes a page whole, or none.
func (f *Face) render(w http.ResponseWriter, r *http.Request, status int, page templ.Component) {
	var b bytes.Buffer
	if err := page.Render(r.Context(), &b); err != nil {
		f.log.Error("page", "path", r.Pattern, "error", err)
		http.Error(w, "the page cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w) // the browser may be gone
}

func loginFor(path string) string { return "/login?to=" + url.QueryEscape(path) }

// asked is what responders were shown, as JSON.
func asked(in flow.RecoveryInput) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(in); err != nil {
		return "it cannot be written as JSON"
	}
	return pretty(b.Bytes())
}

// pretty is JSON for people, bounded.
func pretty(raw json.RawMessage) string {
	const most = 16 << 10
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		b.Reset()
		b.Write(raw)
	}
	text := b.String()
	if len(text) > most {
		text = string([]rune(text[:most])) + "\n… (" + strconv.Itoa(len(text)) + " bytes in all: GET /v1/runs/{id})"
	}
	return text
}
