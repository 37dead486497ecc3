package access

import (
	"context"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// WorkspaceView is a workspace as it is shown to somebody who belongs to it.
type WorkspaceView struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Role      flow.Role `json:"role" doc:"The caller's person's there."`
	Current   bool      `json:"current" doc:"Whether the caller's key is one of it."`
	CreatedAt time.Time `json:"createdAt"`
	Key       string    `json:"key,omitempty" doc:"An owner's key to it, in the answer that made it and never again."`
}

// CreateWorkspaceIn makes a workspace.
type CreateWorkspaceIn struct {
	Body struct {
		Name string `json:"name" doc:"1 to 100 characters."`
	}
}

// PutWorkspaceIn renames a workspace.
type PutWorkspaceIn struct {
	ID   string `path:"id"`
	Body struct {
		Name string `json:"name" doc:"1 to 100 characters."`
	}
}

// WorkspacesList lists the workspaces that the caller's person belongs to.
func (s *Service) WorkspacesList(ctx context.Context, by flow.Caller, _ *None) (*List[WorkspaceView], error) {
	mine, err := s.c.Tenants.Memberships(ctx, by.Person)
	if err != nil {
		return nil, err
	}
	out := &List[WorkspaceView]{Items: []WorkspaceView{}}
	for _, m := range mine {
		out.Items = append(out.Items, viewWorkspace(m, by))
	}
	return out, nil
}

func viewWorkspace(m flow.Member, by flow.Caller) WorkspaceView {
	return WorkspaceView{ID: m.Workspace.ID, Name: m.Workspace.Name, Role: m.Role, Current: m.Workspace.ID == by.Workspace, CreatedAt: m.Workspace.CreatedAt}
}

// WorkspacesCreate makes a workspace that the caller's person owns, and a key
// to it, shown this once. Both workspaces' records tell of it.
func (s *Service) WorkspacesCreate(ctx context.Context, by flow.Caller, in *CreateWorkspaceIn) (*WorkspaceView, error) {
	called, err := name(in.Body.Name, "workspace")
	if err != nil {
		return nil, err
	}
	person, err := s.c.Tenants.Person(ctx, by.Person)
	if err != nil {
		return nil, err
	}
	text, err := newKey()
	if err != nil {
		return nil, err
	}
	now := s.c.Clock.Now()
	m := flow.Member{Workspace: flow.Workspace{ID: s.c.NewID("ws"), Name: called, CreatedAt: now}, Person: person, Role: flow.RoleOwner}
	k := s.key(text, flow.Caller{Workspace: m.Workspace.ID, Person: person.ID}, "first owner's key", flow.RoleOwner)
	there := flow.Caller{Workspace: m.Workspace.ID, Person: by.Person} // the key is another workspace's, and stays unnamed
	target, details := "workspace/"+m.Workspace.ID, map[string]any{"name": called}
	err = s.c.Tenants.AddWorkspace(ctx, m, k, by.Did("workspaces.create", target, now, details), there.Did("workspaces.create", target, now, details))
	if err != nil {
		return nil, err
	}
	v := viewWorkspace(m, by)
	v.Key = text
	return &v, nil
}

// WorkspacesPut renames the caller's workspace. Another one's id is not_found.
func (s *Service) WorkspacesPut(ctx context.Context, by flow.Caller, in *PutWorkspaceIn) (*WorkspaceView, error) {
	if in.ID != by.Workspace {
		return nil, flow.Errorf(flow.CodeNotFound, "there is no workspace %q for this key", clip(in.ID)).
			Right("the id that GET /v1/me shows; for another workspace use a key of it")
	}
	called, err := name(in.Body.Name, "workspace")
	if err != nil {
		return nil, err
	}
	did := by.Did("workspaces.put", "workspace/"+in.ID, s.c.Clock.Now(), map[string]any{"name": called})
	if err := s.c.Tenants.RenameWorkspace(ctx, in.ID, called, did); err != nil {
		return nil, err
	}
	mine, err := s.WorkspacesList(ctx, by, nil)
	if err != nil {
		return nil, err
	}
	for _, v := range mine.Items {
		if v.Current {
			return &v, nil
		}
	}
	return &WorkspaceView{ID: in.ID, Name: called, Current: true}, nil // its person has just left it
}
