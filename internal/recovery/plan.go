package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/definition"
	"github.com/longstop-dev/longstop/internal/flow"
)

// plan is an action that has passed every check.
type plan struct {
	action    flow.Action
	mend      mend
	fixed     *repair // what a code_fix made
	after     time.Duration
	notes     []string
	source    flow.Source
	responder string
}

// plan checks whether an action may be carried out.
func (s *sitting) plan(ctx context.Context, a flow.Action, after time.Duration) (*plan, *Rejection) {
	p := &plan{action: a, after: after}
	switch a.Type {
	case flow.ActionFixedOutput:
		return p, s.checkOutput(a.Output)
	case flow.ActionRetryWithParams:
		m, r := s.bench().modifications(ctx, a.Modifications)
		p.mend, p.notes = m, m.notes
		return p, r
	case flow.ActionRetryWithTool:
		return p, s.checkTool(ctx, a.ToolCall)
	case flow.ActionCodeFix:
		f, r := s.runCode(ctx, a.Code)
		p.fixed = f
		return p, r
	}
	return p, nil
}

// checkOutput holds a given output to the step's contract and to the limits
// that hold for its own outputs.
func (s *sitting) checkOutput(output json.RawMessage) *Rejection {
	if limit := s.limits.OutputBytes; limit > 0 && int64(len(output)) > limit {
		return reject("output", fmt.Sprintf("%d bytes", len(output)), fmt.Sprintf("at most %d, the limit of limits.output_bytes", limit))
	}
	contract := s.failure.Step.Output
	if len(contract) == 0 || string(contract) == "null" {
		return nil
	}
	schema, err := definition.CompileSchema(contract)
	if err != nil {
		return reject("output", "the step's output contract cannot be used", "")
	}
	var lines []string
	for _, p := range schema.Check(output) {
		lines = append(lines, strings.TrimPrefix(oneLine(p.Field, 60)+": "+oneLine(p.Message, 120), ": "))
	}
	if len(lines) == 0 {
		return nil
	}
	return reject("output", "does not satisfy the step's output contract: "+strings.Join(lines[:min(len(lines), 3)], "; "), "")
}

// checkTool has the workspace say whether the tool may be called; the log
// shows exactly what it says.
func (s *sitting) checkTool(ctx context.Context, call *flow.ToolCall) *Rejection {
	limit := max(s.budget(), time.Second)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := s.d.c.Tools.Has(ctx, s.failure.Run.Workspace, call.Server, call.Tool); err != nil {
		return reject("toolCall", err.Error(), "")
	}
	return nil
}
