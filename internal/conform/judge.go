package conform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/ident"
	"github.com/longstop-dev/longstop/internal/recovery"
	"github.com/longstop-dev/longstop/internal/secret"
)

// asker puts one case to the agent and gives what it answers.
type asker func(ctx context.Context, q flow.Question) (flow.Answer, error)

// judge says what of an answer Longstop would take: it asks the very desk that
// decides in a live run, in a workspace that exists for the occasion.
type judge struct {
	types   []flow.StepType
	box     recovery.Sandbox
	timeout time.Duration
	ask     asker
}

func newJudge(types []flow.StepType, box recovery.Sandbox, timeout time.Duration, ask asker) *judge {
	return &judge{types: types, box: box, timeout: timeout, ask: ask}
}

// desk is one at which this judge sits for everybody but the desk itself.
func (j *judge) desk() *recovery.Desk {
	return recovery.New(recovery.Config{Settings: j, Secrets: j, Egress: names{}, Tools: anyTool{}, Records: noRecords{}, Trier: j, Sandbox: j.box,
		Types: j.types, Clock: flow.SystemClock{}, NewID: ident.New, Log: slog.New(slog.DiscardHandler)})
}

// try puts a case to the agent and judges the answer.
func (j *judge) try(ctx context.Context, c Case) Result {
	r := Result{Case: c.Name, About: c.About}
	t, err := j.desk().Try(ctx, "conform", flow.AgentRef{URL: "under-test"}, flow.Case{Input: c.Input, Contract: c.Contract, Response: c.Response})
	if err != nil {
		r.Problems = []Problem{{KindContract, err.Error()}}
		return r
	}
	r.DurationMS, r.Action, r.Notes = t.DurationMS, t.Action, t.Notes
	action, _, unread := recovery.ParseAction(t.Action, flow.DefaultLimits())
	if unread == nil {
		r.Type = action.Type
	}
	switch late := t.DurationMS >= float64(j.timeout.Milliseconds()); {
	case !t.Valid && late:
		r.Problems = append(r.Problems, Problem{KindTime, t.Rejection})
	case !t.Valid:
		r.Problems = append(r.Problems, Problem{KindContract, t.Rejection})
	}
	if unread == nil { // an unsafe answer is unsafe though the guard stops it
		for _, check := range c.safe {
			if why := check(c, action); why != "" {
				r.Problems = append(r.Problems, Problem{KindSafety, why})
			}
		}
	}
	r.Passed = len(r.Problems) == 0
	return r
}

// answered judges an answer that has come by itself.
func (j *judge) answered(ctx context.Context, c Case, action []byte) Result {
	given := *j
	given.ask = func(context.Context, flow.Question) (flow.Answer, error) { return flow.Answer{Action: action}, nil }
	return given.try(ctx, c)
}

// Try is the desk's way to the agent.
func (j *judge) Try(ctx context.Context, _ flow.AgentRef, q flow.Question) (flow.Sighting, flow.Answer, error) {
	answer, err := j.ask(ctx, q)
	return flow.Sighting{Found: true, Kind: "a2a"}, answer, err
}

// Recovery are the defaults, with the time that is allowed.
func (j *judge) Recovery(context.Context, string, ...map[string]string) (flow.RecoverySettings, error) {
	return flow.RecoverySettings{Mode: "sync", Timeout: j.timeout, MaxAttempts: 2, CodeFixApproval: "always"}, nil
}

// Limits are the defaults.
func (*judge) Limits(context.Context, string) (flow.Limits, error) { return flow.DefaultLimits(), nil }

// Masker knows the bait.
func (*judge) Masker(context.Context, string) (*secret.Masker, error) {
	return secret.NewMasker(map[string]string{baitName: baitValue}, nil), nil
}

// names is the egress guard without looking names up: the cases' hosts are
// made up.
type names struct{}

// CheckURL refuses what is no address of the outside.
func (names) CheckURL(_ context.Context, raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return errors.New("is no URL")
	}
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	ip, err := netip.ParseAddr(name)
	switch {
	case u.Scheme != "https":
		return fmt.Errorf("%s is not https", u.Scheme)
	case err == nil && (!ip.IsGlobalUnicast() || ip.IsPrivate()):
		return fmt.Errorf("%s is no public address", name)
	case err == nil, strings.Contains(name, ".") && strings.Trim(name, "0123456789.xabcdef") != "" && !strings.HasSuffix(name, ".local") && !strings.HasSuffix(name, ".internal"):
		return nil
	}
	return fmt.Errorf("%q is no public name", name)
}

// anyTool: which servers a workspace has is not an agent's to know here, and
// is checked in the live run.
type anyTool struct{}

// Has finds every tool.
func (anyTool) Has(context.Context, string, string, string) error { return nil }

// noRecords: nothing is kept.
type noRecords struct{}

var errNothing = flow.Errorf(flow.CodeNotFound, "nothing is kept here")

// Case finds none.
func (noRecords) Case(context.Context, string, string) (flow.Case, error) {
	return flow.Case{}, errNothing
}

// Cases finds none.
func (noRecords) Cases(context.Context, string, string, string, int) ([]flow.Case, error) {
	return nil, nil
}

// Gate finds none.
func (noRecords) Gate(context.Context, string, string) (flow.Gate, error) {
	return flow.Gate{}, errNothing
}

// Gates finds none.
func (noRecords) Gates(context.Context, string, string, string, string, int) ([]flow.Gate, error) {
	return nil, nil
}

// ModelDays finds none.
func (noRecords) ModelDays(context.Context, string, string, int) ([]flow.ModelDay, error) {
	return nil, nil
}
