package recovery

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/secret"
)

const (
	maxPrior    = 500      // characters of a prior output
	maxError    = 4000     // characters of an error
	maxResponse = 64 << 10 // bytes of what the step got
)

// Freeze makes the case of a failure: what responders are shown, masked, and
// nothing else. It asks no outsider. Its error means that the workspace's
// secrets could not be read: without them nothing may be shown.
func (d *Desk) Freeze(ctx context.Context, f flow.Failure) (flow.Case, error) {
	masker, err := d.c.Secrets.Masker(ctx, f.Run.Workspace)
	if err != nil {
		return flow.Case{}, err
	}
	p := f.Instance.Progress
	return flow.Case{
		ID:        d.c.NewID("case"),
		Workspace: f.Run.Workspace,
		RunID:     f.Run.ID,
		Workflow:  f.Run.Workflow,
		StepIndex: f.Step.Index,
		Iteration: f.Instance.Iteration,
		Episode:   p.Episode,
		Attempt:   p.Round,
		OpenedAt:  d.c.Clock.Now(),
		Input:     frozen(f, masker),
		Response:  response(f.Failed.Response, masker),
		Contract:  masker.JSON(f.Step.Output),
		Asked:     []flow.Asked{},
		Observed:  d.observed(ctx, f),
	}, nil
}

// frozen is RecoveryToolInput of a failure.
func frozen(f flow.Failure, m *secret.Masker) flow.RecoveryInput {
	config := f.Config
	if len(config) == 0 {
		config = f.Step.Config // what could not be filled in is shown as it was written
	}
	if len(config) == 0 {
		config = json.RawMessage("{}")
	}
	input := m.JSON(secret.StripCredentials(f.Run.Input))
	if len(input) == 0 {
		input = json.RawMessage("null")
	}
	in := flow.RecoveryInput{
		SchemaVersion: flow.SchemaVersion,
		Step: flow.RecoveryStep{Type: f.Step.Type, Title: m.Text(f.Step.Title), Intent: m.Text(f.Step.Intent),
			Index: f.Step.Index, Config: m.JSON(config)},
		Error:         cut(m.Text(f.Failed.Error), maxError),
		PriorOutputs:  make(map[string]string, len(f.Prior)),
		WorkflowInput: input,
		HumanHint:     m.Text(f.Instance.Progress.Hint),
	}
	for _, prior := range f.Prior {
		in.PriorOutputs[strconv.Itoa(prior.Index)] = summary(prior.Output, m)
	}
	if f.Step.Type == "http_request" && len(f.Config) > 0 {
		in.ResolvedRequest = resolved(f.Config, m)
	}
	return in
}

// summary is the beginning of an output. It is masked before it is cut: half
// a secret is one too.
func summary(output json.RawMessage, m *secret.Masker) string {
	if len(output) == 0 {
		return "null"
	}
	const enough = 64 << 10 // longer than any secret that begins within the summary
	return cut(m.Text(strings.ToValidUTF8(string(output[:min(len(output), enough)]), "")), maxPrior)
}

// resolved is the request that the config stands for.
func resolved(config json.RawMessage, m *secret.Masker) *flow.ResolvedRequest {
	var c struct {
		URL   string          `json:"url"`
		Query map[string]any  `json:"query"`
		Body  json.RawMessage `json:"body"`
	}
	if json.Unmarshal(config, &c) != nil {
		return nil
	}
	if len(c.Body) == 0 {
		c.Body = json.RawMessage("null")
	}
	return &flow.ResolvedRequest{URL: m.Text(withQuery(c.URL, c.Query)), Body: m.JSON(c.Body)}
}

// withQuery adds query parameters as the step does: one that the URL has too
// is replaced.
func withQuery(text string, query map[string]any) string {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || len(query) == 0 {
		return text
	}
	var parts []string
	for _, pair := range strings.Split(u.RawQuery, "&") {
		name, _, _ := strings.Cut(pair, "=")
		plain, err := url.QueryUnescape(name)
		if _, replaced := query[plain]; pair != "" && (err != nil || !replaced) {
			parts = append(parts, pair)
		}
	}
	more := url.Values{}
	for name, v := range query {
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, value := range list {
			if text, isText := value.(string); isText {
				more.Add(name, text)
			} else if value != nil {
				more.Add(name, string(encoded(value)))
			}
		}
	}
	if add := more.Encode(); add != "" {
		parts = append(parts, add)
	}
	u.RawQuery = strings.Join(parts, "&")
	return u.String()
}

// response is what the step got, masked and bounded.
func response(r *flow.Response, m *secret.Masker) *flow.Response {
	if r == nil {
		return nil
	}
	out := flow.Response{Status: r.Status, Body: m.Text(r.Body)}
	if len(out.Body) > maxResponse {
		out.Body = strings.ToValidUTF8(out.Body[:maxResponse], "")
	}
	if len(r.Header) > 0 {
		out.Header = make(map[string]string, len(r.Header))
		for name, value := range r.Header {
			out.Header[name] = m.Text(value)
		}
	}
	return &out
}
