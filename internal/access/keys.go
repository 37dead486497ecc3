package access

import (
	"context"
	"slices"
	"strings"
	"time"

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
		Name   string `json:"name" doc:"What it is for; 1 to 100 characters."`
		Role   string `json:"role" doc:"owner, editor, operator, viewer or agent; not above the caller's, nor the person's."`
		Person string `json:"person,omitempty" doc:"Whose key it is: the id of a member; the caller's own if absent."`
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
	lent := s.lent[hash]
	by, ok := s.callers[hash]
	seen := s.written
	s.mu.Unlock()
	if ok {
		return by, nil
	}
	var err error
	if lent {
		by, err = s.Local(ctx)
	} else {
		by, err = s.holder(ctx, hash)
	}
	switch {
	case flow.CodeOf(err) == flow.CodeNotFound:
		return flow.Caller{}, refused
	case err != nil:
		return flow.Caller{}, err
	}
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

// holder finds whose key it is and what it may do: what the key says, and not
// more than its person may now. It answers not_found for a key that does not
// hold.
func (s *Service) holder(ctx context.Context, hash keyHash) (flow.Caller, error) {
	key, err := s.c.Keys.KeyByHash(ctx, hash[:])
	if err != nil {
		return flow.Caller{}, err
	}
	if !key.RevokedAt.IsZero() {
		return flow.Caller{}, flow.Errorf(flow.CodeNotFound, "the key is revoked")
	}
	m, err := s.c.People.Member(ctx, key.Workspace, key.Person)
	if err != nil {
		return flow.Caller{}, err
	}
	by := flow.Caller{Workspace: key.Workspace, Person: key.Person, KeyID: key.ID, Role: key.Role}
	if key.Role.Above(m.Role) {
		by.Role = m.Role
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

// KeysCreate makes a key of the caller's person, or of another member, and
// shows it this once. It answers invalid, forbidden for a role above the
// caller's, and not_found for somebody who is no member.
func (s *Service) KeysCreate(ctx context.Context, by flow.Caller, in *CreateKeyIn) (*KeyView, error) {
	role, err := grant(by, in.Body.Role)
	if err != nil {
		return nil, err
	}
	called, err := name(in.Body.Name, "key")
	if err != nil {
		return nil, err
	}
	of := by.Person
	if in.Body.Person != "" {
		of = in.Body.Person
	}
	m, err := s.c.People.Member(ctx, by.Workspace, of)
	if err != nil {
		return nil, noPerson(err, of)
	}
	if role.Above(m.Role) {
		return nil, flow.Errorf(flow.CodeInvalid, "%s has the role %s in this workspace, below %s", m.Person.ID, m.Role, role).At("role").
			Right("ask for " + string(m.Role) + " or less, or change the person's role first")
	}
	text, err := newKey()
	if err != nil {
		return nil, err
	}
	k := s.key(text, flow.Caller{Workspace: by.Workspace, Person: of}, called, role)
	did := by.Did("keys.create", "key/"+k.ID, k.CreatedAt, map[string]any{"name": called, "role": role, "person": of})
	if err := s.c.Keys.CreateKey(ctx, k, did); err != nil {
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
	now := s.c.Clock.Now()
	if err := s.c.Keys.RevokeKey(ctx, by.Workspace, in.ID, now, by.Did("keys.revoke", "key/"+in.ID, now, nil)); err != nil {
		return nil, noKey(err, in.ID)
	}
	s.ended()
	return &None{}, nil
}

func noKey(err error, id string) error {
	if flow.CodeOf(err) != flow.CodeNotFound {
		return err
	}
	return flow.Errorf(flow.CodeNotFound, "there is no key %q in this workspace", clip(id)).Right("GET /v1/keys lists those that there are")
}

// KeysRotate makes a key in place of another: of the same person, with the
// same name and role. The old one ends at once, the new one is shown this
// once. It answers not_found, conflict for a key that is revoked, and
// forbidden for one whose role is above the caller's.
func (s *Service) KeysRotate(ctx context.Context, by flow.Caller, in *KeyIn) (*KeyView, error) {
	keys, err := s.c.Keys.Keys(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(keys, func(k flow.Key) bool { return k.ID == in.ID })
	if at < 0 {
		return nil, noKey(flow.Errorf(flow.CodeNotFound, ""), in.ID)
	}
	old := keys[at]
	if _, err := grant(by, string(old.Role)); err != nil {
		return nil, err
	}
	text, err := newKey()
	if err != nil {
		return nil, err
	}
	k := s.key(text, flow.Caller{Workspace: by.Workspace, Person: old.Person}, old.Name, old.Role)
	did := by.Did("keys.rotate", "key/"+old.ID, k.CreatedAt, map[string]any{"name": old.Name, "role": old.Role, "person": old.Person, "newKey": k.ID})
	if err := s.c.Keys.ReplaceKey(ctx, old.ID, k, did); err != nil {
		return nil, err
	}
	s.ended()
	v := viewKey(k)
	v.Key = text
	return &v, nil
}

// clip bounds a text of the caller's that an error repeats.
func clip(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if r := []rune(text); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return text
}
