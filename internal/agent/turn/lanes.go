package turn

import (
	"slices"

	"github.com/longstop-dev/longstop/internal/fair"
)

// lanes are the places of those who talk to agents. Each agent has a lane of
// its own, so that one that hangs does not keep the others.
type lanes struct {
	places *fair.Places
	queues map[fair.Place][]*entry
	order  []fair.Place // those with a queue, in turn
}

func laneKey(e *entry) fair.Place { return fair.Place{Group: e.turn.Workspace, One: e.turn.Agent} }

func newLanes(most Limits) *lanes {
	return &lanes{places: fair.New(fair.Limits{All: most.All, Group: most.Workspace, One: most.Agent}), queues: map[fair.Place][]*entry{}}
}

// enter gives the entry a place, or has it wait for one.
func (l *lanes) enter(e *entry) bool {
	k := laneKey(e)
	if len(l.queues[k]) == 0 {
		if l.places.Take(k) {
			return true
		}
		l.order = append(l.order, k)
	}
	l.queues[k] = append(l.queues[k], e)
	return false
}

// leave gives a place back, and says who got one for it. Lanes take turns.
func (l *lanes) leave(k fair.Place) []*entry {
	l.places.Give(k)
	var got []*entry
	for i := 0; i < len(l.order) && !l.places.Full(); {
		k := l.order[i]
		if !l.places.Take(k) {
			i++
			continue
		}
		got = append(got, l.queues[k][0])
		l.order = slices.Delete(l.order, i, i+1)
		if l.queues[k] = l.queues[k][1:]; len(l.queues[k]) > 0 {
			l.order = append(l.order, k) // behind the others
		} else {
			delete(l.queues, k)
		}
	}
	return got
}
