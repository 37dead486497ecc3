package client

import (
	"encoding/json"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// These types have the JSON of the services' own; a test compares them.

// List is a page of a list; Next is the cursor of the following page.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next"`
}

// Page narrows a list: at most Limit items (0 for the server's default) after
// the cursor that the page before gave as Next.
type Page struct {
	Limit int
	After string
}

// Workflow is a workflow or one of its versions.
type Workflow struct {
	Name       string          `json:"name"`
	VersionID  string          `json:"versionId"`
	Number     int             `json:"number"`
	Published  bool            `json:"published"`
	Digest     string          `json:"digest,omitempty"`
	Author     string          `json:"author,omitempty"`
	UpdatedAt  time.Time       `json:"updatedAt"`
	Source     string          `json:"source,omitempty"`
	Definition json.RawMessage `json:"definition,omitempty"`
	Warnings   []flow.Problem  `json:"warnings,omitempty"`
}

// Validation says that a definition is valid and what it holds.
type Validation struct {
	Valid bool   `json:"valid"`
	Name  string `json:"name"`
	Steps int    `json:"steps"`
}

// Run is a run.
type Run struct {
	ID         string          `json:"id"`
	Workflow   string          `json:"workflow"`
	VersionID  string          `json:"versionId"`
	Status     flow.RunStatus  `json:"status"`
	Input      json.RawMessage `json:"input,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"`
	Error      string          `json:"error,omitempty"`
	Author     string          `json:"author"`
	CreatedAt  time.Time       `json:"createdAt"`
	FinishedAt *time.Time      `json:"finishedAt,omitempty"`
	WakeAt     *time.Time      `json:"wakeAt,omitempty"`
	Seq        int64           `json:"seq"`
	RerunOf    string          `json:"rerunOf,omitempty"`
	RerunFrom  string          `json:"rerunFrom,omitempty"`
	Reruns     []string        `json:"reruns,omitempty"`
	Steps      []Step          `json:"steps,omitempty"`
	Gates      []flow.Gate     `json:"gates,omitempty"`
}

// Step is a step instance of a run.
type Step struct {
	Index          int             `json:"index"`
	Iteration      string          `json:"iteration,omitempty"`
	ID             string          `json:"id"`
	Type           string          `json:"type"`
	Title          string          `json:"title,omitempty"`
	Status         flow.StepStatus `json:"status"`
	Output         json.RawMessage `json:"output,omitempty"`
	Error          string          `json:"error,omitempty"`
	RecoverySource flow.Source     `json:"recovery_source"`
	Message        string          `json:"message,omitempty"`
	CarriedFrom    string          `json:"carriedFrom,omitempty"`
	Attempts       int             `json:"attempts"`
	StartedAt      *time.Time      `json:"startedAt,omitempty"`
	FinishedAt     *time.Time      `json:"finishedAt,omitempty"`
}

// Agent names an agent to ask: the URL of an A2A agent or mcp:ID of a
// registered MCP server in Agent, or a Command.
type Agent struct {
	Agent   string   `json:"agent,omitempty"`
	Token   string   `json:"token,omitempty"`
	Command []string `json:"command,omitempty"`
}

// Trial is what came of asking an agent; nothing of it is applied.
type Trial struct {
	Agent      string          `json:"agent"`
	Found      flow.Sighting   `json:"found"`
	Sent       bool            `json:"sent"`
	DurationMS float64         `json:"durationMs"`
	Action     json.RawMessage `json:"action,omitempty"`
	Valid      bool            `json:"valid"`
	Rejection  string          `json:"rejection,omitempty"`
	Notes      []string        `json:"notes,omitempty"`
}

// Replay is a case asked again: what was answered then, and now.
type Replay struct {
	CaseID  string       `json:"caseId"`
	Then    []flow.Asked `json:"then"`
	Outcome string       `json:"outcome,omitempty"`
	Now     Trial        `json:"now"`
}

// Observed is what observed agents would have done, summed up.
type Observed struct {
	Cases  int             `json:"cases"`
	Since  *time.Time      `json:"since,omitempty"`
	Agents []ObservedAgent `json:"agents"`
}

// ObservedAgent is one agent's record.
type ObservedAgent struct {
	Responder    string  `json:"responder"`
	Target       string  `json:"target,omitempty"`
	Cases        int     `json:"cases"`
	WouldMend    int     `json:"wouldMend"`
	WouldRetry   int     `json:"wouldRetry"`
	WouldNotMend int     `json:"wouldNotMend"`
	WouldCall    int     `json:"wouldCall"`
	Refused      int     `json:"refused"`
	Failed       int     `json:"failed"`
	Pending      int     `json:"pending"`
	Lost         int     `json:"lost"`
	Skipped      int     `json:"skipped"`
	Same         int     `json:"same"`
	Different    int     `json:"different"`
	Spared       int     `json:"spared"`
	MedianMS     float64 `json:"medianMs"`
}

// Contract is what a recovery agent has to know.
type Contract struct {
	Tool          string          `json:"tool"`
	Description   string          `json:"description"`
	SchemaVersion int             `json:"schema_version"`
	Input         json.RawMessage `json:"input"`
	Output        json.RawMessage `json:"output"`
}

// Setting is a setting of the workspace. Value is nil where it is write-only;
// Set tells then whether there is one.
type Setting struct {
	Key            string     `json:"key"`
	Value          *string    `json:"value,omitempty"`
	Set            *bool      `json:"set,omitempty"`
	Source         string     `json:"source"`
	About          string     `json:"about,omitempty"`
	Expects        string     `json:"expects,omitempty"`
	UpdatedAt      *time.Time `json:"updatedAt,omitempty"`
	Name           string     `json:"name,omitempty"`
	Description    string     `json:"description,omitempty"`
	URLOrigin      string     `json:"urlOrigin,omitempty"`
	EndpointOrigin string     `json:"endpointOrigin,omitempty"`
	Warnings       []string   `json:"warnings,omitempty"`
}

// Server is a registered MCP server; of its headers the names only.
type Server struct {
	ID        string    `json:"id"`
	URL       string    `json:"url,omitempty"`
	Transport string    `json:"transport"`
	Headers   []string  `json:"headers"`
	Command   []string  `json:"command,omitempty"`
	UpdatedAt time.Time `json:"updatedAt"`
	Warnings  []string  `json:"warnings,omitempty"`
}

// ServerSpec is what is said about an MCP server. Headers nil keeps those
// that are stored while the origin stays the same.
type ServerSpec struct {
	URL       string            `json:"url,omitempty"`
	Transport string            `json:"transport,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	Command   []string          `json:"command,omitempty"`
}

// Secret is a secret: never its value.
type Secret struct {
	Name      string    `json:"name"`
	UpdatedAt time.Time `json:"updatedAt"`
	Problem   string    `json:"problem,omitempty"` // why its value cannot be used
}

// Key is an API key. The key itself is there once, when it was made.
type Key struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Role      flow.Role  `json:"role"`
	Prefix    string     `json:"prefix"`
	Person    string     `json:"person"`
	CreatedAt time.Time  `json:"createdAt"`
	RevokedAt *time.Time `json:"revokedAt,omitempty"`
	Key       string     `json:"key,omitempty"`
}

// Me is who the client's key belongs to.
type Me struct {
	Workspace string    `json:"workspace"`
	Person    string    `json:"person"`
	Name      string    `json:"name"`
	Role      flow.Role `json:"role"`
	KeyID     string    `json:"keyId"`
}
