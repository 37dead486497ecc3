package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Pending is a case that waits in the inbox for an agent.
type Pending struct {
	RunID     string    `json:"runId"`
	StepIndex int       `json:"stepIndex"`
	Iteration string    `json:"iteration"`
	Workflow  string    `json:"workflow"`
	Title     string    `json:"title"`
	Type      string    `json:"type"`
	Error     string    `json:"error"`
	OpenedAt  time.Time `json:"openedAt"`
	ExpiresAt time.Time `json:"expiresAt"`
	ClaimedBy *string   `json:"claimedBy"`
}

// StepRef names the case.
func (p Pending) StepRef() StepRef {
	return StepRef{RunID: p.RunID, StepIndex: p.StepIndex, Iteration: p.Iteration}
}

// PendingFilter asks for a page of the inbox. With Wait the server holds the
// answer back until there is something, or something else than the page
// tagged Tag.
type PendingFilter struct {
	Page
	Wait time.Duration // at most 50 s; whole seconds
	Tag  string        // of the page that the caller has
}

// Inbox is a page of the inbox. Unchanged says that it is the one that the
// caller has; the page is empty then.
type Inbox struct {
	List[Pending]
	Tag       string
	Unchanged bool
}

// StepRef names a step instance of a run.
type StepRef struct {
	RunID     string
	StepIndex int
	Iteration string // inside a loop
}

func (s StepRef) at(rest string) (string, url.Values) {
	return at("/v1/recovery/", s.RunID, "/"+strconv.Itoa(s.StepIndex)+rest), with(url.Values{}, "iteration", s.Iteration)
}

// Submitted says what was applied.
type Submitted struct {
	RunID     string          `json:"runId"`
	StepIndex int             `json:"stepIndex"`
	Iteration string          `json:"iteration"`
	GateID    string          `json:"gateId"`
	CaseID    string          `json:"caseId"`
	Applied   flow.ActionType `json:"applied"`
	AppliedAt time.Time       `json:"appliedAt"`
}

// Pending reads the inbox, oldest first; rate_limited where too many wait.
func (c *Client) Pending(ctx context.Context, f PendingFilter) (*Inbox, error) {
	q := f.query()
	if f.Wait > 0 {
		q = with(q, "wait", strconv.Itoa(int(f.Wait/time.Second)))
	}
	var extra http.Header
	if f.Tag != "" {
		extra = http.Header{"If-None-Match": {f.Tag}}
	}
	resp, err := c.do(ctx, http.MethodGet, "/v1/recovery/pending", q, nil, extra)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out := &Inbox{Tag: resp.Header.Get("ETag")}
	if resp.StatusCode == http.StatusNotModified {
		_, err = io.Copy(io.Discard, resp.Body)
		out.Unchanged, out.Items = true, []Pending{}
		return out, err
	}
	page, err := answerOf[List[Pending]](ctx, c, resp)
	if err != nil {
		return nil, err
	}
	out.List = *page
	return out, nil
}

// PendingInput gives what an agent is shown of a case: RecoveryToolInput.
func (c *Client) PendingInput(ctx context.Context, s StepRef) (*flow.RecoveryInput, error) {
	path, q := s.at("")
	return send[flow.RecoveryInput](ctx, c, http.MethodGet, path, q, nil)
}

// PendingCase gives the whole case.
func (c *Client) PendingCase(ctx context.Context, s StepRef) (*flow.Case, error) {
	path, q := s.at("/case")
	return send[flow.Case](ctx, c, http.MethodGet, path, q, nil)
}

// SubmitAction answers a case with one of the five actions; conflict, with
// what was applied, if it waits no longer, and invalid with the fields.
func (c *Client) SubmitAction(ctx context.Context, s StepRef, action json.RawMessage) (*Submitted, error) {
	path, q := s.at("/action")
	return send[Submitted](ctx, c, http.MethodPost, path, q, action)
}

// Claimed says who has claimed a case and for how long.
type Claimed struct {
	RunID     string    `json:"runId"`
	StepIndex int       `json:"stepIndex"`
	Iteration string    `json:"iteration"`
	GateID    string    `json:"gateId"`
	CaseID    string    `json:"caseId"`
	ClaimedBy string    `json:"claimedBy"`
	ClaimedAt time.Time `json:"claimedAt"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// Claim claims a case for a time, or prolongs the claim; 0 is the server's
// default. Those who share a key need names. It answers conflict, naming the
// holder, if the case is somebody else's.
func (c *Client) Claim(ctx context.Context, s StepRef, lease time.Duration, name string) (*Claimed, error) {
	path, q := s.at("/claim")
	q = with(q, "name", name)
	if lease > 0 {
		q = with(q, "lease", strconv.Itoa(int(lease/time.Second)))
	}
	return send[Claimed](ctx, c, http.MethodPost, path, q, nil)
}

// Release gives up a claim.
func (c *Client) Release(ctx context.Context, s StepRef, name string) error {
	path, q := s.at("/claim")
	_, err := send[nothing](ctx, c, http.MethodDelete, path, with(q, "name", name), nil)
	return err
}
