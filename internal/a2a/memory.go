package a2a

import "sync"

// maxRemembered bounds the route memory. At the bound it starts afresh: one
// extra attempt per agent is cheaper than book-keeping.
const maxRemembered = 256

// memory holds the route that worked last, by card, URL and purpose. The zero
// value is empty and ready.
type memory struct {
	mu     sync.Mutex
	routes map[memoryKey]Route
}

type memoryKey struct {
	url, hash string
	purpose   Purpose
}

func keyOf(t Target) memoryKey {
	k := memoryKey{url: t.URL, purpose: t.Purpose}
	if t.Card != nil {
		k.hash = t.Card.Hash
	}
	return k
}

func (m *memory) recall(t Target) (Route, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, found := m.routes[keyOf(t)]
	return r, found
}

func (m *memory) remember(t Target, r Route) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := keyOf(t)
	if _, found := m.routes[k]; !found && len(m.routes) >= maxRemembered || m.routes == nil {
		m.routes = map[memoryKey]Route{}
	}
	m.routes[k] = r
}

func (m *memory) forget(t Target) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.routes, keyOf(t))
}
