package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Side is the agent's side of a bridge. To is the only place that it calls.
type Side struct {
	Server string // the Longstop server's URL
	Key    string // an API key
	Name   string
	To     string // the agent's origin, with a path below which it serves if there is one
	Clock  flow.Clock
	Jitter func() float64 // from 0 to 1
	// Told hears of what happens: connected, with a nil error, and lost.
	Told func(connected bool, err error, again time.Duration)

	web *http.Client // made by Run: to the server and to the agent
}

// The pauses before a connection is made again.
const (
	firstPause = 500 * time.Millisecond
	mostPause  = 30 * time.Second
)

// Run holds the bridge until ctx ends, over as many connections as it takes.
// It returns what the server refuses for good.
func (s Side) Run(ctx context.Context) error {
	to, err := url.Parse(s.To)
	if err != nil || !isPlace(to) {
		return flow.Errorf(flow.CodeInvalid, "it is no URL of an agent").At("--to").Right("such as http://127.0.0.1:9000")
	}
	pool := &http.Transport{Proxy: http.ProxyFromEnvironment, IdleConnTimeout: 30 * time.Second}
	defer pool.CloseIdleConnections()
	// The key goes to the server and nowhere else, and a request to the agent.
	s.web = &http.Client{Transport: pool, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	pause := firstPause
	for {
		began := s.Clock.Now()
		err := s.hold(ctx, to)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if final(err) {
			return err
		}
		if s.Clock.Now().Sub(began) > time.Minute {
			pause = firstPause
		}
		wait := pause + time.Duration(s.Jitter()*float64(pause)/2)
		s.Told(false, err, wait)
		due, stop := s.Clock.After(wait)
		select {
		case <-due:
		case <-ctx.Done():
		}
		stop()
		pause = min(2*pause, mostPause)
	}
}

// isPlace checks the URL of an agent: a host, perhaps a path, and nothing else.
func isPlace(u *url.URL) bool {
	web := u.Scheme == "http" || u.Scheme == "https"
	return web && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// final tells a refusal that trying again would not mend.
func final(err error) bool {
	switch flow.CodeOf(err) {
	case flow.CodeInvalid, flow.CodeUnauthenticated, flow.CodeForbidden, flow.CodeConflict, flow.CodeNotFound:
		return true
	}
	return false
}

// hold holds the bridge over one connection.
func (s Side) hold(ctx context.Context, to *url.URL) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	alive := make(chan struct{}, 1)
	seen := func() {
		select {
		case alive <- struct{}{}:
		default:
		}
	}
	c, resp, err := websocket.Dial(ctx, strings.TrimRight(s.Server, "/")+"/v1/bridge?name="+url.QueryEscape(s.Name), &websocket.DialOptions{
		HTTPClient: s.web, HTTPHeader: http.Header{"Authorization": {"Bearer " + s.Key}}, Subprotocols: []string{Subprotocol},
		OnPingReceived: func(context.Context, []byte) bool { seen(); return true }})
	if err != nil {
		return refused(resp, err)
	}
	defer c.CloseNow()
	c.SetReadLimit(maxFrame)
	s.Told(true, nil, 0)
	go s.watch(ctx, c, alive)
	w := &worker{side: s, to: to, c: c, cancels: map[uint64]context.CancelFunc{}, seats: make(chan struct{}, maxWaiting)}
	defer w.wg.Wait()
	defer cancel()
	for {
		kind, data, err := read(ctx, c, seen)
		if err != nil {
			if websocket.CloseStatus(err) == statusReplaced {
				return flow.Errorf(flow.CodeConflict, "another connection of yours has taken the bridge").Right("run one side of a bridge, or give this one another name")
			}
			if websocket.CloseStatus(err) == websocket.StatusPolicyViolation {
				return flow.Errorf(flow.CodeUnauthenticated, "the API key holds no longer")
			}
			return flow.Errorf(flow.CodeUnavailable, "the connection is lost").Because(err)
		}
		var a ask
		if kind != websocket.MessageText || json.Unmarshal(data, &a) != nil {
			return flow.Errorf(flow.CodeUnavailable, "the server speaks something else than a bridge")
		}
		w.take(ctx, a)
	}
}

// refused says why a connection was not made.
func refused(resp *http.Response, err error) error {
	if resp == nil || resp.StatusCode == http.StatusSwitchingProtocols || resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
		return flow.Errorf(flow.CodeUnavailable, "the server cannot be reached").Because(err)
	}
	var p struct {
		Code   flow.Code
		Detail string
		Fix    string
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if json.Unmarshal(body, &p) != nil || p.Detail == "" {
		return flow.Errorf(flow.CodeInvalid, "the server answered HTTP %d", resp.StatusCode).At("--endpoint")
	}
	return flow.Errorf(p.Code, "%s", p.Detail).Right(p.Fix)
}

// watch breaks a connection over which nothing comes: the server pings.
func (s Side) watch(ctx context.Context, c *websocket.Conn, alive <-chan struct{}) {
	for {
		due, stop := s.Clock.After(silence)
		select {
		case <-alive:
			stop()
		case <-ctx.Done():
			stop()
			return
		case <-due:
			stop()
			c.CloseNow()
			return
		}
	}
}

// worker carries requests of one connection to the agent.
type worker struct {
	side  Side
	to    *url.URL
	c     *websocket.Conn
	wg    sync.WaitGroup
	seats chan struct{}

	mu      sync.Mutex
	cancels map[uint64]context.CancelFunc
}

// take begins what a frame asks for, or ends what an earlier one did. It does
// not wait.
func (w *worker) take(ctx context.Context, a ask) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.Cancel {
		if stop := w.cancels[a.ID]; stop != nil {
			stop()
		}
		return
	}
	select {
	case w.seats <- struct{}{}:
	default:
		w.wg.Go(func() { w.send(ctx, reply{ID: a.ID, Error: "too many requests at once"}) })
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	w.cancels[a.ID] = cancel
	w.wg.Go(func() {
		defer func() {
			cancel()
			w.mu.Lock()
			delete(w.cancels, a.ID)
			w.mu.Unlock()
			<-w.seats
		}()
		r := w.carry(ctx, a)
		if ctx.Err() == nil {
			w.send(context.WithoutCancel(ctx), r) // a write that is broken off breaks the connection
		}
	})
}

// send writes an answer, within the time that a frame may take.
func (w *worker) send(ctx context.Context, r reply) {
	b, err := json.Marshal(r)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writing(b))
	defer cancel()
	_ = w.c.Write(ctx, websocket.MessageText, b) // the reader notices that it is lost
}

// carry makes one request of the agent: at the place that was given, below its
// path, and nowhere else.
func (w *worker) carry(ctx context.Context, a ask) reply {
	at, err := target(w.to, a.Path)
	if err != nil {
		return reply{ID: a.ID, Error: err.Error()}
	}
	if a.Method != http.MethodGet && a.Method != http.MethodPost {
		return reply{ID: a.ID, Error: "a bridge carries GET and POST"}
	}
	req, err := http.NewRequestWithContext(ctx, a.Method, at, bytes.NewReader(a.Body))
	if err != nil {
		return reply{ID: a.ID, Error: "the request cannot be made"}
	}
	for _, name := range carried() {
		if v := a.Header[name]; v != "" {
			req.Header.Set(name, v)
		}
	}
	resp, err := w.side.web.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return reply{ID: a.ID, Error: err.Error()}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return reply{ID: a.ID, Error: "the agent's answer was cut"}
	}
	if len(body) > maxBody {
		return reply{ID: a.ID, Error: fmt.Sprintf("the agent's answer is larger than %d bytes", maxBody)}
	}
	return reply{ID: a.ID, Status: resp.StatusCode, Header: pick(resp.Header), Body: body}
}

// target is the URL of a path at the agent: a path never leads elsewhere.
func target(to *url.URL, path string) (string, error) {
	p, err := url.ParseRequestURI(path)
	if err != nil || !strings.HasPrefix(path, "/") || p.Host != "" || p.Scheme != "" {
		return "", errors.New("that is no path")
	}
	if strings.Contains(p.Path+"/", "/../") || strings.Contains(p.Path, `\`) {
		return "", errors.New("the path leads elsewhere")
	}
	out := *to
	out.Path = strings.TrimRight(to.Path, "/") + p.Path
	out.RawPath, out.RawQuery = strings.TrimRight(to.EscapedPath(), "/")+p.EscapedPath(), p.RawQuery
	return out.String(), nil
}
