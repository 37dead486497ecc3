package turn

import "slices"

// lanes are the places of those who talk to agents. Each agent has a lane of
// its own, so that one that hangs does not keep the others.
type lanes struct {
	most       Limits
	all        int
	workspaces map[string]int
	agents     map[place]int
	queues     map[place][]*entry
	order      []place // those with a queue, in turn
}

// place names a lane.
type place struct{ workspace, agent string }

func laneKey(e *entry) place { return place{e.turn.Workspace, e.turn.Agent} }

func newLanes(most Limits) *lanes {
	return &lanes{most: most, workspaces: map[string]int{}, agents: map[place]int{}, queues: map[place][]*entry{}}
}

// free tells whether the lane may have one place more. Nobody takes the last
// of what is shared: who has some leaves as many to the others, so that a few
// agents that hang do not fill their workspace, nor a few workspaces all.
func (l *lanes) free(k place) bool {
	ofAgent, ofWorkspace := l.agents[k], l.workspaces[k.workspace]
	return more(ofAgent, l.most.Agent, l.most.Workspace-ofWorkspace) && more(ofWorkspace, l.most.Workspace, l.most.All-l.all)
}

// more tells whether who has n places of at most most may have one of the left.
func more(n, most, left int) bool { return n < most && left > 0 && (n == 0 || n < left) }

func (l *lanes) count(k place, n int) {
	l.all += n
	if l.workspaces[k.workspace] += n; l.workspaces[k.workspace] == 0 {
		delete(l.workspaces, k.workspace)
	}
	if l.agents[k] += n; l.agents[k] == 0 {
		delete(l.agents, k)
	}
}

// enter gives the entry a place, or has it wait for one.
func (l *lanes) enter(e *entry) bool {
	k := laneKey(e)
	if len(l.queues[k]) == 0 && l.free(k) {
		l.count(k, 1)
		return true
	}
	if len(l.queues[k]) == 0 {
		l.order = append(l.order, k)
	}
	l.queues[k] = append(l.queues[k], e)
	return false
}

// leave gives a place back, and says who got one for it. Lanes take turns.
func (l *lanes) leave(k place) []*entry {
	l.count(k, -1)
	var got []*entry
	for i := 0; i < len(l.order) && l.all < l.most.All; {
		k := l.order[i]
		if !l.free(k) {
			i++
			continue
		}
		l.count(k, 1)
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
