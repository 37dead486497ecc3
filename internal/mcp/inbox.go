package mcp

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/recovery"
)

const (
	uriContract = recovery.SchemaURI
	uriPending  = "cffbrw://recovery/pending"
	uriCase     = "cffbrw://recovery/{runId}/{stepIndex}"
	toolSubmit  = "submit_recovery_action"
	toolClaim   = "claim_recovery_case"
	toolRelease = "release_recovery_claim"
)

// offerInbox is all that an agent's key may use.
func (o *offer) offerInbox() {
	o.resource("recovery.schema", &sdk.Resource{URI: uriContract, Name: "diagnose-step-failure-schema", Title: "What a recovery agent is given and may answer",
		Description: "JSON Schemas of RecoveryToolInput and RecoveryAction. A recovery agent over MCP lists the tool " + recovery.ToolName + " with them.",
		MIMEType:    "application/json"},
		func(context.Context, flow.Caller) (any, error) { return recovery.Schema(), nil })
	inbox := o.c.Inbox
	if inbox == nil {
		return
	}
	o.resource("recovery.pending", &sdk.Resource{URI: uriPending, Name: "pending", Title: "Failed steps that wait for an agent", MIMEType: "application/json",
		Description: "Oldest first, at most 500. Read " + uriCase + " for what failed, then answer with " + toolSubmit + " before expiresAt."},
		func(ctx context.Context, by flow.Caller) (any, error) {
			return inbox.Pending(ctx, by, &engine.PendingIn{Limit: 500})
		})
	if op, ok := o.may("recovery.input"); ok {
		read := o.reader(op, "application/json", func(ctx context.Context, by flow.Caller, uri string) (any, error) {
			in, err := stepOf(uri)
			if err != nil {
				return nil, err
			}
			return inbox.PendingInput(ctx, by, in)
		})
		about := "RecoveryToolInput: the step, its error, what came before, and the request that was sent."
		o.server.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: uriCase, Name: "case", Title: "A failed step", Description: about, MIMEType: "application/json"}, read)
		o.server.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: uriCase + "{?iteration}", Name: "case-in-a-loop", Title: "A failed step in a loop",
			Description: about, MIMEType: "application/json"}, read)
	}
	o.tool(tool{op: "recovery.action", name: toolSubmit, title: "Answer a failed step",
		about: "Answers a failed step that waits in " + uriPending + "; its run goes on with the action at once. The action is checked as " + uriContract +
			" says: fixed_output, retry_with_params, code_fix, retry_with_tool or needs_human. A refused action changes nothing: correct it and send it again.",
		in: shape{
			{name: "runId", kind: "string", required: true, about: "as the inbox lists it"},
			{name: "stepIndex", kind: "integer", required: true, about: "as the inbox lists it"},
			{name: "iteration", kind: "string", about: "as the inbox lists it; needed inside a loop"},
			{name: "action", kind: "object", required: true, about: "a RecoveryAction: type, diagnosis, and by type output, modifications, code, toolCall or suggestion"},
		},
		call: func(ctx context.Context, by flow.Caller, a args) (any, error) {
			return inbox.SubmitAction(ctx, by, &engine.SubmitIn{StepIn: engine.StepIn{RunID: a.text("runId"), StepIndex: a.whole("stepIndex"), Iteration: a.text("iteration")},
				Body: json.RawMessage(a["action"])})
		}})
	o.offerClaims(inbox)
}

// offerClaims lets several agents share the inbox.
func (o *offer) offerClaims(inbox Inbox) {
	where := shape{
		{name: "runId", kind: "string", required: true, about: "as the inbox lists it"},
		{name: "stepIndex", kind: "integer", required: true, about: "as the inbox lists it"},
		{name: "iteration", kind: "string", about: "as the inbox lists it; needed inside a loop"},
		{name: "name", kind: "string", about: "what you call yourself; agents that share a key need names to be told apart"},
	}
	step := func(a args) engine.StepIn {
		return engine.StepIn{RunID: a.text("runId"), StepIndex: a.whole("stepIndex"), Iteration: a.text("iteration")}
	}
	o.tool(tool{op: "recovery.claim", name: toolClaim, title: "Claim a failed step",
		about: "Claims a failed step that waits in " + uriPending + ", or prolongs your claim, so that no other agent works on it. The claim ends with the lease; the step's own time goes on. " +
			"You need no claim to answer; a step that somebody else has claimed cannot be answered until the claim ends.",
		in: append(where[:len(where):len(where)], member{name: "lease", kind: "integer", least: 5, most: 3600, about: "seconds; 60 if absent"}),
		call: func(ctx context.Context, by flow.Caller, a args) (any, error) {
			return inbox.ClaimCase(ctx, by, &engine.ClaimIn{StepIn: step(a), Lease: a.whole("lease"), Name: a.text("name")})
		}})
	o.tool(tool{op: "recovery.release", name: toolRelease, title: "Give up a claim",
		about: "Gives up your claim on a failed step, so that another agent may take it.", in: where,
		call: func(ctx context.Context, by flow.Caller, a args) (any, error) {
			return inbox.ReleaseCase(ctx, by, &engine.ReleaseIn{StepIn: step(a), Name: a.text("name")})
		}})
}

// stepOf reads which step a resource is about.
func stepOf(uri string) (*engine.StepIn, error) {
	wrong := flow.Errorf(flow.CodeInvalid, "this names no step of a run").At("uri").Right(uriCase + ", with ?iteration= inside a loop")
	u, err := url.Parse(uri)
	if err != nil {
		return nil, wrong
	}
	words := strings.Split(strings.TrimPrefix(u.Path, "/"), "/")
	if len(words) != 2 {
		return nil, wrong
	}
	index, err := strconv.Atoi(words[1])
	if err != nil || index < 0 {
		return nil, wrong
	}
	return &engine.StepIn{RunID: words[0], StepIndex: index, Iteration: u.Query().Get("iteration")}, nil
}
