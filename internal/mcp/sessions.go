package mcp

import (
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longstop-dev/longstop/internal/fair"
)

// sessions bounds the open sessions, in all, of each workspace and of each key.
type sessions struct {
	most fair.Limits
	live func() map[string]*sdk.ServerSession

	mu    sync.Mutex
	seats []*seat // the oldest first
}

// seat is a session that is open, or without an id one that is being opened.
type seat struct {
	id  string
	key fair.Place
}

func newSessions(l Limits, live func() map[string]*sdk.ServerSession) *sessions {
	return &sessions{most: fair.Limits{All: l.Sessions, Group: max(l.Sessions/2, 1), One: l.KeySessions}, live: live}
}

// open makes room for a session of key, and reports whether there is any: a
// key that may have no more loses its oldest. The caller then says which
// session was opened, "" for none.
func (s *sessions) open(key fair.Place) (release func(id string), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.live()
	s.seats = slices.DeleteFunc(s.seats, func(t *seat) bool { return t.id != "" && live[t.id] == nil })
	mine, group, oldest := 0, 0, -1
	for i, t := range s.seats {
		if t.key.Group == key.Group {
			group++
		}
		if t.key == key {
			if mine++; oldest < 0 && t.id != "" {
				oldest = i
			}
		}
	}
	if !fair.More(group, s.most.Group, s.most.All-len(s.seats)) || !fair.More(mine, s.most.One, s.most.Group-group) {
		if oldest < 0 {
			return nil, false
		}
		// In the background: it ends when what it executes has ended.
		go live[s.seats[oldest].id].Close()
		s.seats = slices.Delete(s.seats, oldest, oldest+1)
	}
	own := &seat{key: key}
	s.seats = append(s.seats, own)
	return func(id string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if own.id = id; id == "" {
			s.seats = slices.DeleteFunc(s.seats, func(t *seat) bool { return t == own })
		}
	}, true
}
