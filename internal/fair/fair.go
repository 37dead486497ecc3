// Package fair divides places among those who share them, so that whoever
// takes all that it can get leaves some to the others.
package fair

import "sync"

// More tells whether who has n places of at most most may have one of the left.
// Nobody takes the last of what is shared: who has some leaves as many to the
// others.
func More(n, most, left int) bool { return n < most && left > 0 && (n == 0 || n < left) }

// Limits are how many places there are: in all, for a group, and for one of a
// group. A group gets half of all at most, whatever its limit: so much is left
// to others.
type Limits struct{ All, Group, One int }

// Place names who takes a place.
type Place struct{ Group, One string }

// Places are places of two levels, such as workspaces and their keys. It is
// safe for concurrent use.
type Places struct {
	most Limits

	mu     sync.Mutex
	all    int
	groups map[string]int
	ones   map[Place]int
}

// New makes places that are all free.
func New(most Limits) *Places {
	return &Places{most: most, groups: map[string]int{}, ones: map[Place]int{}}
}

// Take takes a place, and reports whether there is one to be had.
func (p *Places) Take(of Place) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	group, one := p.groups[of.Group], p.ones[of]
	if !More(group, p.most.Group, p.most.All-p.all) || !More(one, p.most.One, p.most.Group-group) {
		return false
	}
	p.all, p.groups[of.Group], p.ones[of] = p.all+1, group+1, one+1
	return true
}

// Give gives back a place that was taken.
func (p *Places) Give(of Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.groups[of.Group]--; p.groups[of.Group] == 0 {
		delete(p.groups, of.Group)
	}
	if p.ones[of]--; p.ones[of] == 0 {
		delete(p.ones, of)
	}
}

// Full reports whether no place is left for anybody.
func (p *Places) Full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all >= p.most.All
}
