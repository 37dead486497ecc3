package flow

import (
	"encoding/json"
	"time"
)

// Bucket is where manifests are kept.
type Bucket struct {
	ID         string
	Workspace  string
	URL        string // file://, s3:// or mem://
	PublicBase string // --cdn: where it is read from by others; "" if nowhere
	Default    bool   // of its workspace
	CreatedAt  time.Time
}

// AgentService is a key pair that registers agents and signs their execution
// tokens.
type AgentService struct {
	PublicKey string // Ed25519, 64 hexadecimal digits: its name
	Workspace string
	Name      string
	Sealed    []byte // the private key's seed
	Bucket    string // where its manifests go
	Default   bool   // of its workspace
	Replaces  string // the public key of the service whose agents it took over; "" for none
	CreatedAt time.Time
}

// KindExternal is the kind of an agent that is hosted elsewhere.
const KindExternal = "external"

// Manifest is what an agent's registration says, as it is written to the
// bucket. Endpoints, skills and security are not in it: the card has them, and
// is read again at every call.
type Manifest struct {
	Kind        string   `json:"kind"`
	Card        string   `json:"card"`              // the URL of the agent card, or bridge:<name>
	AgentID     string   `json:"agentId,omitempty"` // <pubkey>:<alias>; "" if it was pushed without --as-pubkey
	Alias       string   `json:"alias"`
	Version     string   `json:"version"`     // semver
	Scopes      []string `json:"scopes"`      // that the agent asks for; the owner of a vault grants them
	IdleTimeout int64    `json:"idleTimeout"` // seconds
	Name        string   `json:"name,omitempty"`
	Description string   `json:"description,omitempty"`
}

// DefaultIdleTimeout is how long a conversation survives without events.
const DefaultIdleTimeout = 30 * time.Minute

// Agent is an entry of the registry: a version of an agent, indexed from its
// manifest.
type Agent struct {
	ID        string // <pubkey>:<alias>
	Workspace string
	Service   string // the public key
	Manifest  Manifest
	PushedBy  string
	PushedAt  time.Time
}

// Job is one conversation of an agent in a vault: one A2A contextId.
type Job struct {
	ID         string
	Workspace  string
	Connection string
	Vault      string
	Scope      string
	Key        string // metadata.conversation; "" for the one without a name
	ContextID  string // the agent's; "" until it has given one
	Idle       time.Duration
	LastAt     time.Time // the last event's, or the end of the last turn
	EndedAt    time.Time // zero while it goes on
}

// Over reports whether the Job has been silent for too long. A Job with a
// turn under way is not asked.
func (j *Job) Over(now time.Time) bool { return now.Sub(j.LastAt) >= j.Idle }

// TurnStatus says how far a turn is.
type TurnStatus string

// The statuses of a turn.
const (
	TurnQueued  TurnStatus = "queued"  // behind others of its Job, or not begun
	TurnSending TurnStatus = "sending" // its messageId is stored; whether the message arrived is not known
	TurnWaiting TurnStatus = "waiting" // the remote task is polled
	TurnDone    TurnStatus = "done"    // agent.answered is published
)

// The limits of a turn, by the external-agent specification.
const (
	TurnTimeout = 15 * time.Minute // of one try
	TurnTries   = 3
)

// Turn is one event asked of an agent: one A2A task.
type Turn struct {
	ID         string
	Workspace  string
	Job        string
	Connection string
	Vault      string
	Scope      string
	Agent      string // its id
	EventID    string // the event that asks
	EventSeq   int64
	Status     TurnStatus
	Version    int64 // grows by one with every write; a write of an older one is stale
	Progress   TurnProgress
	NextAt     time.Time // when it has something to be done; zero for at once
	CreatedAt  time.Time
	FinishedAt time.Time
}

// TurnProgress is what a turn must remember to be taken up again. It is kept
// as JSON and holds no secret.
type TurnProgress struct {
	Try       int             `json:"try,omitempty"`       // from 1
	MessageID string          `json:"messageId,omitempty"` // stable over retries of transport; another after a task that failed
	TaskID    string          `json:"taskId,omitempty"`    // the remote task's, once it is known
	Route     json.RawMessage `json:"route,omitempty"`     // over which the try was sent: it is polled over the same
	Deadline  time.Time       `json:"deadline,omitzero"`   // of this try
	Poll      time.Duration   `json:"poll,omitempty"`      // the last pause between polls
	Lost      int             `json:"lost,omitempty"`      // polls in a row that did not know the task
	Used      int64           `json:"used,omitempty"`      // tokens that the task under way has reported
	Spent     int64           `json:"spent,omitempty"`     // tokens that tries which failed have reported
	State     string          `json:"state,omitempty"`     // of the remote task, as it was last seen: TASK_STATE_WORKING
	Seen      string          `json:"seen,omitempty"`      // a digest of the last progress that was published
	SeenAt    time.Time       `json:"seenAt,omitzero"`
	Failed    string          `json:"failed,omitempty"` // why the last try failed
	Code      string          `json:"code,omitempty"`   // its code
}

// The codes of an answer that is none.
const (
	TurnAgentFailed       = "agent_failed"
	TurnAgentCanceled     = "agent_canceled"
	TurnAgentRejected     = "agent_rejected"
	TurnTimedOut          = "timeout"
	TurnUnreachable       = "unreachable"
	TurnInvalidResponse   = "invalid_response"
	TurnAuthUnavailable   = "auth_unavailable"
	TurnCeilingReached    = "ceiling_reached"
	TurnNotConnected      = "not_connected"
	TurnConnectionRevoked = "connection_revoked"
	TurnCardInvalid       = "card_invalid"
)

// Routing is what is known of a targeted event inside the transaction that
// appends it.
type Routing struct {
	Event      VaultEvent
	Connection *Connection // the agent's to the vault, revoked or not; nil for none
	Job        *Job        // of the connection, scope and conversation, that has not ended; nil for none
	Busy       bool        // the Job has a turn that is not done
	Agent      *Agent      // the newest version; nil if it is not registered
}

// Routed is what becomes of a targeted event, written with it: a turn in a Job,
// or an answer at once.
type Routed struct {
	Job    *Job // new, or with another LastAt
	Ended  *Job // the one that was silent for too long
	Turn   *Turn
	Answer *VaultEvent
}
