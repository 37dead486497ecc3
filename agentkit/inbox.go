package agentkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Inbox says whose inbox an agent works: recovery.mode is agent there.
type Inbox struct {
	URL    string        // of the Longstop server, such as "http://127.0.0.1:8080"
	Key    string        // an API key; the role agent is enough
	Wait   time.Duration // how long the server may hold an answer back; 0 is 30 s, at most 50 s
	Client *http.Client  // nil is one with a suitable time-out
}

// pending is a case that waits.
type pending struct {
	RunID     string `json:"runId"`
	StepIndex int    `json:"stepIndex"`
	Iteration string `json:"iteration"`
	OpenedAt  string `json:"openedAt"`
}

func (p pending) path() string {
	return "/v1/recovery/" + url.PathEscape(p.RunID) + "/" + strconv.Itoa(p.StepIndex)
}

func (p pending) query() url.Values {
	if p.Iteration == "" {
		return nil
	}
	return url.Values{"iteration": {p.Iteration}}
}

// WorkInbox answers what waits in an inbox, one case after another, until ctx
// ends; then it returns nil. A case that Mend has no answer for is left to
// others and looked at once only. It gives up, with an error, where the server refuses
// the key; while the server cannot be reached it goes on asking.
func (a *Agent) WorkInbox(ctx context.Context, in Inbox) error {
	w := inboxWorker{agent: a, inbox: in, left: map[pending]bool{}}
	if w.inbox.Wait <= 0 {
		w.inbox.Wait = 30 * time.Second
	}
	w.inbox.Wait = min(w.inbox.Wait, 50*time.Second)
	if w.inbox.Client == nil {
		w.inbox.Client = &http.Client{Timeout: w.inbox.Wait + 30*time.Second}
	}
	for pause := time.Second; ctx.Err() == nil; {
		err := w.round(ctx)
		var refused *inboxError
		switch {
		case err == nil:
			pause = time.Second
			continue
		case errors.As(err, &refused) && (refused.status == http.StatusUnauthorized || refused.status == http.StatusForbidden):
			return err
		case ctx.Err() != nil:
			return nil
		}
		if refused != nil && refused.after > 0 {
			pause = refused.after
		}
		a.log().Warn("inbox", "error", err, "again_in", pause.String())
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, 30*time.Second)
	}
	return nil
}

type inboxWorker struct {
	agent *Agent
	inbox Inbox
	tag   string           // of the page seen last
	left  map[pending]bool // cases left to others
}

// round waits for a change of the inbox and answers what is in it.
func (w *inboxWorker) round(ctx context.Context) error {
	items, changed, err := w.pending(ctx)
	if err != nil || !changed {
		return err
	}
	still := map[pending]bool{}
	for _, p := range items {
		if w.left[p] {
			still[p] = true
			continue
		}
		if err := w.work(ctx, p); err != nil {
			var refused *inboxError
			if !errors.As(err, &refused) || refused.status >= 500 || refused.status == http.StatusUnauthorized || refused.status == http.StatusForbidden {
				return err
			}
			w.agent.log().Info("case left to others", "run", p.RunID, "step", p.StepIndex, "why", err)
			still[p] = true
		}
	}
	w.left = still
	return nil
}

// work reads one case and answers it.
func (w *inboxWorker) work(ctx context.Context, p pending) error {
	var raw json.RawMessage
	if _, err := w.send(ctx, http.MethodGet, p.path(), p.query(), nil, &raw); err != nil {
		return err
	}
	act, err := w.agent.answer(ctx, raw)
	if err != nil {
		return &inboxError{text: err.Error()}
	}
	body, err := json.Marshal(act)
	if err != nil {
		return &inboxError{text: err.Error()}
	}
	_, err = w.send(ctx, http.MethodPost, p.path()+"/action", p.query(), body, nil)
	return err
}

// pending reads the inbox as soon as it is another than the one seen last, or
// tells after a while that it is not.
func (w *inboxWorker) pending(ctx context.Context) (items []pending, changed bool, err error) {
	var page struct {
		Items []pending `json:"items"`
	}
	q := url.Values{"limit": {"100"}, "wait": {strconv.Itoa(int(w.inbox.Wait / time.Second))}}
	tag, err := w.send(ctx, http.MethodGet, "/v1/recovery/pending", q, nil, &page)
	if err != nil {
		return nil, false, err
	}
	changed = tag == "" || tag != w.tag
	w.tag = tag
	return page.Items, changed, nil
}

// inboxError is a refusal of the server's, or of the agent itself.
type inboxError struct {
	status int // 0 for the agent's own
	after  time.Duration
	text   string
}

func (e *inboxError) Error() string { return e.text }

// send makes one call. A 304 leaves out as it is.
func (w *inboxWorker) send(ctx context.Context, method, path string, q url.Values, body []byte, out any) (tag string, err error) {
	at := strings.TrimRight(w.inbox.URL, "/") + path
	if len(q) > 0 {
		at += "?" + q.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return "", &inboxError{status: http.StatusForbidden, text: err.Error()} // no URL: asking again is no use
	}
	req.Header.Set("Authorization", "Bearer "+w.inbox.Key)
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodGet && strings.HasSuffix(path, "/pending") && w.tag != "" {
		req.Header.Set("If-None-Match", w.tag)
	}
	resp, err := w.inbox.Client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, w.agent.maxBody()))
	switch {
	case err != nil:
		return "", err
	case resp.StatusCode == http.StatusNotModified:
		return resp.Header.Get("ETag"), nil
	case resp.StatusCode >= 300:
		after, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return "", &inboxError{status: resp.StatusCode, after: time.Duration(after) * time.Second,
			text: fmt.Sprintf("%s %s: %s: %s", method, path, resp.Status, strings.TrimSpace(string(b[:min(len(b), 500)])))}
	case out == nil:
		return resp.Header.Get("ETag"), nil
	}
	return resp.Header.Get("ETag"), json.Unmarshal(b, out)
}
