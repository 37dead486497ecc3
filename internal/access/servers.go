package access

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// ServerView is an MCP server as it is shown: of its headers the names only.
type ServerView struct {
	ID        string    `json:"id"`
	URL       string    `json:"url,omitempty"`
	Transport string    `json:"transport" doc:"Empty: streamable HTTP, then the older SSE."`
	Headers   []string  `json:"headers" doc:"Names; the values are write-only."`
	Command   []string  `json:"command,omitempty"`
	UpdatedAt time.Time `json:"updatedAt"`
	Warnings  []string  `json:"warnings,omitempty"`
}

// ServerSpec is what a user says about an MCP server.
type ServerSpec struct {
	URL       string            `json:"url,omitempty"`
	Transport string            `json:"transport,omitempty" doc:"streamable-http, sse or stdio; empty finds out."`
	Headers   map[string]string `json:"headers,omitempty" doc:"Sent with every call. Absent keeps those that are stored while the origin stays the same."`
	Command   []string          `json:"command,omitempty" doc:"Program and arguments, for stdio."`
}

// ServerIn names an MCP server.
type ServerIn struct {
	ID string `path:"id"`
}

// PutServerIn registers or changes an MCP server.
type PutServerIn struct {
	ID   string `path:"id"`
	Body ServerSpec
}

// CreateServerIn registers an MCP server.
type CreateServerIn struct {
	Body struct {
		ID string `json:"id" doc:"Chosen by you."`
		ServerSpec
	}
}

// ServersList lists the workspace's MCP servers, by id.
func (s *Service) ServersList(ctx context.Context, by flow.Caller, _ *None) (*List[ServerView], error) {
	sp, err := s.space(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	out := &List[ServerView]{Items: []ServerView{}}
	for _, id := range slices.Sorted(maps.Keys(sp.servers)) {
		out.Items = append(out.Items, sp.servers[id].view())
	}
	return out, nil
}

// ServersGet gives one MCP server; not_found if there is none.
func (s *Service) ServersGet(ctx context.Context, by flow.Caller, in *ServerIn) (*ServerView, error) {
	sp, err := s.space(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	m, ok := sp.servers[in.ID]
	if !ok {
		return nil, noServer(in.ID)
	}
	v := m.view()
	return &v, nil
}

func noServer(id string) error {
	return flow.Errorf(flow.CodeNotFound, "there is no MCP server %q in this workspace", clip(id)).
		Right("register it with PUT /v1/mcp-servers/{id}")
}

func (m server) view() ServerView {
	v := ServerView{ID: m.ID, URL: m.URL, Transport: m.Transport, Command: m.Command, UpdatedAt: m.UpdatedAt, Headers: []string{}}
	if m.err != nil {
		v.Warnings = []string{"its headers cannot be read, and it is not called: register it again"}
	}
	return v.with(m.headers)
}

func (v ServerView) with(headers map[string]string) ServerView {
	v.Headers = append(v.Headers, slices.Sorted(maps.Keys(headers))...)
	return v
}

// Server gives a registered MCP server and its headers in the clear, for
// calling it. It answers not_found, and forbidden for a command where this
// process runs none.
func (s *Service) Server(ctx context.Context, workspace, id string) (flow.MCPServer, map[string]string, error) {
	sp, err := s.space(ctx, workspace)
	if err != nil {
		return flow.MCPServer{}, nil, err
	}
	m, ok := sp.servers[id]
	if !ok {
		return flow.MCPServer{}, nil, noServer(id)
	}
	if m.err != nil {
		return flow.MCPServer{}, nil, m.err
	}
	if m.Transport == transportStdio && !s.c.AllowStdio {
		return flow.MCPServer{}, nil, noStdio()
	}
	return m.MCPServer, maps.Clone(m.headers), nil
}

// ServersCreate registers an MCP server; conflict if its id is taken.
func (s *Service) ServersCreate(ctx context.Context, by flow.Caller, in *CreateServerIn) (*ServerView, error) {
	return s.putServer(ctx, by, in.Body.ID, in.Body.ServerSpec, true)
}

// ServersPut registers an MCP server or replaces what is known of it.
func (s *Service) ServersPut(ctx context.Context, by flow.Caller, in *PutServerIn) (*ServerView, error) {
	return s.putServer(ctx, by, in.ID, in.Body, false)
}

func (s *Service) putServer(ctx context.Context, by flow.Caller, id string, spec ServerSpec, fresh bool) (*ServerView, error) {
	row := flow.MCPServer{Workspace: by.Workspace, ID: id, URL: strings.TrimSpace(spec.URL), Transport: spec.Transport, Command: spec.Command,
		UpdatedBy: by.Person, UpdatedAt: s.c.Clock.Now()}
	if err := s.checkServer(ctx, &row, spec.Headers); err != nil {
		return nil, err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	rows, err := s.c.Servers.MCPServers(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(rows, func(m flow.MCPServer) bool { return m.ID == id })
	if at >= 0 && fresh {
		return nil, flow.Errorf(flow.CodeConflict, "there is an MCP server %q already", id).At("id").
			Right("change it with PUT /v1/mcp-servers/" + id)
	}
	headers, warnings := spec.Headers, []string(nil)
	if headers == nil && at >= 0 {
		if headers, err = s.openHeaders(rows[at]); err != nil {
			return nil, err
		}
		if len(headers) > 0 && !sameOrigin(rows[at].URL, row.URL) {
			headers, warnings = nil, []string{"the headers that were stored are gone, because the server is at another origin now: set them again if it needs them"}
		}
	}
	if len(headers) > 0 {
		plain, err := json.Marshal(headers)
		if err != nil {
			return nil, flow.Errorf(flow.CodeInternal, "the headers cannot be stored").Because(err)
		}
		if row.Sealed, err = s.seal(by.Workspace, "mcp-server/"+id, plain); err != nil {
			return nil, err
		}
	}
	defer s.forget(by.Workspace)
	op := "mcp-servers.put"
	if fresh {
		op = "mcp-servers.create"
	}
	did := by.Did(op, "mcp-server/"+id, row.UpdatedAt, map[string]any{"url": bareURL(row.URL), "transport": row.Transport,
		"headers": slices.Sorted(maps.Keys(headers))})
	if err := s.c.Servers.PutMCPServer(ctx, row, did); err != nil {
		return nil, err
	}
	v := server{row, headers, nil}.view()
	v.Warnings = warnings
	return &v, nil
}

func sameOrigin(a, b string) bool {
	u, err := url.Parse(a)
	w, err2 := url.Parse(b)
	return err == nil && err2 == nil && a != "" && u.Scheme == w.Scheme && strings.EqualFold(u.Host, w.Host)
}

// ServersDelete removes an MCP server. It answers not_found, and conflict
// while recovery asks it.
func (s *Service) ServersDelete(ctx context.Context, by flow.Caller, in *ServerIn) (*None, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	stored, err := s.stored(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	if row, ok := stored[keyMCPServer]; ok && row.Value == in.ID {
		return nil, flow.Errorf(flow.CodeConflict, "the setting %s names %q", keyMCPServer, in.ID).
			Right("remove or change the setting first")
	}
	defer s.forget(by.Workspace)
	if err := s.c.Servers.DeleteMCPServer(ctx, by.Workspace, in.ID, by.Did("mcp-servers.delete", "mcp-server/"+in.ID, s.c.Clock.Now(), nil)); err != nil {
		return nil, err
	}
	return &None{}, nil
}
