package vault

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Bounds of an event.
const (
	maxPayload  = 1 << 20  // bytes
	maxMetadata = 64 << 10 // bytes
	maxParents  = 64
	maxType     = 200 // bytes
	maxKey      = 200 // bytes of an idempotency key, and of a conversation
	maxDepth    = 100
)

// StepKeys begins the idempotency keys under which the steps of runs ask:
// nobody else may take one.
const StepKeys = "step/"

// NewEvent is an event as somebody sends it.
type NewEvent struct {
	Scope    string          `json:"scope,omitempty" minLength:"1" doc:"One of the vault's; default if absent."`
	Type     string          `json:"type" doc:"Such as question.asked. agent.answered, agent.progress and agent.ceiling_warning are ours."`
	Target   string          `json:"target,omitempty" minLength:"1" doc:"An agent's id, <pubkey>:<alias>: it is asked. Without a target nobody is."`
	Payload  json.RawMessage `json:"payload,omitempty" doc:"An object; for an agent the first of text, message, prompt, question and body is what it is told, the rest is data."`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"An object. correlation is echoed by the answer, conversation names the Job."`
	Parents  []string        `json:"parents,omitempty" doc:"Ids of events of the same vault."`
}

// AppendIn appends an event.
type AppendIn struct {
	ID   string `path:"id" doc:"The vault's id or name."`
	Key  string `header:"Idempotency-Key" doc:"The same key and content again gives the event that is there."`
	Body NewEvent
}

// Append appends an event of the caller's. One with a target begins a turn of
// that agent, or is answered at once where the agent has no access. It answers
// not_found for the vault, invalid with the field, and conflict for a key that
// has made another event.
func (s *Service) Append(ctx context.Context, by flow.Caller, in *AppendIn) (*flow.VaultEvent, error) {
	person, err := s.c.People.Person(ctx, by.Person)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(in.Key, StepKeys) {
		return nil, flow.Errorf(flow.CodeInvalid, "keys that begin with %s are those of workflow steps", StepKeys).At("Idempotency-Key").
			Right("a key of your own")
	}
	author := flow.EventAuthor{Kind: flow.AuthorPerson, ID: by.Person}
	return s.publish(ctx, by.Workspace, in.ID, in.Body, author, hex.EncodeToString(person.PublicKey), in.Key, &by)
}

// Publish appends an event on somebody's behalf: a run's, with the public key
// of the person who started it, or "" for a schedule. It answers as
// [Service.Append] does.
func (s *Service) Publish(ctx context.Context, workspace, vault string, in NewEvent, author flow.EventAuthor, onBehalfOf, key string,
) (*flow.VaultEvent, error) {
	return s.publish(ctx, workspace, vault, in, author, onBehalfOf, key, nil)
}

// publish appends an event; what a caller appends is on the audit record.
func (s *Service) publish(ctx context.Context, workspace, vault string, in NewEvent, author flow.EventAuthor, onBehalfOf, key string, by *flow.Caller,
) (*flow.VaultEvent, error) {
	v, err := s.c.Vaults.Vault(ctx, workspace, vault)
	if err != nil {
		return nil, err
	}
	if err := in.check(v, key); err != nil {
		return nil, err
	}
	sum, err := in.digest()
	if err != nil {
		return nil, err
	}
	e := flow.VaultEvent{ID: s.c.NewID("evt"), Workspace: workspace, Vault: v.ID, Scope: in.Scope, Type: in.Type, Target: in.Target,
		Payload: in.Payload, Metadata: in.Metadata, Parents: in.Parents, Author: author, OnBehalfOf: onBehalfOf, At: s.c.Clock.Now()}
	var did []flow.Audit
	if by != nil {
		did = append(did, by.Did("events.append", "vault/"+v.ID, e.At, map[string]any{"event": e.ID, "scope": e.Scope, "type": e.Type, "target": e.Target}))
	}
	done, err := s.c.Events.AppendEvent(ctx, flow.VaultAppend{Event: e, Conversation: e.Conversation(), Key: key,
		Digest: hex.EncodeToString(sum[:]), Route: router{s.c.Clock, s.c.NewID}.route}, did...)
	if err != nil {
		return nil, err
	}
	s.sweep()
	if !done.Again {
		s.Published(done.Events)
		if done.Turn != nil {
			for _, l := range s.listeners {
				l.Turn(*done.Turn)
			}
		}
	}
	return &done.Events[0], nil
}

// digest is the same for events that say the same, in whatever order their
// members stand.
func (in NewEvent) digest() (sum [sha256.Size]byte, err error) {
	for _, raw := range []*json.RawMessage{&in.Payload, &in.Metadata} {
		if len(*raw) == 0 {
			continue
		}
		d := json.NewDecoder(bytes.NewReader(*raw))
		d.UseNumber()
		var v any
		if err = d.Decode(&v); err == nil {
			*raw, err = flow.PlainJSON(v) // members in the order of their names
		}
		if err != nil {
			return sum, flow.Errorf(flow.CodeInvalid, "the event is not JSON").Because(err)
		}
	}
	whole, err := json.Marshal(in)
	if err != nil {
		return sum, flow.Errorf(flow.CodeInvalid, "the event is not JSON").Because(err)
	}
	return sha256.Sum256(whole), nil
}

// check refuses an event that cannot be appended, and fills in what may be
// absent.
func (in *NewEvent) check(v flow.Vault, key string) error {
	bad := func(field, message, fix string) error {
		return flow.Errorf(flow.CodeInvalid, "%s", message).At(field).Right(fix)
	}
	if in.Scope == "" {
		in.Scope = flow.DefaultScope
	}
	switch {
	case !slices.Contains(v.Scopes, in.Scope):
		return bad("scope", fmt.Sprintf("the vault has no scope %q", clip(in.Scope)), "one of "+strings.Join(v.Scopes, ", "))
	case !isType(in.Type):
		return bad("type", fmt.Sprintf("%q is no event type", clip(in.Type)), fmt.Sprintf("a word such as question.asked, of at most %d characters", maxType))
	case in.Type == flow.EventAgentAnswered || in.Type == flow.EventAgentProgress || in.Type == flow.EventAgentCeilingWarning:
		return bad("type", in.Type+" is published for agents only", "a type of your own")
	case len(in.Parents) > maxParents:
		return bad("parents", fmt.Sprintf("%d parents are too many", len(in.Parents)), fmt.Sprintf("at most %d", maxParents))
	case len(key) > maxKey || !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl):
		return bad("Idempotency-Key", "the key cannot be used", fmt.Sprintf("at most %d bytes of text", maxKey))
	case in.Target != "" && !IsAgentID(in.Target):
		return bad("target", fmt.Sprintf("%q is no agent's id", clip(in.Target)), "<pubkey>:<alias>, as agents list prints it")
	}
	var err error
	if in.Payload, err = object("payload", in.Payload, maxPayload); err != nil {
		return err
	}
	if in.Target != "" && string(in.Payload) == "{}" {
		return bad("payload", "the agent would be asked nothing", "text, message, prompt, question or body, or data")
	}
	if len(in.Metadata) == 0 {
		return nil
	}
	if in.Metadata, err = object("metadata", in.Metadata, maxMetadata); err != nil {
		return err
	}
	var m flow.EventMetadata
	if json.Unmarshal(in.Metadata, &m) != nil || len(m.Conversation) > maxKey {
		return bad("metadata.conversation", "it must be a text", fmt.Sprintf("of at most %d characters", maxKey))
	}
	return nil
}

// isType checks an event's type: one word without spaces and control
// characters.
func isType(s string) bool {
	odd := func(r rune) bool { return r <= ' ' || r == 0x7f }
	return s != "" && len(s) <= maxType && !strings.ContainsFunc(s, odd)
}

// object checks that raw is a JSON object within bounds, and writes it without
// spaces. Nothing is an empty one.
func object(field string, raw json.RawMessage, most int) (json.RawMessage, error) {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if len(raw) > most {
		return nil, flow.Errorf(flow.CodeTooLarge, "%d bytes are too many", len(raw)).At(field).Right(fmt.Sprintf("at most %d", most))
	}
	if depth, _ := flow.JSONSize(raw); depth > maxDepth {
		return nil, flow.Errorf(flow.CodeInvalid, "it is nested more than %d levels deep", maxDepth).At(field)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil || b.Bytes()[0] != '{' {
		return nil, flow.Errorf(flow.CodeInvalid, "it must be a JSON object").At(field).Because(err)
	}
	if why := flow.StrictJSON(b.Bytes()); why != "" {
		return nil, flow.Errorf(flow.CodeInvalid, "%s", why).At(field).Right("JSON that every reader reads in the same way")
	}
	return b.Bytes(), nil
}

// IsAgentID reports whether a text is an agent's id: the public key of its
// Agent Service, 64 hexadecimal digits, a colon, and its alias.
func IsAgentID(s string) bool {
	key, name, ok := strings.Cut(s, ":")
	if !ok || name == "" || len(name) > 200 || strings.Contains(name, ":") || len(key) != 64 {
		return false
	}
	_, err := hex.DecodeString(key)
	return err == nil
}
