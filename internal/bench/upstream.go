package bench

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// upstream is an API that counts each run's requests for each step and can
// hold some of them back.
type upstream struct {
	mu    sync.Mutex
	seen  map[string]map[int]int // by run and step
	held  int                    // requests that wait now
	holds func(run string, step int) bool
	free  chan struct{} // closed to let go of what is held
	moved chan struct{} // signalled when something comes
	last  time.Time     // when the last came
	first map[string]time.Time
}

func newUpstream(holds func(run string, step int) bool) *upstream {
	return &upstream{seen: map[string]map[int]int{}, holds: holds, free: make(chan struct{}), moved: make(chan struct{}, 1), first: map[string]time.Time{}}
}

// ServeHTTP answers /{run}/{step}.
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	run := r.PathValue("run")
	step, _ := strconv.Atoi(r.PathValue("step"))
	u.mu.Lock()
	if u.seen[run] == nil {
		u.seen[run] = map[int]int{}
		u.first[run] = now
	}
	u.seen[run][step]++
	u.last = now
	hold, free := u.holds != nil && u.holds(run, step), u.free
	if hold {
		u.held++
	}
	u.mu.Unlock()
	u.poke()
	if hold {
		select {
		case <-free:
		case <-r.Context().Done():
		}
		u.mu.Lock()
		u.held--
		u.mu.Unlock()
		u.poke()
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"ok":true}`))
}

func (u *upstream) poke() {
	select {
	case u.moved <- struct{}{}:
	default:
	}
}

// until waits for something to be true of what came.
func (u *upstream) until(ctx context.Context, limit time.Duration, holds func(*upstream) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		u.mu.Lock()
		ok := holds(u)
		u.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-u.moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// serve serves it; the URL of a step is URL/{run}/{step}.
func (u *upstream) serve() (url string, closed func() error, err error) {
	mux := http.NewServeMux()
	mux.Handle("GET /{run}/{step}", u)
	return serve(mux)
}

// forget begins a new book.
func (u *upstream) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.seen, u.first = map[string]map[int]int{}, map[string]time.Time{}
}

// latest is when the last request came.
func (u *upstream) latest() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.last
}

// times is how often a run's step has come.
func (u *upstream) times(run string, step int) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.seen[run][step]
}

// arrived is when a run's first request came.
func (u *upstream) arrived(run string) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.first[run]
}
