package flow

import (
	"encoding/json"
	"time"
)

// Workflow is a named definition of a workspace.
type Workflow struct {
	Workspace string
	Name      string
	VersionID string // what a new run uses
	Number    int    // the newest version's number
	UpdatedAt time.Time
}

// WorkflowVersion is an immutable definition. Number is 0 for one that was
// never published and is found by its content, as `run FILE` stores it.
type WorkflowVersion struct {
	ID         string
	Workspace  string
	Workflow   string
	Number     int
	Digest     string          // SHA-256 of Source, hex
	Source     string          // as written: YAML or JSON
	Definition json.RawMessage // checked: a [Definition]
	Author     string
	CreatedAt  time.Time
}

// Setting is a stored setting of a workspace.
type Setting struct {
	Workspace string
	Key       string
	Value     string          // as given; "" if the key is write-only
	Sealed    []byte          // the value of a write-only key
	Meta      json.RawMessage // what was learned when it was saved: the agent card behind a URL
	UpdatedBy string
	UpdatedAt time.Time
}

// Secret is a sealed value of a workspace.
type Secret struct {
	Workspace string
	Name      string
	Sealed    []byte
	UpdatedBy string
	UpdatedAt time.Time
}

// Key is an API key as stored: never the key itself.
type Key struct {
	ID        string
	Workspace string
	Person    string
	Name      string
	Role      Role
	Hash      []byte // SHA-256 of the key
	Prefix    string // the first characters, to recognise it by
	CreatedAt time.Time
	RevokedAt time.Time // zero while it holds
}

// Person is a human who authors runs, settings and answers.
type Person struct {
	ID        string
	Name      string
	PublicKey []byte // Ed25519
	CreatedAt time.Time
}

// Member is a person who belongs to a workspace. A role that is agent makes it
// an agent, whose keys have that role too.
type Member struct {
	Workspace Workspace
	Person    Person
	Role      Role
}

// Workspace is the tenant.
type Workspace struct {
	ID        string
	Name      string
	CreatedAt time.Time
}

// MCPServer is an MCP server registered in a workspace.
type MCPServer struct {
	Workspace string
	ID        string // chosen by the user
	URL       string
	Transport string   // "" (streamable HTTP, then SSE), "streamable-http", "sse", "stdio"
	Command   []string // for stdio
	Sealed    []byte   // its headers, sealed
	UpdatedBy string
	UpdatedAt time.Time
}
