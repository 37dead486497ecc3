package access

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Versions is where definitions are kept.
type Versions interface {
	// Workflow and Version answer not_found.
	Workflow(ctx context.Context, workspace, name string) (flow.Workflow, error)
	Version(ctx context.Context, workspace, id string) (flow.WorkflowVersion, error)
}

// SettingsIn says for what settings are asked: the workspace, or a workflow or
// a step of it.
type SettingsIn struct {
	Workflow string `query:"workflow" doc:"As they hold for this workflow: its published version's own settings go before the workspace's."`
	Step     string `query:"step" doc:"As they hold for this step of the workflow, by id or index."`
}

// GetSettingIn names a setting, and for what it is asked.
type GetSettingIn struct {
	Key string `path:"key"`
	SettingsIn
}

// layer is what a definition sets: where, and its values by full key.
type layer struct {
	source string
	values map[string]string
}

// layers gives what the workflow and the step set, the nearest last. It
// answers not_found for what is not there, and invalid for a step of nothing.
func (s *Service) layers(ctx context.Context, workspace string, in SettingsIn) ([]layer, error) {
	if in.Workflow == "" {
		if in.Step != "" {
			return nil, flow.Errorf(flow.CodeInvalid, "a step belongs to a workflow").At("step").Right("name the workflow too")
		}
		return nil, nil
	}
	w, err := s.c.Versions.Workflow(ctx, workspace, in.Workflow)
	if err != nil {
		return nil, err
	}
	v, err := s.c.Versions.Version(ctx, workspace, w.VersionID)
	if err != nil {
		return nil, err
	}
	var def flow.Definition
	if err := json.Unmarshal(v.Definition, &def); err != nil {
		return nil, flow.Errorf(flow.CodeInternal, "the definition of %q cannot be read", w.Name).Because(err)
	}
	out := []layer{{"workflow", def.Recovery}}
	if in.Step == "" {
		return out, nil
	}
	var found *flow.Step
	def.Walk(func(st *flow.Step) {
		if found == nil && (st.ID == in.Step || strconv.Itoa(st.Index) == in.Step) {
			found = st
		}
	})
	if found == nil {
		return nil, flow.Errorf(flow.CodeNotFound, "workflow %q has no step %q", w.Name, clip(in.Step)).At("step").Right("a step's id or index")
	}
	return append(out, layer{"step", found.Recovery}), nil
}

// over shows a setting as it holds where definitions set it too.
func (r rule) over(v SettingView, layers []layer) SettingView {
	for _, l := range layers {
		if value, set := l.values[r.key]; set && !r.own {
			v.Value, v.Source, v.UpdatedAt = &value, l.source, nil
		}
	}
	return v
}
