package server_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/chain"
	"github.com/longstop-dev/longstop/internal/flow"
)

// does gives, for each operation that changes something, what it takes to
// succeed: the path's last word and a body, made when its turn comes. A new
// operation needs a line here.
func (a tenant) does(st *stop) map[string]func(o operation) (path, body string) {
	as := func(body string) func(operation) (string, string) {
		return func(o operation) (string, string) { return a.fill(o), body }
	}
	onRun := func(body string) func(operation) (string, string) {
		return func(o operation) (string, string) { b := a; b.run = a.waiting(st); return b.fill(o), body }
	}
	fresh := func(o operation) (string, string) { b := a; _, b.keyID = st.key("viewer"); return b.fill(o), "" }
	return map[string]func(operation) (string, string){
		"runs.start":  as(`{}`),
		"runs.cancel": onRun(""),
		"runs.retry":  a.onFailed(st, ""),
		"runs.rerun":  a.onFailed(st, `{}`),
		"gates.answer": func(o operation) (string, string) {
			b := a
			_, b.gate = asking(st)
			return b.fill(o), `{"answer":"approve","reason":"why not"}`
		},
		"recovery.action":    onRun(`{"type":"fixed_output","diagnosis":"x","output":{"id":1}}`),
		"workflows.create":   as("name: another\nsteps:\n  - {type: transform, config: {value: 1}}\n"),
		"settings.put":       as(`{"value":"agent"}`),
		"settings.delete":    as(""),
		"secrets.put":        as(`{"value":"` + a.hidden + `"}`),
		"secrets.delete":     as(""),
		"mcp-servers.create": as(`{"id":"fresh","url":"http://127.0.0.1:9/mcp","headers":{"X":"` + a.hidden + `"}}`),
		"mcp-servers.put":    as(`{"url":"http://127.0.0.1:9/mcp?token=` + a.hidden + `","headers":{"X":"` + a.hidden + `"}}`),
		"mcp-servers.delete": as(""),
		"keys.create":        as(`{"name":"x","role":"viewer"}`),
		"keys.revoke":        fresh,
		"keys.rotate":        fresh,
		"people.add":         as(`{"name":"x","role":"viewer"}`),
		"people.put":         as(`{"role":"viewer"}`),
		"people.remove":      as(""),
		"recovery.claim":     onRun(""),
		"recovery.release": func(o operation) (string, string) {
			b := a
			b.run = a.waiting(st)
			st.must("POST", "/v1/recovery/"+b.run+"/0/claim", nil, nil)
			return b.fill(o), ""
		},
		"workflows.publish": func(o operation) (string, string) {
			path := strings.Replace(a.fill(o), a.workflow, "another", 1)
			var w struct{ VersionID string }
			st.must("POST", "/v1/workflows?publish=false", "name: another\nsteps:\n  - {type: transform, config: {value: 2}}\n", &w)
			return path, `{"version":"` + w.VersionID + `"}`
		},
		"workflows.unpublish": func(o operation) (string, string) {
			st.must("POST", "/v1/workflows", "name: short-lived\nsteps:\n  - {type: transform, config: {value: 1}}\n", nil)
			return strings.Replace(a.fill(o), a.workflow, "short-lived", 1), ""
		},
		"vaults.create":   as(`{"name":"x"}`),
		"vaults.update":   as(`{"retentionDays":1}`),
		"vaults.delete":   as(""),
		"agents.push":     as(`{"kind":"external","card":"` + a.card + `","bucket":"` + a.bucket + `","asPubkey":"` + a.service + `","version":"2.0.0"}`),
		"agents.remove":   as(""),
		"services.create": as(`{}`),
		"services.rotate": as(""),
		"buckets.create":  as(`{}`),
		"buckets.reindex": as(""),
		"connections.create": func(o operation) (string, string) {
			var agent struct{ AgentID string }
			st.must("POST", "/v1/agents", map[string]any{"kind": "external", "card": a.card, "bucket": a.bucket, "asPubkey": a.service, "alias": "another"}, &agent)
			return a.fill(o), `{"agentId":"` + agent.AgentID + `"}`
		},
		"connections.update": as(`{"ceilings":{"a2aTokens":5}}`),
		"connections.revoke": as(""),
		"events.append":      as(`{"type":"note","payload":{"text":"` + a.hidden + `"}}`),
		"workspaces.create":  as(`{"name":"x"}`),
		"workspaces.put":     as(`{"name":"x"}`),
	}
}

// leaveNone are operations that leave no row here, and why.
func leaveNone() map[string]string {
	return map[string]string{"notices.test": "it sends once and changes nothing here"}
}

// onFailed makes a run that has failed.
func (a tenant) onFailed(st *stop, body string) func(operation) (string, string) {
	return func(o operation) (string, string) {
		b := a
		b.run, b.gate = asking(st)
		st.must("POST", "/v1/gates/"+b.gate+"/answer", map[string]any{"answer": "refuse"}, nil)
		st.ended(b.run)
		return b.fill(o), body
	}
}

// asking starts a run that comes to wait for a person's approval.
func asking(st *stop) (run, gate string) {
	r := st.gated(st.run("name: ask\nsteps:\n  - {type: human_approval, config: {message: May it?}}\n", map[string]any{}))
	return r.ID, r.Gates[0].ID
}

// TestEveryChangeIsOnTheRecord does everything that changes something, and
// finds each in the audit record: by whom, with which key, and no secret.
func TestEveryChangeIsOnTheRecord(t *testing.T) {
	t.Parallel()
	st := begin(t)
	a := furnish(t, st)
	key, keyID := st.key("owner")
	does := a.does(st)
	ops := st.operations()
	// What removes goes last.
	last := func(o operation) int { return slices.Index([]string{"DELETE"}, o.method) }
	slices.SortStableFunc(ops, func(x, y operation) int { return last(x) - last(y) })
	for _, o := range ops {
		if !o.changes {
			continue
		}
		if leaveNone()[o.name] != "" {
			continue
		}
		sample, ok := does[o.name]
		if !ok {
			t.Errorf("%s has no line in does(): say what it takes to succeed", o.name)
			continue
		}
		path, body := sample(o)
		code, _, answer := st.as(key, o.method, path, []byte(body))
		if code >= 300 {
			t.Errorf("%s %s: got %d %s, want success", o.method, path, code, answer)
			continue
		}
		_, _, text := st.as(key, "GET", "/v1/audit?limit=1&op="+o.name, nil)
		var l struct{ Items []flow.Audit }
		if err := json.Unmarshal([]byte(text), &l); err != nil || len(l.Items) != 1 {
			t.Errorf("%s is not on the record: %v, %s", o.name, err, text)
			continue
		}
		row := l.Items[0]
		if row.Author != a.person || row.KeyID != keyID || row.Workspace != a.workspace || row.Outcome != "done" || !strings.Contains(row.Target, "/") || row.At.IsZero() {
			t.Errorf("%s: got %+v, want who, with which key, when and what", o.name, row)
		}
	}
	whole(t, st, a)
}

// whole verifies the record over REST, and that it tells no secret.
func whole(t *testing.T, st *stop, a tenant) {
	t.Helper()
	_, _, text := st.as(a.key, "GET", "/v1/audit?order=oldest&limit=500", nil)
	var l struct{ Items []flow.Audit }
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		t.Fatal(err)
	}
	var head flow.AuditHead
	st.must("GET", "/v1/audit/head", nil, &head)
	v := chain.NewVerifier("")
	for _, row := range l.Items {
		v.Add(row)
	}
	if r := v.End(head); !r.OK || r.Rows < 20 {
		t.Errorf("the record: got %+v (%+v), want it whole", r, r.Broken)
	}
	for _, secret := range []string{a.hidden, secretValue, st.s.Key()} {
		if strings.Contains(text, secret) {
			t.Errorf("the record tells %s", secret)
		}
	}
}

// TestARefusedChangeIsNotOnTheRecord since nothing was changed.
func TestARefusedChangeIsNotOnTheRecord(t *testing.T) {
	t.Parallel()
	st := begin(t)
	a := furnish(t, st)
	before := st.state(a)
	for path, body := range map[string]string{
		"PUT /v1/settings/recovery.timeout_ms":               `{"value":"1"}`,
		"PUT /v1/secrets/short":                              `{"value":"x"}`,
		"POST /v1/gates/" + a.gate + "/answer":               `{"answer":"dance"}`,
		"POST /v1/recovery/" + a.run + "/0/action":           `{"type":"dance"}`,
		"DELETE /v1/people/" + a.person:                      "",
		"POST /v1/keys":                                      `{"name":"","role":"viewer"}`,
		"POST /v1/workflows/" + a.workflow + "/runs?no=such": `{}`,
		"DELETE /v1/mcp-servers/no-such":                     "",
		"POST /v1/keys/no-such/rotate":                       "",
		"PUT /v1/workspaces/" + a.workspace:                  `{"name":"\u0000"}`,
	} {
		method, path, _ := strings.Cut(path, " ")
		if code, _, answer := st.as(a.key, method, path, []byte(body)); code < 400 || code == http.StatusInternalServerError {
			t.Errorf("%s %s: got %d %s, want a refusal", method, path, code, answer)
		}
	}
	if after := st.state(a); after != before {
		t.Errorf("something was changed:\n%s\nbefore:\n%s", after, before)
	}
}
