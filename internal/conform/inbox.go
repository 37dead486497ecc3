package conform

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Inbox is a small server with the paths of Longstop's own inbox, for an agent
// that polls: all cases wait in it from the beginning. It is not Longstop: it
// knows nothing but these cases and one key.
type Inbox struct {
	URL string // where it serves
	Key string // that the agent must send
	For time.Duration

	listener net.Listener
	server   *http.Server

	mu      sync.Mutex
	judge   *judge
	waiting []*waiting
	changed chan struct{} // closed and made anew with every change
	each    func(Result)
}

// waiting is a case in the inbox.
type waiting struct {
	kase     Case
	run      string
	opened   time.Time
	expires  time.Time
	read     time.Time // when the agent last read it; zero if it has not
	result   Result
	answered bool // with an action that would be applied
}

// maxAction bounds what is read of an action, in bytes.
const maxAction = 4 << 20

// OpenInbox serves an inbox at an address such as "127.0.0.1:0". The agent has
// the given time for all of it.
func OpenInbox(address string, during time.Duration) (*Inbox, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, flow.Errorf(flow.CodeUnavailable, "the inbox cannot be served at %s", address).At("--listen").Because(err)
	}
	return &Inbox{URL: "http://" + l.Addr().String(), Key: "longstop_conform_" + strings.ToLower(rand.Text()), For: during,
		listener: l, changed: make(chan struct{})}, nil
}

// run serves until every case is answered, or the time is over.
func (b *Inbox) run(ctx context.Context, all []Case, j *judge, each func(string, Result, int, int)) (Transport, error) {
	ctx, cancel := context.WithTimeout(ctx, b.For)
	defer cancel()
	began := time.Now()
	done := make(chan struct{})
	b.mu.Lock()
	b.judge = j
	for i, c := range all {
		b.waiting = append(b.waiting, &waiting{kase: c, run: fmt.Sprintf("run_conform_%02d", i+1), opened: began.UTC(), expires: began.Add(b.For).UTC(),
			result: Result{Case: c.Name, About: c.About}})
	}
	count := 0
	b.each = func(r Result) {
		count++
		each(TransportInbox, r, count, len(all))
		if count == len(all) {
			close(done)
		}
	}
	b.mu.Unlock()
	b.server = &http.Server{Handler: b.routes(), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	served := make(chan error, 1)
	go func() { served <- b.server.Serve(b.listener) }()
	select {
	case <-done:
	case <-ctx.Done():
	case err := <-served:
		return Transport{}, flow.Errorf(flow.CodeUnavailable, "the inbox cannot be served").Because(err)
	}
	stop, end := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer end()
	cancel() // whoever waits for a change goes away
	_ = b.server.Shutdown(stop)
	return b.transport(), nil
}

// transport is what has come of it.
func (b *Inbox) transport() Transport {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := Transport{Name: TransportInbox, Results: []Result{}}
	for _, w := range b.waiting {
		if !w.answered && len(w.result.Problems) == 0 {
			w.result.Problems = []Problem{{KindTime, fmt.Sprintf("it was not answered within %s", b.For)}}
		}
		t.Results = append(t.Results, w.result)
	}
	return t
}

func (b *Inbox) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/recovery/pending", b.pending)
	mux.HandleFunc("GET /v1/recovery/{run}/{step}", b.input)
	mux.HandleFunc("POST /v1/recovery/{run}/{step}/action", b.action)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(key), []byte(b.Key)) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="longstop"`)
			problem(w, http.StatusUnauthorized, "the API key is not known here")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// item is an entry of the page, as Longstop writes it.
type item struct {
	RunID     string    `json:"runId"`
	StepIndex int       `json:"stepIndex"`
	Iteration string    `json:"iteration"`
	Workflow  string    `json:"workflow"`
	Title     string    `json:"title"`
	Type      string    `json:"type"`
	Error     string    `json:"error"`
	OpenedAt  time.Time `json:"openedAt"`
	ExpiresAt time.Time `json:"expiresAt"`
	ClaimedBy *string   `json:"claimedBy"`
}

func (b *Inbox) pending(w http.ResponseWriter, r *http.Request) {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || limit < 1 || limit > 500 {
		limit = 50
	}
	wait, _ := strconv.Atoi(r.URL.Query().Get("wait"))
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(min(max(wait, 0), 50))*time.Second)
	defer cancel()
	for {
		page, tag, changed := b.page(limit)
		same := r.Header.Get("If-None-Match") == tag
		empty := r.Header.Get("If-None-Match") == "" && len(page) == 0
		if (same || empty) && ctx.Err() == nil && wait > 0 {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
			}
		}
		w.Header().Set("ETag", tag)
		if same {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		writeJSON(w, http.StatusOK, map[string]any{"items": page, "next": ""})
		return
	}
}

func (b *Inbox) page(limit int) (page []item, tag string, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	page = []item{}
	for _, w := range b.waiting {
		if w.answered || len(page) == limit {
			continue
		}
		in := w.kase.Input
		short := []rune(in.Error)
		page = append(page, item{RunID: w.run, StepIndex: in.Step.Index, Workflow: "conform", Title: in.Step.Title, Type: in.Step.Type,
			Error: string(short[:min(len(short), 200)]), OpenedAt: w.opened, ExpiresAt: w.expires})
	}
	sum := sha256.Sum256(text(page))
	return page, `"` + hex.EncodeToString(sum[:12]) + `"`, b.changed
}

// find gives the case that a request names, and answers 404 for none.
func (b *Inbox) find(w http.ResponseWriter, r *http.Request) *waiting {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.waiting, func(c *waiting) bool {
		return c.run == r.PathValue("run") && strconv.Itoa(c.kase.Input.Step.Index) == r.PathValue("step")
	})
	if i < 0 {
		problem(w, http.StatusNotFound, "no such case is in this inbox")
		return nil
	}
	return b.waiting[i]
}

func (b *Inbox) input(w http.ResponseWriter, r *http.Request) {
	c := b.find(w, r)
	if c == nil {
		return
	}
	b.mu.Lock()
	c.read = time.Now()
	b.mu.Unlock()
	writeJSON(w, http.StatusOK, c.kase.Input)
}

// action judges an answer. One that would not be applied may be put right, as
// in Longstop; one that would closes the case.
func (b *Inbox) action(w http.ResponseWriter, r *http.Request) {
	c := b.find(w, r)
	if c == nil {
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAction))
	if err != nil {
		problem(w, http.StatusRequestEntityTooLarge, "the action is too large")
		return
	}
	result := b.judge.answered(r.Context(), c.kase, body)
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.answered {
		problem(w, http.StatusConflict, "the case was answered already with "+string(c.result.Type))
		return
	}
	result.DurationMS = 0
	if !c.read.IsZero() {
		result.DurationMS = float64(time.Since(c.read).Microseconds()) / 1000
	}
	c.result = result
	if i := slices.IndexFunc(result.Problems, func(p Problem) bool { return p.Kind == KindContract }); i >= 0 {
		problem(w, http.StatusUnprocessableEntity, result.Problems[i].Message)
		return
	}
	c.answered = true
	close(b.changed)
	b.changed = make(chan struct{})
	b.each(result)
	writeJSON(w, http.StatusOK, map[string]any{"runId": c.run, "stepIndex": c.kase.Input.Step.Index, "iteration": "", "gateId": "gate_" + c.run,
		"caseId": "case_" + c.run, "applied": result.Type, "appliedAt": time.Now().UTC()})
}

func problem(w http.ResponseWriter, status int, detail string) {
	b, _ := json.Marshal(map[string]any{"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail})
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(b) // the agent may be gone
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text(v)) // the agent may be gone
}
