package bridge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/longstop-dev/longstop/internal/flow"
)

// ErrAway says that nobody holds the bridge just now.
var ErrAway = errors.New("the bridge is not connected")

var errGone = errors.New("the bridge went away before the answer")

// Hub is the server's side: who holds which bridge. It is safe for concurrent
// use.
type Hub struct {
	clock flow.Clock

	mu    sync.Mutex
	links map[place]*link
}

// place is a bridge of a workspace.
type place struct{ workspace, name string }

// Link describes a bridge that is connected.
type Link struct {
	Name   string    `json:"name"`
	Card   string    `json:"card" doc:"How push names the agent behind it: bridge:<name>."`
	Person string    `json:"person" doc:"Who holds it."`
	Since  time.Time `json:"since"`
}

// List is all bridges of a workspace that are connected.
type List struct {
	Items []Link `json:"items"`
	Next  string `json:"next" doc:"Always empty."`
}

// None is the input of an operation that takes nothing.
type None struct{}

// ConnectIn names the bridge that the caller's side is to hold.
type ConnectIn struct {
	Name string `query:"name" doc:"Letters, digits, dots, dashes and underscores, at most 64."`
}

// NewHub makes a Hub that nobody is connected to.
func NewHub(clock flow.Clock) *Hub { return &Hub{clock: clock, links: map[place]*link{}} }

// Bridges lists those that are connected, by name.
func (h *Hub) Bridges(_ context.Context, by flow.Caller, _ *None) (*List, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := &List{Items: []Link{}}
	for at, l := range h.links {
		if at.workspace == by.Workspace {
			out.Items = append(out.Items, Link{Name: at.name, Card: Scheme + at.name, Person: l.by.Person, Since: l.since})
		}
	}
	slices.SortFunc(out.Items, func(a, b Link) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// Connect is the operation by which a bridge is held: over a WebSocket only.
func (h *Hub) Connect(context.Context, flow.Caller, *ConnectIn) (*List, error) {
	return nil, flow.Errorf(flow.CodeInvalid, "a bridge is held over a WebSocket").Right("longstop bridge --name N --to URL")
}

// Free says whether a caller may hold a bridge: nobody does, or they do
// themselves, with a connection that is perhaps dead.
func (h *Hub) Free(by flow.Caller, name string) error {
	if !ValidName(name) {
		return badName(name)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.free(by, name)
}

func badName(name string) error {
	return flow.Errorf(flow.CodeInvalid, "%q is no name of a bridge", clip(name)).At("name").
		Right("letters, digits, dots, dashes and underscores, at most 64")
}

// free is Free with the lock held and a name that is one.
func (h *Hub) free(by flow.Caller, name string) error {
	if l := h.links[place{by.Workspace, name}]; l != nil && l.by.Person != by.Person {
		return flow.Errorf(flow.CodeConflict, "the bridge %s is held by %s", name, l.by.Person).At("name").Right("another name, or have them let it go")
	}
	return nil
}

// Hold serves a bridge over a connection until that ends; holds says whether
// the key still does. The holder's older connection is closed.
func (h *Hub) Hold(ctx context.Context, c *websocket.Conn, by flow.Caller, name string, holds func(context.Context) error) error {
	if !ValidName(name) {
		return badName(name)
	}
	l := &link{c: c, by: by, since: h.clock.Now(), waiting: map[uint64]chan reply{}, gone: make(chan struct{})}
	at := place{by.Workspace, name}
	h.mu.Lock()
	if err := h.free(by, name); err != nil { // asked and taken at once
		h.mu.Unlock()
		return err
	}
	old := h.links[at]
	h.links[at] = l
	h.mu.Unlock()
	if old != nil {
		// It is perhaps dead, and then closing it takes its time.
		go old.c.Close(statusReplaced, "another connection of yours holds the bridge")
	}
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.links[at] == l {
			delete(h.links, at)
		}
	}()
	return l.serve(ctx, holds)
}

// Do sends a request over the bridge of a workspace with a name; of its URL
// only the path and the query count. The answer's body is read already.
func (h *Hub) Do(workspace, name string, req *http.Request) (*http.Response, error) {
	h.mu.Lock()
	l := h.links[place{workspace, name}]
	h.mu.Unlock()
	if l == nil {
		return nil, ErrAway
	}
	return l.do(req)
}

// link is one connection that holds a bridge.
type link struct {
	c     *websocket.Conn
	by    flow.Caller
	since time.Time
	gone  chan struct{}
	heard atomic.Bool  // something came since it was last looked at
	busy  atomic.Int32 // frames that are being written, each within its bound

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan reply
}

// serve reads answers until the connection ends.
func (l *link) serve(ctx context.Context, holds func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer close(l.gone)
	l.c.SetReadLimit(maxFrame)
	lost := make(chan error, 1)
	go func() { lost <- l.watch(ctx, holds); l.c.CloseNow() }()
	for {
		kind, data, err := read(ctx, l.c, func() { l.heard.Store(true) })
		if err != nil {
			select {
			case why := <-lost:
				return why
			default:
				return nil // it has gone
			}
		}
		var r reply
		if kind != websocket.MessageText || json.Unmarshal(data, &r) != nil {
			return flow.Errorf(flow.CodeInvalid, "that is no frame of a bridge")
		}
		l.mu.Lock()
		ch := l.waiting[r.ID]
		delete(l.waiting, r.ID)
		l.mu.Unlock()
		if ch != nil { // else it was given up, or made up
			ch <- r
		}
	}
}

// watch pings, so that a connection that is half open is noticed, and sees
// that the key still holds. A ping and its pong come behind the frames that
// are on their way, so those are signs of life, too.
func (l *link) watch(ctx context.Context, holds func(context.Context) error) error {
	tick := time.NewTicker(pingEvery) // of the wire, not of any rule
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := holds(ctx); err != nil {
			return err
		}
		wait, cancel := context.WithTimeout(ctx, pingEvery)
		err := l.c.Ping(wait)
		cancel()
		if heard := l.heard.Swap(false); err != nil && !heard && l.busy.Load() == 0 {
			return nil
		}
	}
}

// write sends a frame. A context that ends in the middle of a frame breaks the
// connection, and every other call with it: so the frame has a bound of its
// own, and is written on when its call is given up.
func (l *link) write(ctx context.Context, a ask) error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	written := make(chan error, 1)
	go func() {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), writing(b))
		defer cancel()
		l.busy.Add(1)
		defer l.busy.Add(-1)
		written <- l.c.Write(limit, websocket.MessageText, b)
	}()
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// do asks over the link and waits for the answer, the end of the link, or that
// of the request.
func (l *link) do(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		defer req.Body.Close()
		var err error
		if body, err = io.ReadAll(io.LimitReader(req.Body, maxBody+1)); err != nil {
			return nil, err
		}
		if len(body) > maxBody {
			return nil, flow.Errorf(flow.CodeTooLarge, "the request is larger than a bridge carries")
		}
	}
	id, ch, err := l.enter()
	if err != nil {
		return nil, err
	}
	a := ask{ID: id, Method: req.Method, Path: req.URL.RequestURI(), Header: pick(req.Header), Body: body}
	if err := l.write(req.Context(), a); err != nil {
		if req.Context().Err() != nil { // the frame is written on, so its end is told, too
			return nil, l.giveUp(req.Context(), id)
		}
		l.leave(id)
		return nil, errGone
	}
	select {
	case r := <-ch:
		if r.Error != "" {
			return nil, errors.New("behind the bridge: " + clip(r.Error))
		}
		return r.response(req), nil
	case <-l.gone:
		l.leave(id)
		return nil, errGone
	case <-req.Context().Done():
		return nil, l.giveUp(req.Context(), id)
	}
}

// giveUp tells the agent's side that nobody waits for a request any more, as a
// courtesy, and gives the reason.
func (l *link) giveUp(ctx context.Context, id uint64) error {
	l.leave(id)
	go l.write(context.WithoutCancel(ctx), ask{ID: id, Cancel: true})
	return ctx.Err()
}

// enter gives a request its number and the channel of its answer.
func (l *link) enter() (uint64, chan reply, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= maxWaiting {
		return 0, nil, errors.New("too many requests are under way over the bridge")
	}
	l.last++
	ch := make(chan reply, 1)
	l.waiting[l.last] = ch
	return l.last, ch, nil
}

// leave forgets a request that nobody waits for any more.
func (l *link) leave(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, id)
}

// response is the answer as a client of HTTP has it: what does not go through a
// bridge is left out.
func (r reply) response(req *http.Request) *http.Response {
	header := http.Header{}
	for _, name := range carried() {
		if v := r.Header[name]; v != "" && len(v) < 1024 {
			header.Set(name, v)
		}
	}
	status := r.Status
	if status < 100 || status > 599 {
		status = http.StatusBadGateway
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(bytes.NewReader(r.Body)), ContentLength: int64(len(r.Body)), Request: req}
}

func clip(s string) string {
	if len(s) > 200 {
		return s[:200]
	}
	return s
}
