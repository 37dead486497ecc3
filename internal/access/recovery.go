package access

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Recovery gives the recovery settings that hold for a step: each layer (the
// workflow's, then the step's, keys with their prefix) over what is before it,
// over the workspace's, over the defaults. A wrong value in a layer is invalid
// and names it. The caller must not change the slices in the answer.
func (s *Service) Recovery(ctx context.Context, workspace string, layers ...map[string]string) (flow.RecoverySettings, error) {
	sp, err := s.space(ctx, workspace)
	if err != nil {
		return flow.RecoverySettings{}, err
	}
	if err := sp.baseErrs["recovery"]; err != nil {
		return flow.RecoverySettings{}, err
	}
	h := sp.base
	for _, layer := range layers {
		if problems := s.CheckRecovery(layer); len(problems) > 0 {
			e := flow.Errorf(flow.CodeInvalid, "the recovery settings of the definition are not right")
			e.Problems = problems
			return flow.RecoverySettings{}, e
		}
		for key, value := range layer {
			s.rules[key].set(&h, value)
		}
	}
	if h.recovery.Builtin == "model" {
		return h.recovery, sp.baseErrs["model"]
	}
	return h.recovery, nil
}

// Limits gives the limits that hold in a workspace.
func (s *Service) Limits(ctx context.Context, workspace string) (flow.Limits, error) {
	sp, err := s.space(ctx, workspace)
	if err != nil {
		return flow.Limits{}, err
	}
	return sp.base.limits, sp.baseErrs["limits"]
}

// Gates gives what holds in a workspace for gates that wait for a person.
func (s *Service) Gates(ctx context.Context, workspace string) (flow.GatePolicy, error) {
	sp, err := s.space(ctx, workspace)
	if err != nil {
		return flow.GatePolicy{}, err
	}
	policy := sp.base.gates
	policy.Notify = sp.notices.Ready()
	return policy, sp.baseErrs["gates"]
}

// CheckRecovery says what is wrong with the recovery settings of a definition
// or of a step in it, keys with their prefix. Whether an MCP server is
// registered is not looked at: that may change after the definition is saved.
func (s *Service) CheckRecovery(layer map[string]string) []flow.Problem {
	var out []flow.Problem
	for _, key := range slices.Sorted(maps.Keys(layer)) {
		value := layer[key]
		r, ok := s.rules[key]
		switch {
		case !ok:
			out = append(out, flow.Problem{Field: key, Message: "there is no such recovery setting", Fix: "one of " + s.ownKeys()})
		case r.own:
			out = append(out, flow.Problem{Field: key, Message: "only the workspace has this setting", Fix: "set it with PUT /v1/settings/" + key})
		case value == "":
			out = append(out, flow.Problem{Field: key, Message: "the value is empty", Fix: r.fix})
		default:
			if why := r.check(value); why != "" {
				e := r.wrong(value, why)
				out = append(out, flow.Problem{Field: key, Message: e.Message, Fix: e.Fix})
			}
		}
	}
	return out
}

// ownKeys lists the settings that a definition may have.
func (s *Service) ownKeys() string {
	out := ""
	for _, key := range slices.Sorted(maps.Keys(s.rules)) {
		if s.rules[key].own {
			continue
		}
		if out != "" {
			out += ", "
		}
		out += key
	}
	return out
}

// base puts the workspace's settings over the defaults. A stored value that is
// not right (an older version's, or one of a newer) is an error, never the
// default in its place; it is an error of those settings only that begin alike.
func (s *Service) base(sp *space) (holds, map[string]error) {
	var h holds
	wrong := map[string]error{}
	for _, key := range slices.Sorted(maps.Keys(s.rules)) {
		r := s.rules[key]
		row, set := sp.settings[key]
		switch {
		case r.writeOnly:
		case !set:
			if r.def != "" {
				r.set(&h, r.def)
			}
		default:
			if why := r.check(row.Value); why != "" {
				part, _, _ := strings.Cut(key, ".")
				wrong[part] = r.wrong(row.Value, why)
				continue
			}
			r.set(&h, row.Value)
		}
	}
	if h.recovery.A2AAgentURL != "" {
		info := cardInfo(sp.settings[keyAgentURL])
		h.recovery.A2AOrigin, h.recovery.A2ACard = info.EndpointOrigin, info.Card
		if tokenOrigin(sp.settings[keyAgentToken]) == info.EndpointOrigin {
			h.recovery.A2AAuthToken = sp.token
		}
	}
	if tokenOrigin(sp.settings[keyModelKey]) == originOf(h.recovery.Model.URL) {
		h.recovery.Model.Key = sp.modelKey
	}
	return h, wrong
}
