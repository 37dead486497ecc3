// Package access knows people, workspaces, keys, roles, settings, secrets and
// the MCP servers of a workspace: who a caller is, what it may do and what
// holds for its runs.
package access

import (
	"context"
	"sync"

	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/ident"
	"github.com/longstop-dev/longstop/internal/secret"
)

// Config is what a Service is made of. All members but AllowStdio are
// required; one store serves all eight stores.
type Config struct {
	Tenants    TenantStore
	Keys       KeyStore
	People     PeopleStore
	Audit      AuditStore
	Settings   SettingStore
	Secrets    SecretStore
	Servers    ServerStore
	Versions   Versions
	Keyring    *secret.Keyring
	Cards      Cards
	Egress     Egress
	Clock      flow.Clock
	NewID      ident.Generator
	AllowStdio bool // MCP servers that are commands run on this machine: dev and run only
}

// Service has the operations of this package. It is safe for concurrent use.
// It keeps what it has read in memory, so that two of them on one database do
// not see each other's writes.
type Service struct {
	c     Config
	rules map[string]rule

	writing sync.Mutex // held while a write looks at what another write may change

	mu      sync.Mutex
	written uint64 // grows with every write: what was read before it is not kept
	spaces  map[string]*space
	callers map[keyHash]flow.Caller
	lent    map[keyHash]bool // keys of this process, stored nowhere
	revoked chan struct{}    // closed when keys may have ended, and made anew
}

// maxKept bounds each of the Service's maps in memory; a full one is emptied.
const maxKept = 4096

// New makes a Service.
func New(c Config) *Service {
	return &Service{c: c, rules: rules(), spaces: map[string]*space{},
		callers: map[keyHash]flow.Caller{}, lent: map[keyHash]bool{},
		revoked: make(chan struct{})}
}

// List is a page of a list.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next" doc:"Cursor of the next page; empty at the end."`
}

// None is the input of an operation that takes nothing, and the output of one
// that has nothing to say.
type None struct{}

// ended forgets who calls, because a key or a membership has changed, and
// tells those who are being served.
func (s *Service) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written++
	clear(s.callers)
	close(s.revoked)
	s.revoked = make(chan struct{})
}

// Revocations gives a channel that is closed when keys may have ended: time to
// ask again whether the one in use still holds.
func (s *Service) Revocations() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revoked
}

// forget drops what is kept of a workspace after a write to it.
func (s *Service) forget(workspace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written++
	delete(s.spaces, workspace)
}

// space gives what holds in a workspace, from memory if nothing was written
// since it was read.
func (s *Service) space(ctx context.Context, workspace string) (*space, error) {
	s.mu.Lock()
	known, seen := s.spaces[workspace], s.written
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	read, err := s.readSpace(ctx, workspace)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.written == seen { // else it may be older than a write
		if len(s.spaces) >= maxKept {
			clear(s.spaces)
		}
		s.spaces[workspace] = read
	}
	return read, nil
}
