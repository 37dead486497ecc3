package agentkit

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"
)

// The defaults of an [Agent].
const (
	DefaultTimeout = 15 * time.Second // Longstop's own default
	DefaultMaxBody = 4 << 20          // bytes
)

// Agent is a recovery agent. Name, Description and Mend are required. It must
// not be changed once it serves.
type Agent struct {
	Name        string // as the workspace shows it
	Description string
	Version     string // "" is 1.0.0

	// Mend decides. It may be called by many at once, and should return when
	// ctx ends. An error says that this agent has no answer: the built-in has
	// its turn then, and the error's text stands in the case.
	Mend func(ctx context.Context, c *Case) (Action, error)

	Token   string        // callers must send it as a bearer token; "" lets everyone in
	Timeout time.Duration // for one case; 0 is DefaultTimeout
	MaxBody int64         // of a request, in bytes; 0 is DefaultMaxBody
	Log     *slog.Logger  // nil is slog's default
}

// Handler serves the agent over all that it can be asked by: its card at
// /.well-known/agent-card.json, A2A (JSON-RPC 1.0 and 0.3, and HTTP+JSON) at
// the root, and MCP at /mcp. publicURL is where callers find it, such as
// "https://agent.example.com".
func (a *Agent) Handler(publicURL string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", a.MCP())
	mux.Handle("/", a.A2A(publicURL))
	return mux
}

// answer decides about one case. It never panics, and its action is complete.
func (a *Agent) answer(ctx context.Context, raw []byte) (Action, error) {
	c := &Case{}
	if err := json.Unmarshal(raw, c); err != nil {
		return Action{}, fmt.Errorf("this is no case: %w", err)
	}
	if c.SchemaVersion > 1 {
		return Action{}, fmt.Errorf("schema_version %d is newer than this agent knows (1)", c.SchemaVersion)
	}
	return a.mend(ctx, c)
}

func (a *Agent) mend(ctx context.Context, c *Case) (act Action, err error) {
	timeout := a.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			a.log().Error("the agent panicked", "step", c.Step.Title, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			act, err = Action{}, fmt.Errorf("the agent failed while it looked at this case")
		}
		a.log().Info("case", "step", c.Step.Title, "index", c.Step.Index, "action", act.Type, "ms", time.Since(began).Milliseconds(), "error", err)
	}()
	if act, err = a.Mend(ctx, c); err != nil {
		return Action{}, err
	}
	if err := act.Check(); err != nil {
		return Action{}, fmt.Errorf("the agent's own answer is not complete: %w", err)
	}
	return act, nil
}

// allowed checks the caller's token, and answers 401 for a wrong one.
func (a *Agent) allowed(w http.ResponseWriter, r *http.Request) bool {
	if a.Token == "" {
		return true
	}
	given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if subtle.ConstantTimeCompare([]byte(given), []byte(a.Token)) == 1 {
		return true
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="agent"`)
	http.Error(w, "this agent needs its bearer token", http.StatusUnauthorized)
	return false
}

// defaultVersion is that of an agent that names none.
const defaultVersion = "1.0.0"

func (a *Agent) version() string { return cmp.Or(a.Version, defaultVersion) }

func (a *Agent) maxBody() int64 {
	if a.MaxBody <= 0 {
		return DefaultMaxBody
	}
	return a.MaxBody
}

func (a *Agent) log() *slog.Logger {
	if a.Log == nil {
		return slog.Default()
	}
	return a.Log
}
