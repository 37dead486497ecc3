package responder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/mcpclient"
)

const (
	toolsAge   = time.Minute // how long what a server lists is believed
	maxServers = 1000        // whose lists are remembered
)

// Directory knows the MCP servers that are registered in a workspace, with the
// headers that each call carries. It answers not_found.
type Directory interface {
	Server(ctx context.Context, workspace, id string) (flow.MCPServer, map[string]string, error)
}

// Pool talks to MCP servers.
type Pool interface {
	Tools(ctx context.Context, srv mcpclient.Server) ([]mcpclient.Tool, error)
	Call(ctx context.Context, srv mcpclient.Server, tool string, args json.RawMessage) (mcpclient.Result, error)
}

// Tools are the tools of a workspace's MCP servers.
type Tools struct {
	directory Directory
	pool      Pool
	clock     flow.Clock

	mu    sync.Mutex
	lists map[listKey]listed
}

type listKey struct{ workspace, server string }

type listed struct {
	names []string
	at    time.Time
}

// NewTools makes them out of who knows the servers and who talks to them.
func NewTools(directory Directory, pool Pool, clock flow.Clock) *Tools {
	return &Tools{directory: directory, pool: pool, clock: clock, lists: map[listKey]listed{}}
}

func (t *Tools) server(ctx context.Context, workspace, id string) (mcpclient.Server, error) {
	m, headers, err := t.directory.Server(ctx, workspace, id)
	if err != nil {
		return mcpclient.Server{}, err
	}
	return mcpclient.Server{ID: m.ID, URL: m.URL, Transport: m.Transport, Headers: headers, Command: m.Command}, nil
}

// Names lists the tools of a server, as seen within the last minute.
func (t *Tools) Names(ctx context.Context, workspace, server string) ([]string, error) {
	srv, err := t.server(ctx, workspace, server) // each time: it may have been removed
	if err != nil {
		return nil, err
	}
	key := listKey{workspace, server}
	t.mu.Lock()
	l, ok := t.lists[key]
	t.mu.Unlock()
	if ok && t.clock.Now().Sub(l.at) <= toolsAge {
		return l.names, nil
	}
	tools, err := t.pool.Tools(ctx, srv)
	if err != nil {
		return nil, err
	}
	list := names(tools)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lists) >= maxServers {
		clear(t.lists)
	}
	t.lists[key] = listed{names: list, at: t.clock.Now()}
	return list, nil
}

func names(tools []mcpclient.Tool) []string {
	out := make([]string, len(tools))
	for i, tool := range tools {
		out[i] = tool.Name
	}
	return out
}

// List asks a server for its tools, as it describes them.
func (t *Tools) List(ctx context.Context, workspace, server string) ([]mcpclient.Tool, error) {
	srv, err := t.server(ctx, workspace, server)
	if err != nil {
		return nil, err
	}
	return t.pool.Tools(ctx, srv)
}

// Forget has a server's tools listed anew.
func (t *Tools) Forget(workspace, server string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.lists, listKey{workspace, server})
}

// Has says whether a server is registered in the workspace and lists the tool.
// The error is what the step log shows.
func (t *Tools) Has(ctx context.Context, workspace, server, tool string) error {
	list, err := t.Names(ctx, workspace, server)
	switch {
	case flow.CodeOf(err) == flow.CodeNotFound:
		return fmt.Errorf("MCP server %q is not registered in this workspace", short(server, 100))
	case err != nil:
		return fmt.Errorf("MCP server %q cannot be asked for its tools: %s", short(server, 100), short(err.Error(), 200))
	case !slices.Contains(list, tool):
		t.Forget(workspace, server) // it may be added the moment after
		return fmt.Errorf("MCP server %q has no tool %q (it lists %s)", short(server, 100), short(tool, 100), enumerated(list))
	}
	return nil
}

func enumerated(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	var some []string
	for _, name := range list[:min(len(list), 10)] {
		some = append(some, short(name, 60))
	}
	if len(list) > 10 {
		return fmt.Sprintf("%s and %d more", strings.Join(some, ", "), len(list)-10)
	}
	return strings.Join(some, ", ")
}

// Call calls a tool and gives its answer: structured content if there is any,
// else JSON in a text, else the text as a JSON string. A tool that answers
// with an error is a [*flow.StepError]; a server or tool that does not exist
// is a [*flow.Error]; any other error means that the server could not be
// asked.
func (t *Tools) Call(ctx context.Context, workspace, server, tool string, params json.RawMessage) (json.RawMessage, error) {
	srv, err := t.server(ctx, workspace, server)
	if err != nil {
		return nil, err
	}
	r, err := t.pool.Call(ctx, srv, tool, params)
	switch {
	case errors.Is(err, mcpclient.ErrNoTool):
		t.Forget(workspace, server)
		return nil, flow.Errorf(flow.CodeNotFound, "MCP server %q has no tool %q", short(server, 100), short(tool, 100)).Because(err)
	case errors.Is(err, mcpclient.ErrTooLarge), errors.Is(err, mcpclient.ErrTooDeep):
		return nil, &flow.StepError{Kind: flow.KindTooLarge, Message: err.Error(), Err: err}
	case errors.Is(err, mcpclient.ErrUnauthorized), errors.Is(err, mcpclient.ErrStdio):
		return nil, &flow.StepError{Kind: flow.KindRefused, Message: short(err.Error(), maxMessage), Err: err}
	case err != nil:
		t.Forget(workspace, server)
		return nil, err
	case r.IsError:
		return nil, &flow.StepError{Kind: flow.KindTool, Message: toolError(tool, r)}
	}
	return r.Value(), nil
}

// toolError is what a tool says that failed.
func toolError(tool string, r mcpclient.Result) string {
	said := strings.Join(r.Text, "\n")
	if said == "" {
		said = string(r.Structured)
	}
	if said == "" {
		return fmt.Sprintf("the tool %s failed and does not say why", short(tool, 100))
	}
	return fmt.Sprintf("the tool %s failed: %s", short(tool, 100), short(said, 1000))
}
