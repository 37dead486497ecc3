package cli

import (
	"strings"

	"github.com/longstop-dev/longstop/internal/show"
)

// names gives who somebody is: the name of the workspace's person with that
// id, and the id itself where there is none, where two have that name, where
// it could be taken for an id, or where this key may not list people. It asks
// for them when the first is looked up. JSON has the ids always.
func names(a *app, s *session) func(id string) string {
	var known map[string]string
	return func(id string) string {
		if known == nil {
			known = map[string]string{}
			if l, err := s.People(a.ctx); err == nil {
				held := map[string]int{}
				for _, p := range l.Items {
					held[p.Name]++
				}
				for _, p := range l.Items {
					if held[p.Name] == 1 && !strings.HasPrefix(p.Name, "person_") {
						known[p.ID] = show.Line(p.Name, 60)
					}
				}
			}
		}
		if name, ok := known[id]; ok {
			return name
		}
		return id
	}
}
