package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/longstop-dev/longstop/internal/definition"
	"github.com/longstop-dev/longstop/internal/flow"
)

// CreateWorkflow checks a definition and stores it as the workflow's next
// version, which new runs use; with publish=false as an unpublished version
// found by its content. It answers invalid with a line for each problem.
func (e *Engine) CreateWorkflow(ctx context.Context, by flow.Caller, in *CreateWorkflowIn) (*WorkflowView, error) {
	sum := sha256.Sum256(in.RawBody)
	digest := hex.EncodeToString(sum[:])
	once, err := e.once(by, in.Once, struct {
		Op, Digest string
		Publish    bool
	}{"workflows.create", digest, in.Publish})
	if err != nil {
		return nil, err
	}
	if v, err := e.storedBefore(ctx, by, in, once); v != nil || err != nil {
		return v, err
	}
	def, err := e.check(in)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(def)
	if err != nil {
		return nil, flow.Errorf(flow.CodeInternal, "the definition cannot be stored").Because(err)
	}
	v := flow.WorkflowVersion{ID: e.NewID("ver"), Workspace: by.Workspace, Workflow: def.Name, Digest: digest,
		Source: string(in.RawBody), Definition: raw, Author: by.Person, CreatedAt: e.Clock.Now()}
	did := by.Did("workflows.create", "workflow/"+def.Name, v.CreatedAt, map[string]any{"versionId": v.ID, "digest": v.Digest, "published": in.Publish})
	if in.Publish {
		v, err = e.Versions.Publish(ctx, v, once, did)
	} else {
		v, err = e.Versions.Keep(ctx, v, once, did)
	}
	if once != nil && flow.CodeOf(err) == flow.CodeConflict { // another request with this key was faster
		if v, err := e.storedBefore(ctx, by, in, once); v != nil || err != nil {
			return v, err
		}
	}
	if err != nil {
		return nil, err
	}
	return versionView(v, in.Publish), nil
}

// storedBefore gives the answer that the creation of a version got the first
// time; nil if this is the first time.
func (e *Engine) storedBefore(ctx context.Context, by flow.Caller, in *CreateWorkflowIn, once *flow.Once) (*WorkflowView, error) {
	id, err := e.made(ctx, once)
	if err != nil || id == "" {
		return nil, err
	}
	v, err := e.Versions.Version(ctx, by.Workspace, id)
	if err != nil {
		return nil, err
	}
	return versionView(v, in.Publish), nil
}

// ValidateWorkflow checks a definition and stores nothing.
func (e *Engine) ValidateWorkflow(_ context.Context, _ flow.Caller, in *CreateWorkflowIn) (*ValidateOut, error) {
	def, err := e.check(in)
	if err != nil {
		return nil, err
	}
	out := &ValidateOut{Valid: true, Name: def.Name}
	def.Walk(func(*flow.Step) { out.Steps++ })
	return out, nil
}

// PrevalidateMarkdown says what a description of a workflow in markdown leaves
// out. It stores nothing and asks no model.
func (e *Engine) PrevalidateMarkdown(_ context.Context, _ flow.Caller, in *PrevalidateIn) (*definition.Outline, error) {
	o := definition.Prevalidate(in.Markdown, e.defs.list)
	return &o, nil
}

// check parses a definition and compiles it, so that what is stored can run.
func (e *Engine) check(in *CreateWorkflowIn) (*flow.Definition, error) {
	name := in.Filename
	if name == "" {
		name = "definition"
	}
	def, err := checkDefinition(e.defs.parser, name, in.RawBody, e.Types, e.Workspaces.CheckRecovery)
	if err != nil {
		return nil, err
	}
	_, err = e.defs.compile(def)
	return def, err
}

// CheckDefinition parses a definition and finds all that can be known to be
// wrong with it before it runs. Its error is invalid, with a problem for each
// thing.
func CheckDefinition(name string, src []byte, types StepTypes, recovery func(map[string]string) []flow.Problem) (*flow.Definition, error) {
	return checkDefinition(definition.NewParser(types.Types()), name, src, types, recovery)
}

func checkDefinition(parser *definition.Parser, name string, src []byte, types StepTypes, recovery func(map[string]string) []flow.Problem) (*flow.Definition, error) {
	def, err := parser.Parse(name, src)
	if err != nil {
		return nil, err
	}
	problems := recovery(def.Recovery)
	def.Walk(func(s *flow.Step) {
		for _, p := range append(recovery(s.Recovery), types.Check(s.Type, s.Config)...) {
			p.Field = "step " + s.ID + ": " + p.Field
			problems = append(problems, p)
		}
	})
	if len(problems) == 0 {
		return def, nil
	}
	bad := flow.Errorf(flow.CodeInvalid, "the definition is not valid").At(name)
	bad.Problems = problems
	return nil, bad
}

// ListWorkflows lists the published workflows by name.
func (e *Engine) ListWorkflows(ctx context.Context, by flow.Caller, in *Page) (*List[WorkflowView], error) {
	limit := in.limit()
	all, err := e.Versions.Workflows(ctx, by.Workspace, in.After, limit+1)
	if err != nil {
		return nil, err
	}
	out := &List[WorkflowView]{Items: make([]WorkflowView, 0, len(all))}
	for _, w := range all {
		if len(out.Items) == limit {
			out.Next = out.Items[limit-1].Name
			break
		}
		out.Items = append(out.Items, WorkflowView{Name: w.Name, VersionID: w.VersionID, Number: w.Number, UpdatedAt: w.UpdatedAt, Published: true})
	}
	return out, nil
}

// GetWorkflow reads a workflow's published version.
func (e *Engine) GetWorkflow(ctx context.Context, by flow.Caller, in *WorkflowIn) (*WorkflowView, error) {
	w, err := e.published(ctx, by, in.Name)
	if err != nil {
		return nil, err
	}
	v, err := e.Versions.Version(ctx, by.Workspace, w.VersionID)
	if err != nil {
		return nil, err
	}
	return versionView(v, true), nil
}

// StepTypes lists the step types that definitions may use.
func (e *Engine) StepTypes(context.Context, flow.Caller, *struct{}) (*List[flow.StepType], error) {
	return &List[flow.StepType]{Items: e.defs.list}, nil
}

// DefinitionSchema gives the JSON Schema of definitions.
func (e *Engine) DefinitionSchema(context.Context, flow.Caller, *struct{}) (*json.RawMessage, error) {
	s := definition.Published(e.defs.list)
	return &s, nil
}

func versionView(v flow.WorkflowVersion, published bool) *WorkflowView {
	return &WorkflowView{Name: v.Workflow, VersionID: v.ID, Number: v.Number, Published: published, Digest: v.Digest, Author: v.Author, UpdatedAt: v.CreatedAt, Source: v.Source, Definition: v.Definition}
}
