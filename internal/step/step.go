// Package step holds the step types, one file each, and the table of them.
// Validation, the published JSON Schema, the forms and the reference page all
// come from that table: a new type is one file and one line in [NewTable].
package step

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Type is a step type. It keeps nothing of a call and is safe for concurrent
// use. A failure of Run is a [*flow.StepError]; its message may still hold
// what an outsider echoed, so whoever stores it masks it first.
type Type interface {
	Describe() flow.StepType
	Run(ctx context.Context, c flow.Call) (flow.Outcome, error)
}

// Tools calls a tool of an MCP server registered in the workspace and gives
// its answer: structured content if there is any, else JSON in a text, else
// the text as a JSON string. A tool that says that it failed is a
// [*flow.StepError] of kind tool with its text as the message; a server that
// is not registered is a [*flow.Error]; the errors of mcpclient pass as they
// are.
type Tools interface {
	Call(ctx context.Context, workspace, server, tool string, params json.RawMessage) (json.RawMessage, error)
}

// Deps is what the step types need of the outside.
type Deps struct {
	HTTP    *http.Client // goes through the egress guard
	Tools   Tools
	Sandbox Sandbox
	Vaults  Vaults
}

// Table is every step type, in the order in which they are documented.
type Table struct {
	types []Type
	about []flow.StepType
}

// NewTable makes the step types.
func NewTable(d Deps) Table {
	t := Table{types: []Type{
		newHTTPRequest(d.HTTP),
		newTransform(),
		newConditional(),
		parallel{},
		humanApproval{},
		wait{},
		mcpCall{tools: d.Tools},
		code{sandbox: d.Sandbox},
		agent{vaults: d.Vaults},
	}}
	for _, typ := range t.types {
		t.about = append(t.about, typ.Describe())
	}
	return t
}

// Types describes every type, in the order of the table.
func (t Table) Types() []flow.StepType { return append([]flow.StepType(nil), t.about...) }

// Get gives the type called name, and whether there is one.
func (t Table) Get(name string) (Type, bool) {
	for i := range t.about {
		if t.about[i].Name == name {
			return t.types[i], true
		}
	}
	return nil, false
}

// Run executes one attempt of a step of the type called name. The error is
// always a [*flow.StepError]: a panic of a type is one of kind internal, an
// output over c.MaxOutput (0 is no limit) one of kind too_large.
func (t Table) Run(ctx context.Context, name string, c flow.Call) (out flow.Outcome, err error) {
	typ, ok := t.Get(name)
	if !ok {
		return flow.Outcome{}, failf(flow.KindConfig, "there is no step type %q", name)
	}
	defer func() {
		if p := recover(); p != nil {
			out, err = flow.Outcome{}, because(failf(flow.KindInternal, "the step type %s broke", name), fmt.Errorf("panic: %v", p))
		}
	}()
	if ctx.Err() != nil {
		return flow.Outcome{}, stopped(ctx, 0, "")
	}
	out, err = typ.Run(ctx, c)
	if err != nil {
		return flow.Outcome{}, asStepError(err)
	}
	if c.MaxOutput > 0 && int64(len(out.Value)) > c.MaxOutput {
		return flow.Outcome{}, tooLarge("the output", c.MaxOutput)
	}
	return out, nil
}
