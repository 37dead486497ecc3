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
// required; one store serves all five interfaces.
type Config struct {
	Tenants    TenantStore
	Keys       KeyStore
	Settings   SettingStore
	Secrets    SecretStore
	Servers    ServerStore
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
	lent    map[keyHash]flow.Caller // keys of this process, stored nowhere
}

// maxKept bounds each of the Service's maps in memory; a full one is emptied.
const maxKept = 4096

// New makes a Service.
func New(c Config) *Service {
	return &Service{c: c, rules: rules(), spaces: map[string]*space{},
		callers: map[keyHash]flow.Caller{}, lent: map[keyHash]flow.Caller{}}
}

// List is a page of a list.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next" doc:"Cursor of the next page; empty at the end."`
}

// None is the input of an operation that takes nothing, and the output of one
// that has nothing to say.
type None struct{}

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
