package flow

// Role is what a key may do in its workspace.
type Role string

// The roles: each of viewer, operator, editor and owner may do what the one
// before it may; an agent reads and answers cases and nothing else.
const (
	RoleAgent    Role = "agent"
	RoleViewer   Role = "viewer"
	RoleOperator Role = "operator"
	RoleEditor   Role = "editor"
	RoleOwner    Role = "owner"
)

// Caller is who asks for an operation: every service method takes one, and
// nothing of another workspace exists for it.
type Caller struct {
	Workspace string
	Person    string
	KeyID     string
	Role      Role
}

// Op describes an operation once, for all the faces that offer it and for the
// guard round it.
type Op struct {
	Name    string   // "runs.get": resource and verb
	Summary string   // one line, for people
	Min     Role     // the least role among viewer, operator, editor, owner
	Agents  bool     // whether the role agent may call it too
	Changes bool     // whether it changes something
	Faces   []string // "rest", "mcp", "web", "cli"
}

// Allows reports whether role may call the operation.
func (o Op) Allows(role Role) bool {
	if role == RoleAgent {
		return o.Agents
	}
	return rank(role) >= rank(o.Min) && rank(role) > 0
}

// Valid reports whether there is such a role.
func (r Role) Valid() bool { return r == RoleAgent || rank(r) > 0 }

// Above reports whether the role may do something that the other may not. An
// agent's is above none.
func (r Role) Above(other Role) bool { return rank(r) > rank(other) }

func rank(r Role) int {
	switch r {
	case RoleViewer:
		return 1
	case RoleOperator:
		return 2
	case RoleEditor:
		return 3
	case RoleOwner:
		return 4
	}
	return 0
}
