package recovery

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/secret"
)

// Settings gives what holds in a workspace. Layers are a definition's recovery
// settings and a step's, in this order, keys with their prefix.
type Settings interface {
	Recovery(ctx context.Context, workspace string, layers ...map[string]string) (flow.RecoverySettings, error)
	Limits(ctx context.Context, workspace string) (flow.Limits, error)
}

// Secrets gives the masker of a workspace.
type Secrets interface {
	Masker(ctx context.Context, workspace string) (*secret.Masker, error)
}

// Egress says whether an outside address may be called; its error says why
// not.
type Egress interface {
	CheckURL(ctx context.Context, rawURL string) error
}

// Tools says whether a tool may be called in a workspace. The error is exactly
// what the step log shows: the server is not registered, or does not list the
// tool, or cannot be asked.
type Tools interface {
	Has(ctx context.Context, workspace, server, tool string) error
}

// Responder carries a question to whoever answers it. An error of Ask is
// expected to be a [*flow.AskError]. Ask returns when ctx ends.
type Responder interface {
	Name() string // a2a, mcp, rules, model
	Ask(ctx context.Context, q flow.Question) (flow.Answer, error)
}

// Trier asks one agent that is named for the occasion. The sighting is set
// even if asking failed.
type Trier interface {
	Try(ctx context.Context, agent flow.AgentRef, q flow.Question) (flow.Sighting, flow.Answer, error)
}

// Records are the cases and gates of a workspace. Case and Gate answer
// not_found. Cases are listed newest first, those before the id before; gates
// oldest first, those after the id after.
type Records interface {
	Case(ctx context.Context, workspace, id string) (flow.Case, error)
	Cases(ctx context.Context, workspace, runID, before string, limit int) ([]flow.Case, error)
	Gate(ctx context.Context, workspace, id string) (flow.Gate, error)
	Gates(ctx context.Context, workspace, runID, status, after string, limit int) ([]flow.Gate, error)
	// ModelDays lists what the built-in model has used, newest day first.
	ModelDays(ctx context.Context, workspace, before string, limit int) ([]flow.ModelDay, error)
}

// Config is what a desk is made of. All members but Sandbox are required.
type Config struct {
	Settings     Settings
	Secrets      Secrets
	Egress       Egress
	Tools        Tools
	Records      Records
	Observations Observations
	Trier        Trier
	Sandbox      Sandbox         // runs code fixes; nil refuses them
	Responders   []Responder     // found by their names; rules is required
	Types        []flow.StepType // what of each type's config a mend may change
	Clock        flow.Clock
	NewID        func(prefix string) string
	Log          *slog.Logger
}

// Desk decides what becomes of failed steps. It keeps nothing between calls
// but the cases that own agents are observed about, and is safe for concurrent
// use. [Desk.Start] it before runs are driven, and [Desk.Stop] it after.
type Desk struct {
	c          Config
	responders map[string]Responder
	mendable   map[string][]string
	observer   *observer
}

// New makes a desk.
func New(c Config) *Desk {
	d := &Desk{c: c, responders: map[string]Responder{}, mendable: map[string][]string{}}
	for _, r := range c.Responders {
		d.responders[r.Name()] = r
	}
	for _, t := range c.Types {
		d.mendable[t.Name] = t.Mendable
	}
	d.observer = newObserver(d)
	return d
}

// sitting is one case at the desk: everything that deciding it needs.
type sitting struct {
	d        *Desk
	failure  flow.Failure
	kase     flow.Case
	settings flow.RecoverySettings
	limits   flow.Limits
	masker   *secret.Masker

	trial     bool   // nothing is applied
	attempted bool   // whether the own agent was asked
	summary   string // what it said, if that was valid
	took      time.Duration
	passed    string // why it was passed over
	failed    string // why the built-in model was
	beside    string // that it is observed
}

// sit gathers what holds for a failure. On an error the sitting can still
// open a gate.
func (d *Desk) sit(ctx context.Context, f flow.Failure, k flow.Case) (*sitting, error) {
	s := &sitting{d: d, failure: f, kase: k, limits: flow.DefaultLimits()}
	s.kase.Asked = append([]flow.Asked(nil), k.Asked...) // the engine's case stays as it is
	var err error
	if s.masker, err = d.c.Secrets.Masker(ctx, f.Run.Workspace); err != nil {
		return s, err
	}
	s.kase = secret.Masked(s.masker, s.kase) // it may have been frozen before something in it was a secret
	if s.limits, err = d.c.Settings.Limits(ctx, f.Run.Workspace); err != nil {
		return s, err
	}
	s.settings, err = d.c.Settings.Recovery(ctx, f.Run.Workspace, layers(f)...)
	return s, err
}

// layers are the recovery settings that the failure brings along: the
// definition's, and over them the step's.
func layers(f flow.Failure) []map[string]string {
	return []map[string]string{f.Recovery, f.Step.Recovery}
}

func (s *sitting) progress() flow.Progress { return s.failure.Instance.Progress }

func (s *sitting) bench() bench {
	check := s.d.c.Egress.CheckURL
	if s.trial { // a sample's own host is made up, and a case's may be gone
		check = func(ctx context.Context, to string) error {
			if sameHost(to, s.kase.Input.ResolvedRequest) {
				return nil
			}
			return s.d.c.Egress.CheckURL(ctx, to)
		}
	}
	return bench{failure: s.failure, settings: s.settings, limits: s.limits, mendable: s.d.mendable[s.failure.Step.Type],
		check: check, mask: func(raw json.RawMessage) json.RawMessage { return s.masker.JSON(raw) }}
}
