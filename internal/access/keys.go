package access

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/longstop-dev/longstop/internal/flow"
)

// KeyView is an API key as it is shown: never the key itself, but once.
type KeyView struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Role      flow.Role  `json:"role"`
	Prefix    string     `json:"prefix" doc:"Its first characters, to recognise it by."`
	Person    string     `json:"person"`
	CreatedAt time.Time  `json:"createdAt"`
	RevokedAt *time.Time `json:"revokedAt,omitempty"`
	Key       string     `json:"key,omitempty" doc:"The key, in the answer that made it and never again."`
}

// CreateKeyIn asks for a key.
type CreateKeyIn struct {
	Body struct {
		Name string `json:"name" doc:"What it is for; 1 to 100 characters."`
		Role string `json:"role" doc:"owner, editor, operator, viewer or agent; not above the caller's."`
	}
}

// KeyIn names a key.
type KeyIn struct {
	ID string `path:"id"`
}

// Authenticate says who sends a bearer token. It answers unauthenticated for
// one that is mistyped, unknown or revoked, in the same words for the last two.
func (s *Service) Authenticate(ctx context.Context, bearer string) (flow.Caller, error) {
	refused := flow.Errorf(flow.CodeUnauthenticated, "the API key is not known here").
		Right("send Authorization: Bearer <key> with a key of this server that is not revoked")
	if bearer == "" {
		return flow.Caller{}, flow.Errorf(flow.CodeUnauthenticated, "this needs an API key").Right("send Authorization: Bearer <key>; on the server's machine, longstop keys create NAME makes one")
	}
	if err := checkKey(bearer); err != nil {
		return flow.Caller{}, flow.Errorf(flow.CodeUnauthenticated, "this is no API key: %v", err).
			Right("send the whole key as it was printed when it was made")
	}
	hash := hashKey(bearer)
	s.mu.Lock()
	by, ok := s.lent[hash]
	if !ok {
		by, ok = s.callers[hash]
	}
	seen := s.written
	s.mu.Unlock()
	if ok {
		return by, nil
	}
	key, err := s.c.Keys.KeyByHash(ctx, hash[:])
	switch {
	case flow.CodeOf(err) == flow.CodeNotFound:
		return flow.Caller{}, refused
	case err != nil:
		return flow.Caller{}, err
	case !key.RevokedAt.IsZero():
		return flow.Caller{}, refused
	}
	by = flow.Caller{Workspace: key.Workspace, Person: key.Person, KeyID: key.ID, Role: key.Role}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.written == seen {
		if len(s.callers) >= maxKept {
			clear(s.callers)
		}
		s.callers[hash] = by
	}
	return by, nil
}

// KeysList lists the workspace's keys, revoked ones too, oldest first.
func (s *Service) KeysList(ctx context.Context, by flow.Caller, _ *None) (*List[KeyView], error) {
	keys, err := s.c.Keys.Keys(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	out := &List[KeyView]{Items: []KeyView{}}
	for _, k := range keys {
		out.Items = append(out.Items, viewKey(k))
	}
	return out, nil
}

func viewKey(k flow.Key) KeyView {
	v := KeyView{ID: k.ID, Name: k.Name, Role: k.Role, Prefix: k.Prefix, Person: k.Person, CreatedAt: k.CreatedAt}
	if !k.RevokedAt.IsZero() {
		v.RevokedAt = &k.RevokedAt
	}
	return v
}

// KeysCreate makes a key of the caller's person, and shows it this once. It
// answers invalid, and forbidden for a role above the caller's.
func (s *Service) KeysCreate(ctx context.Context, by flow.Caller, in *CreateKeyIn) (*KeyView, error) {
	role := flow.Role(in.Body.Role)
	switch role {
	case flow.RoleOwner, flow.RoleEditor, flow.RoleOperator, flow.RoleViewer, flow.RoleAgent:
	default:
		return nil, flow.Errorf(flow.CodeInvalid, "%q is no role", clip(in.Body.Role)).At("role").
			Right("owner, editor, operator, viewer or agent")
	}
	needed := role
	if role == flow.RoleAgent {
		needed = flow.RoleViewer // an agent may do less than any person
	}
	if !(flow.Op{Min: needed}).Allows(by.Role) {
		return nil, flow.Errorf(flow.CodeForbidden, "a key of the role %s cannot make one of the role %s", by.Role, role).
			At("role").Right("ask for " + string(by.Role) + " or less")
	}
	name := strings.TrimSpace(in.Body.Name)
	if n := utf8.RuneCountInString(name); n < 1 || n > 100 || strings.IndexFunc(name, unicode.IsControl) >= 0 || !utf8.ValidString(name) {
		return nil, flow.Errorf(flow.CodeInvalid, "a key needs a name").At("name").Right("1 to 100 characters that say what it is for")
	}
	text, err := newKey()
	if err != nil {
		return nil, err
	}
	k := s.key(text, by, name, role)
	if err := s.c.Keys.CreateKey(ctx, k); err != nil {
		return nil, err
	}
	v := viewKey(k)
	v.Key = text
	return &v, nil
}

// key makes the row of a key.
func (s *Service) key(text string, of flow.Caller, name string, role flow.Role) flow.Key {
	hash := hashKey(text)
	return flow.Key{ID: s.c.NewID("key"), Workspace: of.Workspace, Person: of.Person, Name: name, Role: role,
		Hash: hash[:], Prefix: text[:shownSize], CreatedAt: s.c.Clock.Now()}
}

// KeysRevoke ends a key at once. It answers not_found, and conflict for the
// last owner's key of the workspace, without which nobody could make another.
func (s *Service) KeysRevoke(ctx context.Context, by flow.Caller, in *KeyIn) (*None, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	keys, err := s.c.Keys.Keys(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	owners, last := 0, false
	for _, k := range keys {
		if k.Role == flow.RoleOwner && k.RevokedAt.IsZero() {
			owners++
			last = last || k.ID == in.ID
		}
	}
	if last && owners == 1 {
		return nil, flow.Errorf(flow.CodeConflict, "%s is the last key of an owner of this workspace", in.ID).
			Right("make another one first")
	}
	if err := s.c.Keys.RevokeKey(ctx, by.Workspace, in.ID, s.c.Clock.Now()); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written++
	clear(s.callers)
	return &None{}, nil
}

// clip bounds a text of the caller's that an error repeats.
func clip(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if r := []rune(text); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return text
}
