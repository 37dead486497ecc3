package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Once is the key under which a creation may be sent again.
type Once struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" doc:"Sent again with the same body within 24 hours, the same answer is given and nothing more is made."`
}

// once makes a creation one that may be sent again; nil without a key. What is
// asked is compared as the JSON of asked.
func (e *Engine) once(by flow.Caller, in Once, asked any) (*flow.Once, error) {
	key := in.IdempotencyKey
	if key == "" {
		return nil, nil
	}
	odd := func(r rune) bool { return r < ' ' || r > '~' }
	if len(key) > 255 || strings.IndexFunc(key, odd) >= 0 {
		return nil, flow.Errorf(flow.CodeInvalid, "the key cannot be used").At("Idempotency-Key").Right("send 1 to 255 printable ASCII characters, such as a UUID")
	}
	raw, err := json.Marshal(asked)
	if err != nil {
		return nil, flow.Errorf(flow.CodeInvalid, "the request is not readable").Because(err)
	}
	sum := sha256.Sum256(raw)
	return &flow.Once{Workspace: by.Workspace, Key: key, Digest: hex.EncodeToString(sum[:]), At: e.Clock.Now()}, nil
}

// made reads what a creation's key has made before, "" if nothing. It answers
// invalid if the key was sent with another request.
func (e *Engine) made(ctx context.Context, o *flow.Once) (string, error) {
	if o == nil {
		return "", nil
	}
	was, err := e.Records.Once(ctx, o.Workspace, o.Key, o.At.Add(-flow.OnceFor))
	switch {
	case flow.CodeOf(err) == flow.CodeNotFound:
		return "", nil
	case err != nil:
		return "", err
	case was.Digest != o.Digest:
		return "", flow.Errorf(flow.CodeInvalid, "this Idempotency-Key came with another request before").At("Idempotency-Key").
			Right("send that request again as it was, or a new key")
	}
	return was.Made, nil
}

// firstView is what the answer to a run's creation holds and its row no longer
// does.
type firstView struct {
	Run    string         `json:"run"`
	Status flow.RunStatus `json:"status"`
	Seq    int64          `json:"seq"`
}

// begunBefore gives the answer that a run's creation got the first time; nil
// if this is the first time.
func (e *Engine) begunBefore(ctx context.Context, by flow.Caller, o *flow.Once) (*RunView, error) {
	made, err := e.made(ctx, o)
	if err != nil || made == "" {
		return nil, err
	}
	var first firstView
	if err := json.Unmarshal([]byte(made), &first); err != nil {
		return nil, flow.Errorf(flow.CodeInternal, "what a key has made is not readable").Because(err)
	}
	run, err := e.Runs.Run(ctx, by.Workspace, first.Run)
	if err != nil {
		return nil, err
	}
	v := e.view(run)
	v.Status, v.Seq = first.Status, first.Seq
	v.Output, v.Error, v.FinishedAt, v.WakeAt = nil, "", nil, nil
	return v, nil
}

// remember has the change that makes a run remember its key, once it is known
// where the run stands after it.
func (c *change) remember() error {
	if c.once == nil {
		return nil
	}
	made, err := json.Marshal(firstView{Run: c.c.Run.ID, Status: c.c.Run.Status, Seq: c.c.Run.Seq})
	if err != nil {
		return err
	}
	c.c.Once = c.once.Making(string(made))
	return nil
}

// given is JSON that was sent, nil if none was.
func given(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	return raw
}
