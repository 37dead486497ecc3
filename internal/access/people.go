package access

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/longstop-dev/longstop/internal/flow"
)

// PersonView is a member of the workspace as it is shown.
type PersonView struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Role      flow.Role `json:"role" doc:"In this workspace; agent for one that is no human."`
	PublicKey string    `json:"publicKey" doc:"Ed25519, 64 hex digits: what names the person elsewhere."`
	Keys      int       `json:"keys" doc:"API keys of theirs to this workspace that hold."`
	CreatedAt time.Time `json:"createdAt"`
}

// PersonIn names a member.
type PersonIn struct {
	ID string `path:"id"`
}

// AddPersonIn adds a member: a new person by name, or one who is there by id.
type AddPersonIn struct {
	Body struct {
		Name      string `json:"name,omitempty" doc:"Of a new person, 1 to 100 characters."`
		Person    string `json:"person,omitempty" doc:"Instead of name: the id of a person of another workspace that you own."`
		Role      string `json:"role" doc:"owner, editor, operator, viewer or agent; not above the caller's."`
		PublicKey string `json:"publicKey,omitempty" doc:"A new person's own Ed25519 key, 64 hex digits; one is made if absent."`
	}
}

// PutPersonIn changes a member's role.
type PutPersonIn struct {
	ID   string `path:"id"`
	Body struct {
		Role string `json:"role" doc:"owner, editor, operator, viewer or agent; not above the caller's. Keys of theirs that may do more get it too."`
	}
}

// PeopleList lists the members, in the order in which they were made.
func (s *Service) PeopleList(ctx context.Context, by flow.Caller, _ *None) (*List[PersonView], error) {
	members, err := s.c.People.Members(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	holding, err := s.holding(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	out := &List[PersonView]{Items: []PersonView{}}
	for _, m := range members {
		out.Items = append(out.Items, viewPerson(m, holding[m.Person.ID]))
	}
	return out, nil
}

// holding counts the keys that hold, by person.
func (s *Service) holding(ctx context.Context, workspace string) (map[string]int, error) {
	keys, err := s.c.Keys.Keys(ctx, workspace)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for _, k := range keys {
		if k.RevokedAt.IsZero() {
			out[k.Person]++
		}
	}
	return out, nil
}

func viewPerson(m flow.Member, keys int) PersonView {
	return PersonView{ID: m.Person.ID, Name: m.Person.Name, Role: m.Role, PublicKey: hex.EncodeToString(m.Person.PublicKey), Keys: keys,
		CreatedAt: m.Person.CreatedAt}
}

// PeopleGet gives one member; not_found if there is none.
func (s *Service) PeopleGet(ctx context.Context, by flow.Caller, in *PersonIn) (*PersonView, error) {
	m, err := s.c.People.Member(ctx, by.Workspace, in.ID)
	if err != nil {
		return nil, noPerson(err, in.ID)
	}
	holding, err := s.holding(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	v := viewPerson(m, holding[m.Person.ID])
	return &v, nil
}

// noPerson words not_found with what would be right.
func noPerson(err error, id string) error {
	if flow.CodeOf(err) != flow.CodeNotFound {
		return err
	}
	return flow.Errorf(flow.CodeNotFound, "there is no person %q in this workspace", clip(id)).Right("GET /v1/people lists those who are")
}

// PeopleAdd adds a member. A new person gets an Ed25519 key pair, of which the
// private half is dropped (see [Service.Bootstrap]). It answers invalid,
// forbidden for a role above the caller's, not_found for a person whom the
// caller cannot know of, and conflict for a member.
func (s *Service) PeopleAdd(ctx context.Context, by flow.Caller, in *AddPersonIn) (*PersonView, error) {
	role, err := grant(by, in.Body.Role)
	if err != nil {
		return nil, err
	}
	var person flow.Person
	switch {
	case in.Body.Person != "" && (in.Body.Name != "" || in.Body.PublicKey != ""):
		return nil, flow.Errorf(flow.CodeInvalid, "a person who is there already has a name and a key").At("person").Right("send name for a new person, or person alone")
	case in.Body.Person != "":
		person, err = s.known(ctx, by, in.Body.Person)
	default:
		person, err = s.newPerson(in.Body.Name, in.Body.PublicKey)
	}
	if err != nil {
		return nil, err
	}
	m := flow.Member{Workspace: flow.Workspace{ID: by.Workspace}, Person: person, Role: role}
	did := by.Did("people.add", "person/"+person.ID, s.c.Clock.Now(), map[string]any{"name": person.Name, "role": role})
	if err := s.c.People.AddMember(ctx, m, in.Body.Person == "", did); err != nil {
		return nil, err
	}
	v := viewPerson(m, 0)
	return &v, nil
}

// grant reads a role that the caller would give; forbidden if it is above
// their own.
func grant(by flow.Caller, text string) (flow.Role, error) {
	role := flow.Role(text)
	switch {
	case !role.Valid():
		return role, flow.Errorf(flow.CodeInvalid, "%q is no role", clip(text)).At("role").Right("owner, editor, operator, viewer or agent")
	case role.Above(by.Role), by.Role == flow.RoleAgent:
		return role, flow.Errorf(flow.CodeForbidden, "the role %s is above your own, %s", role, by.Role).At("role").Right("ask for " + string(by.Role) + " or less")
	}
	return role, nil
}

// name checks the name of a person, a key or a workspace.
func name(text, of string) (string, error) {
	text = strings.TrimSpace(text)
	if n := utf8.RuneCountInString(text); n < 1 || n > 100 || strings.IndexFunc(text, unicode.IsControl) >= 0 || !utf8.ValidString(text) {
		return "", flow.Errorf(flow.CodeInvalid, "a %s needs a name", of).At("name").Right("1 to 100 characters in one line")
	}
	return text, nil
}

func (s *Service) newPerson(called, publicKey string) (flow.Person, error) {
	called, err := name(called, "person")
	if err != nil {
		return flow.Person{}, err
	}
	p := flow.Person{ID: s.c.NewID("person"), Name: called, CreatedAt: s.c.Clock.Now()}
	if publicKey == "" {
		p.PublicKey, _, err = ed25519.GenerateKey(nil)
		if err != nil {
			return p, flow.Errorf(flow.CodeInternal, "no randomness").Because(err)
		}
		return p, nil
	}
	if p.PublicKey, err = hex.DecodeString(publicKey); err != nil || len(p.PublicKey) != ed25519.PublicKeySize {
		return p, flow.Errorf(flow.CodeInvalid, "this is no Ed25519 public key").At("publicKey").Right("64 hex digits, or leave it out and one is made")
	}
	return p, nil
}

// known finds a person of a workspace that the caller's person owns too: of
// nobody else may this workspace learn that they exist.
func (s *Service) known(ctx context.Context, by flow.Caller, id string) (flow.Person, error) {
	unknown := flow.Errorf(flow.CodeNotFound, "there is no person %q whom you know", clip(id)).At("person").
		Right("the id of a member of another workspace that you own")
	mine, err := s.c.Tenants.Memberships(ctx, by.Person)
	if err != nil {
		return flow.Person{}, err
	}
	for _, own := range mine {
		if own.Role != flow.RoleOwner {
			continue
		}
		m, err := s.c.People.Member(ctx, own.Workspace.ID, id)
		if flow.CodeOf(err) == flow.CodeNotFound {
			continue
		}
		return m.Person, err
	}
	return flow.Person{}, unknown
}

// PeoplePut changes a member's role, and that of keys of theirs that may do
// more, at once. It answers invalid, forbidden, not_found, and conflict where
// no owner with a key would be left.
func (s *Service) PeoplePut(ctx context.Context, by flow.Caller, in *PutPersonIn) (*PersonView, error) {
	role, err := grant(by, in.Body.Role)
	if err != nil {
		return nil, err
	}
	was, err := s.c.People.Member(ctx, by.Workspace, in.ID)
	if err != nil {
		return nil, noPerson(err, in.ID)
	}
	did := by.Did("people.put", "person/"+in.ID, s.c.Clock.Now(), map[string]any{"role": role, "before": was.Role})
	if err := s.c.People.SetRole(ctx, by.Workspace, in.ID, role, did); err != nil {
		return nil, noPerson(err, in.ID)
	}
	s.ended()
	return s.PeopleGet(ctx, by, &PersonIn{ID: in.ID})
}

// PeopleRemove ends a membership; the person's keys to this workspace end with
// it, at once. It answers not_found, and conflict where no owner with a key
// would be left.
func (s *Service) PeopleRemove(ctx context.Context, by flow.Caller, in *PersonIn) (*None, error) {
	was, err := s.c.People.Member(ctx, by.Workspace, in.ID)
	if err != nil {
		return nil, noPerson(err, in.ID)
	}
	now := s.c.Clock.Now()
	did := by.Did("people.remove", "person/"+in.ID, now, map[string]any{"name": was.Person.Name, "role": was.Role})
	if err := s.c.People.RemoveMember(ctx, by.Workspace, in.ID, now, did); err != nil {
		return nil, noPerson(err, in.ID)
	}
	s.ended()
	return &None{}, nil
}
