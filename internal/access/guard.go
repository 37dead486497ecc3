package access

import (
	"github.com/longstop-dev/longstop/internal/flow"
)

// Guard stands before every operation of every face.
type Guard struct{}

// Check lets a caller through to an operation, or answers unauthenticated (no
// role at all) or forbidden, naming the role that is needed.
func (Guard) Check(by flow.Caller, op flow.Op) error {
	if by.Role == "" || by.Workspace == "" {
		return flow.Errorf(flow.CodeUnauthenticated, "this needs an API key").Right("send Authorization: Bearer <key>; on the server's machine, longstop keys create NAME makes one")
	}
	if op.Allows(by.Role) {
		return nil
	}
	if by.Role == flow.RoleAgent {
		return flow.Errorf(flow.CodeForbidden, "%s is not open to a key of the role agent", op.Name).
			Right("an agent's key reads and answers cases; use a key of the role " + string(op.Min))
	}
	return flow.Errorf(flow.CodeForbidden, "%s needs the role %s, and this key has %s", op.Name, op.Min, by.Role).
		Right("use a key of the role " + string(op.Min) + " or above")
}

// Ops describes the operations of this package.
func Ops() []flow.Op {
	all := []string{"rest", "cli"}
	op := func(name, summary string, min flow.Role, changes bool) flow.Op {
		return flow.Op{Name: name, Summary: summary, Min: min, Changes: changes, Faces: all}
	}
	me := op("me.get", "Who the key belongs to", flow.RoleViewer, false)
	me.Agents = true
	return []flow.Op{
		me,
		op("settings.list", "All settings and where their values come from", flow.RoleViewer, false),
		op("settings.get", "One setting", flow.RoleViewer, false),
		op("settings.put", "Set a setting; an empty value removes it", flow.RoleEditor, true),
		op("settings.delete", "Back to the default", flow.RoleEditor, true),
		op("mcp-servers.list", "The MCP servers of the workspace", flow.RoleViewer, false),
		op("mcp-servers.get", "One MCP server", flow.RoleViewer, false),
		op("mcp-servers.create", "Register an MCP server", flow.RoleEditor, true),
		op("mcp-servers.put", "Register or change an MCP server", flow.RoleEditor, true),
		op("mcp-servers.delete", "Remove an MCP server", flow.RoleEditor, true),
		op("secrets.list", "The names of the secrets", flow.RoleEditor, false),
		op("secrets.put", "Store a secret", flow.RoleOwner, true),
		op("secrets.delete", "Remove a secret", flow.RoleOwner, true),
		op("keys.list", "The API keys of the workspace", flow.RoleOwner, false),
		op("keys.create", "Make an API key, shown once", flow.RoleOwner, true),
		op("keys.revoke", "Revoke an API key", flow.RoleOwner, true),
		op("keys.rotate", "Make a key in place of another, which ends at once", flow.RoleOwner, true),
		op("people.list", "Who belongs to the workspace", flow.RoleOwner, false),
		op("people.get", "One who belongs to the workspace", flow.RoleOwner, false),
		op("people.add", "Add a person, or an agent, with a role", flow.RoleOwner, true),
		op("people.put", "Change the role of a person and of their keys", flow.RoleOwner, true),
		op("people.remove", "Remove a person; their keys to the workspace end at once", flow.RoleOwner, true),
		op("workspaces.list", "The workspaces that the key's person belongs to", flow.RoleOwner, false),
		op("workspaces.create", "Make a workspace, with an owner's key to it that is shown once", flow.RoleOwner, true),
		op("workspaces.put", "Rename the workspace", flow.RoleOwner, true),
		op("audit.list", "Who changed what, newest first", flow.RoleViewer, false),
		op("audit.head", "Where the audit record ends: the hash to keep elsewhere", flow.RoleViewer, false),
	}
}
