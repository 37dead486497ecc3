package access

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"strings"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/secret"
)

// EnvBootstrapKey is the environment variable that may hold the first owner's
// key.
const EnvBootstrapKey = "LONGSTOP_BOOTSTRAP_KEY"

// Founding says what the first start makes.
type Founding struct {
	// Key of the owner, of LONGSTOP_BOOTSTRAP_KEY or --bootstrap-key-file,
	// instead of a fresh one: one of ours, or any 32 to 256 printable ASCII
	// characters without spaces, as secret managers make them. It is ignored at
	// every later start.
	Key       string
	Person    string // the owner's name; "owner" if empty
	Workspace string // its name; "default" if empty
}

// Bootstrap makes, at the first start, one person, one workspace and the
// owner's key, which it gives for printing if it was not chosen; created tells
// that it did. At every start it checks that the master key is the one that
// what is stored was sealed with, and answers invalid if not.
//
// The person gets an Ed25519 key pair of which the public half is kept and the
// private half dropped: the public key names the person, nothing here signs as
// a person, and what is not kept cannot be stolen.
func (s *Service) Bootstrap(ctx context.Context, f Founding) (key string, created bool, err error) {
	f.Key = strings.TrimSpace(f.Key)
	text := f.Key
	if text == "" {
		if text, err = newKey(); err != nil {
			return "", false, err
		}
	} else if err := checkKey(text); err != nil {
		return "", false, flow.Errorf(flow.CodeInvalid, "the bootstrap key cannot be used: %v", err).At(EnvBootstrapKey).
			Right("32 to 256 printable ASCII characters without spaces, or a key that Longstop made")
	}
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		return "", false, flow.Errorf(flow.CodeInternal, "no randomness").Because(err)
	}
	now := s.c.Clock.Now()
	w := flow.Workspace{ID: s.c.NewID("ws"), Name: cmp.Or(f.Workspace, "default"), CreatedAt: now}
	p := flow.Person{ID: s.c.NewID("person"), Name: cmp.Or(f.Person, "owner"), PublicKey: public, CreatedAt: now}
	k := s.key(text, flow.Caller{Workspace: w.ID, Person: p.ID}, "first owner's key", flow.RoleOwner)
	if f.Key != "" {
		k.Prefix = "" // nothing of a key that somebody chose is shown
	}
	created, err = s.c.Tenants.Found(ctx, w, p, k,
		flow.Caller{Workspace: w.ID, Person: p.ID, KeyID: localKey}.Did("workspaces.create", "workspace/"+w.ID, now, map[string]any{"name": w.Name}))
	switch {
	case err != nil:
		return "", false, err
	case !created:
		return "", false, s.checkMasterKey(ctx)
	}
	if f.Key != "" {
		return "", true, nil
	}
	return text, true, nil
}

// checkMasterKey finds out at the start, not at the first failing run, that
// the master key is another than before.
func (s *Service) checkMasterKey(ctx context.Context) error {
	spaces, err := s.c.Tenants.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, w := range spaces {
		if _, err := s.space(ctx, w.ID); errors.Is(err, secret.ErrOtherKey) {
			return err
		}
	}
	return nil
}

// localKey is the id of keys that are stored nowhere, and of what this process
// does by itself.
const localKey = "local"

// Local is the owner of the first workspace, as whom this process itself acts:
// an embedded run, the demo. It answers not_found before Bootstrap.
func (s *Service) Local(ctx context.Context) (flow.Caller, error) {
	by, err := s.c.Tenants.Founder(ctx)
	by.KeyID = localKey
	return by, err
}

// LocalKey makes a key for [Service.Local] that is stored nowhere and holds as
// long as this process lives: what server.json gives to commands on the same
// machine.
func (s *Service) LocalKey(ctx context.Context) (string, error) {
	if _, err := s.Local(ctx); err != nil {
		return "", err
	}
	text, err := newKey()
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent[hashKey(text)] = true
	return text, nil
}

// MeView is who the caller is.
type MeView struct {
	Workspace string    `json:"workspace"`
	Person    string    `json:"person"`
	Name      string    `json:"name"`
	Role      flow.Role `json:"role"`
	KeyID     string    `json:"keyId"`
}

// Me says who the caller is.
func (s *Service) Me(ctx context.Context, by flow.Caller, _ *None) (*MeView, error) {
	p, err := s.c.Tenants.Person(ctx, by.Person)
	if err != nil {
		return nil, err
	}
	return &MeView{Workspace: by.Workspace, Person: by.Person, Name: p.Name, Role: by.Role, KeyID: by.KeyID}, nil
}
