package server

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/mcpclient"
	"github.com/longstop-dev/longstop/internal/responder"
)

// The services declare what they need and never import each other; these
// joins give it to them.

// cards reads agent cards for whoever saves an agent's URL.
type cards struct{ agents *responder.A2A }

// Read fetches and checks the card of the agent at rawURL.
func (c cards) Read(ctx context.Context, rawURL string) (access.CardInfo, error) {
	info, err := c.agents.Read(ctx, rawURL)
	return access.CardInfo(info), err
}

// servers calls the MCP servers of a workspace by their ids.
type servers struct {
	registry *access.Service
	pool     *mcpclient.Pool
}

func (s *servers) find(ctx context.Context, workspace, id string) (mcpclient.Server, error) {
	row, headers, err := s.registry.Server(ctx, workspace, id)
	if err != nil {
		return mcpclient.Server{}, err
	}
	return mcpclient.Server{ID: row.ID, URL: row.URL, Transport: row.Transport, Headers: headers, Command: row.Command}, nil
}

// Tools lists the names of a server's tools.
func (s *servers) Tools(ctx context.Context, workspace, server string) ([]string, error) {
	srv, err := s.find(ctx, workspace, server)
	if err != nil {
		return nil, err
	}
	return s.names(ctx, srv)
}

func (s *servers) names(ctx context.Context, srv mcpclient.Server) ([]string, error) {
	tools, err := s.pool.Tools(ctx, srv)
	if err != nil {
		return nil, mcpError(err)
	}
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return names, nil
}

// Call calls a tool of a server. A tool that answers with an error is an
// error of step kind tool.
func (s *servers) Call(ctx context.Context, workspace, server, tool string, params json.RawMessage) (json.RawMessage, error) {
	srv, err := s.find(ctx, workspace, server)
	if err != nil {
		return nil, err
	}
	return s.call(ctx, srv, tool, params)
}

func (s *servers) call(ctx context.Context, srv mcpclient.Server, tool string, params json.RawMessage) (json.RawMessage, error) {
	r, err := s.pool.Call(ctx, srv, tool, params)
	if err != nil {
		return nil, mcpError(err)
	}
	if r.IsError {
		text := strings.Join(r.Text, "\n")
		if text == "" {
			text = "the tool " + tool + " failed without saying why"
		}
		return nil, &flow.StepError{Kind: flow.KindTool, Message: text}
	}
	return r.Value(), nil
}

// mcpError gives the client's errors the codes that services know.
func mcpError(err error) error {
	code := flow.CodeInvalid
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, mcpclient.ErrTimeout):
		return errors.Join(context.DeadlineExceeded, err)
	case errors.Is(err, mcpclient.ErrUnauthorized):
		code = flow.CodeUnauthenticated
	case errors.Is(err, mcpclient.ErrUnreachable), errors.Is(err, mcpclient.ErrClosed):
		code = flow.CodeUnavailable
	case errors.Is(err, mcpclient.ErrTooLarge):
		code = flow.CodeTooLarge
	case errors.Is(err, mcpclient.ErrNoTool):
		code = flow.CodeNotFound
	case errors.Is(err, mcpclient.ErrStdio):
		code = flow.CodeForbidden
	}
	return flow.Errorf(code, "%s", err.Error()).Because(err)
}
