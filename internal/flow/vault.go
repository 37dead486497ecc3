package flow

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Vault is an append-only log of events with named scopes. Its owner alone
// lets agents in.
type Vault struct {
	ID            string
	Workspace     string
	Name          string
	Owner         string // a person's id
	Scopes        []string
	RetentionDays int   // events older than this are removed; 0 keeps all
	Seq           int64 // of the newest event
	CreatedAt     time.Time
}

// DefaultScope is the scope that every vault has.
const DefaultScope = "default"

// AuthorKind says what made an event.
type AuthorKind string

// The kinds of author.
const (
	AuthorPerson   AuthorKind = "person"   // ID is a person's
	AuthorAgent    AuthorKind = "agent"    // ID is an agent's: <pubkey>:<alias>
	AuthorRun      AuthorKind = "run"      // ID is a run's; who started it is whom it is on behalf of
	AuthorSchedule AuthorKind = "schedule" // ID is a schedule's
	AuthorSystem   AuthorKind = "system"   // ours: an answer that no agent gave
)

// EventAuthor is what made an event.
type EventAuthor struct {
	Kind AuthorKind `json:"kind"`
	ID   string     `json:"id"`
}

// The event types that the product itself writes into vaults.
const (
	EventAgentAnswered       = "agent.answered"
	EventAgentProgress       = "agent.progress"
	EventAgentCeilingWarning = "agent.ceiling_warning"
)

// VaultEvent is an entry of a vault. It is never changed: no statement for
// that exists.
type VaultEvent struct {
	ID         string          `json:"id"`
	Workspace  string          `json:"-"`
	Vault      string          `json:"vaultId"`
	Seq        int64           `json:"seq"` // grows by one with each event of the vault; given at the append
	Scope      string          `json:"scope"`
	Type       string          `json:"type"`
	Target     string          `json:"target,omitempty"` // an agent's id; "" is for nobody in particular
	Payload    json.RawMessage `json:"payload"`          // an object
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Parents    []string        `json:"parents,omitempty"` // ids of events of the same vault
	Author     EventAuthor     `json:"author"`
	OnBehalfOf string          `json:"onBehalfOf,omitempty"` // the Ed25519 public key, in hex, of the person who is behind it
	At         time.Time       `json:"at"`
}

// EventMetadata are the members of an event's metadata that mean something
// here; it may have others.
type EventMetadata struct {
	Correlation  json.RawMessage `json:"correlation,omitempty"`  // echoed by the answer, unchanged
	Conversation string          `json:"conversation,omitempty"` // events with the same one belong to one Job
}

// UnmarshalJSON reads the members by their names as they are written: another
// case is another member.
func (m *EventMetadata) UnmarshalJSON(b []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	m.Correlation = all["correlation"]
	if name := all["conversation"]; name != nil {
		return json.Unmarshal(name, &m.Conversation)
	}
	return nil
}

// EventFilter narrows a vault's events; "" stands for all.
type EventFilter struct {
	Vault       string
	After       int64 // only those with a higher sequence number
	Scope       string
	Type        string
	Correlation string // the JSON text of metadata.correlation, or the text that it is
	Parent      string
	Limit       int
}

// Connection lets an agent into a vault: what its owner grants.
type Connection struct {
	ID        string
	Workspace string
	Vault     string
	Agent     string // its id
	Scopes    []string
	Ceiling   int64 // a2aTokens: no turn begins once Spent has passed it; 0 is none
	Spent     int64 // tokens that the agent reported
	Warned    bool  // the warning at 80% was given
	GrantedBy string
	CreatedAt time.Time
	RevokedAt time.Time // zero while it holds
}

// Grants reports whether the connection lets the agent into a scope.
func (c *Connection) Grants(scope string) bool {
	if !c.RevokedAt.IsZero() {
		return false
	}
	for _, s := range c.Scopes {
		if s == scope {
			return true
		}
	}
	return false
}

// VaultAppend is an event to be appended. The store gives it its sequence
// number.
type VaultAppend struct {
	Event        VaultEvent
	Conversation string // the Job's key
	Key          string // idempotency key; "" for none
	Digest       string // of what was sent, beside Key
	// Route decides about an event with a target. It may run more than once
	// and asks nobody. Nil leaves the event without a turn.
	Route func(Routing) Routed
}

// VaultAppended is what was written: the event, an answer if there was one at
// once, and the turn that it begins. Again says that the event was there
// already, by its idempotency key.
type VaultAppended struct {
	Events []VaultEvent
	Turn   *Turn
	Again  bool
}

// TurnWrite is one step of a turn, written together or not at all. Turn has
// Version already grown by one; a stored turn of another version answers
// stale.
type TurnWrite struct {
	Turn   Turn
	Job    *Job         // with a new context, or a new LastAt
	Events []VaultEvent // of its vault; they get the next sequence numbers
	Spent  int64        // tokens to add to the connection
	// Close makes further events of the connection as it is inside the
	// transaction, Spent added; warned says that the warning is among them. It
	// may run more than once and asks nobody. Nil makes none.
	Close func(c Connection) (events []VaultEvent, warned bool)
}

// MaxEventPage is how many bytes of events are read at once, beside one more.
const MaxEventPage = 8 << 20

// Size is how many bytes of an event are somebody's own.
func (e *VaultEvent) Size() int { return len(e.Payload) + len(e.Metadata) }

// Alias is the part of an agent's id behind the public key.
func Alias(agent string) string {
	_, name, _ := strings.Cut(agent, ":")
	return name
}

// Echo is the metadata of an answer to the event: its correlation, unchanged;
// nil if it has none.
func (e *VaultEvent) Echo() json.RawMessage {
	var m EventMetadata
	if len(e.Metadata) == 0 || json.Unmarshal(e.Metadata, &m) != nil || len(m.Correlation) == 0 {
		return nil
	}
	return slices.Concat(json.RawMessage(`{"correlation":`), m.Correlation, json.RawMessage(`}`))
}

// Conversation is what names the Job that the event belongs to; "" for the
// one without a name.
func (e *VaultEvent) Conversation() string {
	var m EventMetadata
	if len(e.Metadata) == 0 || json.Unmarshal(e.Metadata, &m) != nil {
		return "" // it was checked at the append
	}
	return m.Conversation
}
