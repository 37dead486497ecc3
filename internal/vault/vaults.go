package vault

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// View is a vault as every face shows it.
type View struct {
	ID            string    `json:"id"`
	Name          string    `json:"name"`
	Owner         string    `json:"owner" doc:"The person who alone lets agents in, and may delete it."`
	Scopes        []string  `json:"scopes"`
	RetentionDays int       `json:"retentionDays" doc:"Events older than this are removed; 0 keeps all."`
	Seq           int64     `json:"seq" doc:"Of the newest event."`
	CreatedAt     time.Time `json:"createdAt"`
}

// CreateIn asks for a vault.
type CreateIn struct {
	Body struct {
		Name          string   `json:"name" doc:"Unique in the workspace: letters, digits, . _ and -; 1 to 100 characters."`
		Scopes        []string `json:"scopes,omitempty" doc:"Beside default, which every vault has; at most 100."`
		RetentionDays int      `json:"retentionDays,omitempty" minimum:"0" maximum:"36500"`
	}
}

// In names a vault.
type In struct {
	ID string `path:"id" doc:"Its id or its name."`
}

// UpdateIn changes a vault; what is absent stays.
type UpdateIn struct {
	ID   string `path:"id" doc:"Its id or its name."`
	Body struct {
		AddScopes     []string `json:"addScopes,omitempty" doc:"A scope is never taken away: events are in it."`
		RetentionDays *int     `json:"retentionDays,omitempty" minimum:"0" maximum:"36500"`
	}
}

const maxScopes = 100

// isName checks a name as a path, a flag and a bucket can hold it.
func isName(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || r != '.' && r != '_' && r != '-') {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= 100
}

func view(v flow.Vault) View {
	return View{ID: v.ID, Name: v.Name, Owner: v.Owner, Scopes: v.Scopes, RetentionDays: v.RetentionDays, Seq: v.Seq, CreatedAt: v.CreatedAt}
}

// Create makes a vault that the caller owns. It answers invalid, and conflict
// for a name that is taken.
func (s *Service) Create(ctx context.Context, by flow.Caller, in *CreateIn) (*View, error) {
	if !isName(in.Body.Name) {
		return nil, badName("name", in.Body.Name)
	}
	scopes, err := scopes([]string{flow.DefaultScope}, in.Body.Scopes)
	if err != nil {
		return nil, err
	}
	v := flow.Vault{ID: s.c.NewID("vault"), Workspace: by.Workspace, Name: in.Body.Name, Owner: by.Person, Scopes: scopes,
		RetentionDays: in.Body.RetentionDays, CreatedAt: s.c.Clock.Now()}
	if err := s.c.Vaults.CreateVault(ctx, v, by.Did("vaults.create", "vault/"+v.ID, v.CreatedAt, map[string]any{"name": v.Name, "scopes": v.Scopes})); err != nil {
		return nil, err
	}
	out := view(v)
	return &out, nil
}

// scopes adds names of scopes to those that are there.
func scopes(have, more []string) ([]string, error) {
	out := slices.Clone(have)
	for i, name := range more {
		if !isName(name) {
			return nil, badName(fmt.Sprintf("scopes[%d]", i), name)
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	if len(out) > maxScopes {
		return nil, flow.Errorf(flow.CodeInvalid, "%d scopes are too many", len(out)).At("scopes").Right(fmt.Sprintf("at most %d", maxScopes))
	}
	return out, nil
}

func badName(field, name string) error {
	return flow.Errorf(flow.CodeInvalid, "%q is no name", clip(name)).At(field).Right("letters, digits, . _ and -, 1 to 100 characters, beginning with a letter or digit")
}

// clip bounds a text of the caller's that an error repeats.
func clip(text string) string {
	if r := []rune(text); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return text
}

// ListVaults lists the workspace's vaults, by name.
func (s *Service) ListVaults(ctx context.Context, by flow.Caller, _ *None) (*List[View], error) {
	all, err := s.c.Vaults.Vaults(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	out := &List[View]{Items: []View{}}
	for _, v := range all {
		out.Items = append(out.Items, view(v))
	}
	return out, nil
}

// Get gives a vault; not_found.
func (s *Service) Get(ctx context.Context, by flow.Caller, in *In) (*View, error) {
	v, err := s.c.Vaults.Vault(ctx, by.Workspace, in.ID)
	if err != nil {
		return nil, err
	}
	out := view(v)
	return &out, nil
}

// owned gives a vault of the caller's own; forbidden for another person's.
func (s *Service) owned(ctx context.Context, by flow.Caller, id string) (flow.Vault, error) {
	v, err := s.c.Vaults.Vault(ctx, by.Workspace, id)
	if err == nil && v.Owner != by.Person {
		err = flow.Errorf(flow.CodeForbidden, "the vault %q belongs to somebody else", v.Name).Right("only its owner, " + v.Owner + ", may do this")
	}
	return v, err
}

// Update changes a vault of the caller's. It answers forbidden for another
// person's.
func (s *Service) Update(ctx context.Context, by flow.Caller, in *UpdateIn) (*View, error) {
	return anew(func() (*View, error) {
		was, err := s.owned(ctx, by, in.ID)
		if err != nil {
			return nil, err
		}
		v := was
		if v.Scopes, err = scopes(v.Scopes, in.Body.AddScopes); err != nil {
			return nil, err
		}
		if in.Body.RetentionDays != nil {
			v.RetentionDays = *in.Body.RetentionDays
		}
		did := by.Did("vaults.update", "vault/"+v.ID, s.c.Clock.Now(), map[string]any{"scopes": v.Scopes, "retentionDays": v.RetentionDays})
		if err := s.c.Vaults.UpdateVault(ctx, was, v, did); err != nil {
			return nil, err
		}
		out := view(v)
		return &out, nil
	})
}

// anew makes a change again that somebody else came before: each is made of
// what it has read, and what two change at once is changed by both.
func anew[T any](change func() (T, error)) (out T, err error) {
	for range 10 {
		if out, err = change(); flow.CodeOf(err) != flow.CodeStale {
			break
		}
	}
	return out, err
}

// Delete removes a vault of the caller's with every event, connection and Job
// in it. It answers forbidden for another person's.
func (s *Service) Delete(ctx context.Context, by flow.Caller, in *In) (*None, error) {
	v, err := s.owned(ctx, by, in.ID)
	if err != nil {
		return nil, err
	}
	if err := s.c.Vaults.DeleteVault(ctx, by.Workspace, v.ID, by.Did("vaults.delete", "vault/"+v.ID, s.c.Clock.Now(), map[string]any{"name": v.Name})); err != nil {
		return nil, err
	}
	s.feed.Moved(v.ID)
	return &None{}, nil
}
