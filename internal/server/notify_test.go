package server_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/flow/flowtest"
	"github.com/longstop-dev/longstop/internal/notify"
	"github.com/longstop-dev/longstop/internal/server"
)

// told is a webhook that its receiver has verified.
type told struct {
	Type string
	Data struct {
		RunID, Workflow, GateID, Kind, Error, Message, Title string
		Reminder                                             int
		Links                                                map[string]string
	}
	raw string
}

// listener is a receiver of webhooks that verifies each as receivers do.
func listener(t *testing.T, status int) (*httptest.Server, string, <-chan told) {
	t.Helper()
	key := []byte(strings.Repeat("k", 32))
	out := make(chan told, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		sec, _ := strconv.ParseInt(r.Header.Get("Webhook-Timestamp"), 10, 64)
		if want := notify.Signature(key, r.Header.Get("Webhook-Id"), time.Unix(sec, 0), body); err != nil || r.Header.Get("Webhook-Signature") != want {
			t.Errorf("a webhook: got %v and signature %s, want %s", err, r.Header.Get("Webhook-Signature"), want)
		}
		m := told{raw: string(body)}
		if err := json.Unmarshal(body, &m); err != nil {
			t.Errorf("a webhook: %v in %s", err, body)
		}
		w.WriteHeader(status)
		out <- m
	}))
	t.Cleanup(s.Close)
	return s, "whsec_" + base64.StdEncoding.EncodeToString(key), out
}

func heard(t *testing.T, from <-chan told, kind string) told {
	t.Helper()
	select {
	case m := <-from:
		if m.Type != kind {
			t.Fatalf("told: got %s, want %s", m.raw, kind)
		}
		return m
	case <-time.After(20 * time.Second):
		t.Fatalf("nothing was told, want %s", kind)
	}
	return told{}
}

func TestPeopleAreTold(t *testing.T) {
	t.Parallel()
	clock := flowtest.NewClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	st := begin(t, func(c *server.Config) { c.Clock, c.PublicURL = clock, "https://stop.example.com/" })
	url, secret, from := listener(t, http.StatusNoContent)
	var v struct {
		Value, Key string
		Set        bool
		Warnings   []string
	}
	st.must("PUT", "/v1/settings/notify.url", map[string]any{"value": url.URL + "/hook"}, &v)
	if len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0], "notify.secret") {
		t.Errorf("a URL without a secret: got %+v, want a warning", v)
	}
	if _, b := st.call("PUT", "/v1/settings/notify.secret", map[string]any{"value": secret}, nil); strings.Contains(b, secret) || !strings.Contains(b, `"set":true`) {
		t.Errorf("the secret: got %s, want set and not shown", b)
	}
	st.must("PUT", "/v1/secrets/api", map[string]any{"value": secretValue}, nil)
	st.set("recovery.builtin", "off")
	st.set("gates.remind_every", 3600)
	r := st.gated(st.run(fmt.Sprintf(moved, api(t).URL), nil))
	m := heard(t, from, "gate:opened")
	if d := m.Data; d.RunID != r.ID || d.Workflow != "moved" || d.GateID != r.Gates[0].ID || d.Kind != "needs_human" || d.Title != "Fetch user profile" ||
		!strings.Contains(d.Error, "HTTP 404") || d.Links["gate"] != "https://stop.example.com/v1/gates/"+d.GateID || d.Links["page"] != "https://stop.example.com/runs/"+d.RunID || strings.Contains(m.raw, secretValue) {
		t.Errorf("told of the gate: got %s", m.raw)
	}
	clock.Advance(time.Hour)
	if m = heard(t, from, "gate:reminded"); m.Data.Reminder != 1 || m.Data.GateID != r.Gates[0].ID {
		t.Errorf("reminded: got %s", m.raw)
	}
	st.must("POST", "/v1/gates/"+r.Gates[0].ID+"/answer", map[string]any{"answer": "fail", "reason": "no use"}, nil)
	if m = heard(t, from, "run:failed"); m.Data.RunID != r.ID || !strings.Contains(m.Data.Error, "HTTP 404") || m.Data.GateID != "" {
		t.Errorf("told of the end: got %s", m.raw)
	}
	st.must("POST", "/v1/notices/test", nil, nil)
	heard(t, from, "test")
	if where := st.holds(secret, "/v1/settings", "/v1/notices"); len(where) > 0 {
		t.Errorf("the secret stands in %v", where)
	}
}

// TestWhatWasNotToldIsToldAfterARestart stops the server between the gate and
// its webhook.
func TestWhatWasNotToldIsToldAfterARestart(t *testing.T) {
	t.Parallel()
	st, clock := timed(t)
	bad, secret, refused := listener(t, http.StatusServiceUnavailable)
	st.set("notify.url", bad.URL)
	st.set("notify.secret", secret)
	r := inboxed(t, st)
	first := heard(t, refused, "gate:opened")
	type list struct {
		Items []struct {
			State, Error string
			Tries        int
		}
	}
	tried := func(want int) (l list) { // the receiver hears of it before it is noted
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
			if st.must("GET", "/v1/notices", nil, &l); len(l.Items) == 1 && l.Items[0].Tries == want {
				return l
			}
		}
		t.Fatalf("notices: got %+v, want one with %d tries", l, want)
		return l
	}
	if l := tried(1); l.Items[0].State != "waiting" || !strings.Contains(l.Items[0].Error, "HTTP 503") {
		t.Errorf("notices: got %+v, want one that waits", l)
	}
	good, _, from := listener(t, http.StatusOK)
	st.set("notify.url", good.URL)
	st.end()
	clock.Advance(time.Minute)
	st.again(clock)
	if m := heard(t, from, "gate:opened"); m.raw != first.raw || m.Data.RunID != r.ID || m.Data.Kind != "needs_agent" {
		t.Errorf("told after the restart: got %s, want %s", m.raw, first.raw)
	}
	if l := tried(2); l.Items[0].State != "sent" {
		t.Errorf("notices: got %+v, want it sent", l)
	}
}

func TestNobodyApprovesTheirOwn(t *testing.T) {
	t.Parallel()
	st := begin(t)
	st.set("gates.self_approval", "deny")
	r := st.gated(st.run("name: w\nsteps:\n  - {type: human_approval, config: {message: Pay?, remind: 4h}}\n", nil))
	code, b := st.call("POST", "/v1/gates/"+r.Gates[0].ID+"/answer", map[string]any{"answer": "approve"}, nil)
	if code != http.StatusForbidden || !strings.Contains(b, "gates.self_approval") {
		t.Errorf("got %d %s, want 403 that names the setting", code, b)
	}
	code, b = st.call("POST", "/v1/gates/"+r.Gates[0].ID+"/answer", map[string]any{"answer": "refuse", "hint": "x"}, nil)
	if code != http.StatusUnprocessableEntity || !strings.Contains(b, `"field":"hint"`) {
		t.Errorf("got %d %s, want 422 at the hint", code, b)
	}
}
