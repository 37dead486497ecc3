package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/egress"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/mcpclient"
)

func TestMCPCall(t *testing.T) {
	t.Parallel()
	var asked string
	table := NewTable(Deps{Tools: toolFunc(func(_ context.Context, workspace, server, tool string, params json.RawMessage) (json.RawMessage, error) {
		asked = workspace + " " + server + " " + tool + " " + string(params)
		return json.RawMessage(`{"found":1}`), nil
	})})
	for config, want := range map[string]string{
		`{"server": "crm", "tool": "find", "params": {"id": 7}}`: `w crm find {"id": 7}`,
		`{"server": "crm", "tool": "find", "params": null}`:      `w crm find {}`,
	} {
		out, err := table.Run(t.Context(), "mcp_call", callOf(config))
		if err != nil || string(out.Value) != `{"found":1}` || asked != want {
			t.Errorf("%s: got %s, %v and asked %q; want %q", config, out.Value, err, asked, want)
		}
	}
}

func TestMCPCallFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		kind flow.ErrorKind
		text string
	}{
		{&flow.StepError{Kind: flow.KindTool, Message: "no such customer"}, flow.KindTool, "no such customer"},
		{flow.Errorf(flow.CodeNotFound, "no MCP server is called crm"), flow.KindConfig, "crm/find: no MCP server is called crm"},
		{flow.Errorf(flow.CodeTooLarge, "too much"), flow.KindTooLarge, "crm/find: too much"},
		{flow.Errorf(flow.CodeUnavailable, "it is down").Because(errors.New("s3cr3t")), flow.KindTransient, "crm/find: it is down"},
		{fmt.Errorf("%w: %q", mcpclient.ErrNoTool, "find"), flow.KindConfig, `crm/find: the MCP server has no such tool: "find"`},
		{mcpclient.ErrTimeout, flow.KindTimeout, "crm/find: the MCP server did not answer in time"},
		{mcpclient.ErrUnauthorized, flow.KindRefused, "crm/find: the MCP server refused the credentials"},
		{mcpclient.ErrTooLarge, flow.KindTooLarge, "crm/find: the MCP server's answer is too large"},
		{mcpclient.ErrUnreachable, flow.KindTransient, "crm/find: the MCP server cannot be reached"},
		{&egress.Error{Reason: "the address is private"}, flow.KindEgress, "crm/find: the address is private"},
		{errors.New("connection reset\n" + strings.Repeat("x", 1000)), flow.KindTransient, "crm/find: connection reset " + strings.Repeat("x", 283) + "…"},
	} {
		table := NewTable(Deps{Tools: toolFunc(func(context.Context, string, string, string, json.RawMessage) (json.RawMessage, error) {
			return nil, c.err
		})})
		_, err := table.Run(t.Context(), "mcp_call", callOf(`{"server": "crm", "tool": "find"}`))
		if e := failedAs(t, err, c.kind); e.Message != c.text {
			t.Errorf("got %q, want %q", e.Message, c.text)
		}
	}
}
