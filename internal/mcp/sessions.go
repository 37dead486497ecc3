package mcp

import (
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessions bounds the open sessions, in all and of each key.
type sessions struct {
	most, ofKey int
	live        func() map[string]*sdk.ServerSession

	mu      sync.Mutex
	opening int
	seats   []seat // the oldest first
}

type seat struct{ id, key string }

func newSessions(l Limits, live func() map[string]*sdk.ServerSession) *sessions {
	return &sessions{most: l.Sessions, ofKey: l.KeySessions, live: live}
}

// open makes room for a session of key, and reports whether there is any. The
// caller then says which session was opened, "" for none.
func (s *sessions) open(key string) (release func(id string), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.live()
	s.seats = slices.DeleteFunc(s.seats, func(t seat) bool { return live[t.id] == nil })
	mine, oldest := 0, -1
	for i, t := range s.seats {
		if t.key == key {
			if mine++; oldest < 0 {
				oldest = i
			}
		}
	}
	if mine >= s.ofKey {
		// In the background: it ends when what it executes has ended.
		go live[s.seats[oldest].id].Close()
		s.seats = slices.Delete(s.seats, oldest, oldest+1)
	}
	if len(s.seats)+s.opening >= s.most {
		return nil, false
	}
	s.opening++
	return func(id string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.opening--
		if id != "" {
			s.seats = append(s.seats, seat{id, key})
		}
	}, true
}
