package notify_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/egress"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/flow/flowtest"
	"github.com/longstop-dev/longstop/internal/ident"
	"github.com/longstop-dev/longstop/internal/notify"
	"github.com/longstop-dev/longstop/internal/pgtest"
	masks "github.com/longstop-dev/longstop/internal/secret"
	"github.com/longstop-dev/longstop/internal/store"
)

func secret() string { return "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" }

// The example of the Standard Webhooks convention.
func TestTheSignatureIsTheConventions(t *testing.T) {
	t.Parallel()
	key, err := notify.ParseSecret(secret())
	if err != nil {
		t.Fatal(err)
	}
	got := notify.Signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 999), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, bad := range []string{"", "whsec_", "whsec_c2hvcnQ=", "whsec_***", strings.Repeat("A", 92), "Bearer " + secret()} {
		if _, err := notify.ParseSecret(bad); flow.CodeOf(err) != flow.CodeInvalid {
			t.Errorf("%q: got %v, want invalid", bad, err)
		}
	}
}

// got is a delivery as the receiver saw it.
type got struct {
	id, body string
	at       time.Time
}

// receiver verifies what it gets, as receivers do.
type receiver struct {
	*httptest.Server
	t     *testing.T
	mu    sync.Mutex
	all   []got
	came  chan got
	reply func(n int, w http.ResponseWriter, r *http.Request) // the n-th delivery, from 1; nil answers 204
}

func newReceiver(t *testing.T, reply func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	t.Helper()
	r := &receiver{t: t, came: make(chan got, 20000), reply: reply}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP checks the signature over the raw bytes.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender broke off
	}
	var seconds int64
	fmt.Sscan(req.Header.Get("webhook-timestamp"), &seconds)
	at := time.Unix(seconds, 0)
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret(), "whsec_"))
	if want := notify.Signature(key, req.Header.Get("webhook-id"), at, body); req.Header.Get("webhook-signature") != want || req.Header.Get("content-type") != "application/json" {
		r.t.Errorf("a delivery: got headers %v, want signature %s", req.Header, want)
	}
	d := got{req.Header.Get("webhook-id"), string(body), at}
	r.mu.Lock()
	r.all = append(r.all, d)
	n := len(r.all)
	r.mu.Unlock()
	if r.reply != nil {
		r.reply(n, w, req)
	} else {
		w.WriteHeader(http.StatusNoContent)
	}
	r.came <- d
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// bed is a courier on a real store, behind a real egress guard.
type bed struct {
	t       *testing.T
	db      store.Options
	store   *store.Store
	clock   *flowtest.Clock
	courier *notify.Courier
	settled chan flow.Notice
	open    bool

	mu      sync.Mutex
	targets map[string]flow.NoticeTarget
	masker  *masks.Masker
}

// outbox tells the test what was settled.
type outbox struct {
	*store.Store
	b *bed
}

func (o outbox) SettleNotice(ctx context.Context, n flow.Notice) error {
	err := o.Store.SettleNotice(ctx, n)
	o.b.settled <- n
	return err
}

// NoticeTarget gives the workspace's receiver.
func (b *bed) NoticeTarget(_ context.Context, workspace string) (flow.NoticeTarget, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.targets[workspace], nil
}

// Masker knows what is a secret now.
func (b *bed) Masker(context.Context, string) (*masks.Masker, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.masker, nil
}

func (b *bed) send(workspace, url string) {
	key, err := notify.ParseSecret(secret())
	if err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets[workspace] = flow.NoticeTarget{URL: url, Secret: key}
}

func newBed(t *testing.T, db store.Options) *bed {
	t.Helper()
	b := &bed{t: t, db: db, clock: flowtest.NewClock(time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)), settled: make(chan flow.Notice, 20000),
		open: true, targets: map[string]flow.NoticeTarget{}}
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *bed) start() {
	b.t.Helper()
	var err error
	if b.store, err = store.Open(context.Background(), b.db); err != nil {
		b.t.Fatal(err)
	}
	guard, err := egress.New(egress.Policy{AllowPrivate: b.open})
	if err != nil {
		b.t.Fatal(err)
	}
	b.courier = notify.New(notify.Config{Outbox: outbox{b.store, b}, Targets: b, HTTP: guard.Client(egress.ClientOptions{}), Clock: b.clock,
		NewID: ident.New, Log: slog.New(slog.DiscardHandler), Timeout: 300 * time.Millisecond})
	b.courier.Start()
}

func (b *bed) stop() {
	if b.store == nil {
		return
	}
	b.courier.Stop()
	if err := b.store.Close(); err != nil {
		b.t.Errorf("close: %v", err)
	}
	b.store = nil
}

// write stores n notices with the change that they are about.
func (b *bed) write(workspace string, n int) {
	b.t.Helper()
	r := flow.Run{ID: ident.New("run"), Workspace: workspace, Version: 1, Status: flow.RunFailed, Input: []byte("{}"), CreatedAt: b.clock.Now()}
	c := flow.Change{Run: r}
	for range n {
		c.Notices = append(c.Notices, flow.Notice{ID: ident.New("msg"), Workspace: workspace, RunID: r.ID, Type: flow.EventRunFailed,
			Body: []byte(`{"type":"run:failed","é":"ü"}`), State: flow.NoticeWaiting, CreatedAt: b.clock.Now(), DueAt: b.clock.Now()})
	}
	if err := b.store.Apply(b.t.Context(), c); err != nil {
		b.t.Fatal(err)
	}
	b.courier.Poke()
}

// next waits for the next notice that was tried.
func (b *bed) next() flow.Notice {
	b.t.Helper()
	select {
	case n := <-b.settled:
		return n
	case <-time.After(20 * time.Second):
		b.t.Fatal("no notice was tried")
		return flow.Notice{}
	}
}

func onEach(t *testing.T, test func(t *testing.T, b *bed)) {
	t.Parallel()
	for name, empty := range map[string]func(*testing.T) store.Options{
		"sqlite":   func(t *testing.T) store.Options { return store.Options{Path: filepath.Join(t.TempDir(), "t.db")} },
		"postgres": func(t *testing.T) store.Options { return store.Options{URL: pgtest.URL(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newBed(t, empty(t)))
		})
	}
}

func TestANoticeArrivesOnce(t *testing.T) {
	onEach(t, func(t *testing.T, b *bed) {
		r := newReceiver(t, nil)
		b.send("ws", r.URL)
		b.write("ws", 1)
		n := b.next()
		if d := <-r.came; d.id != n.ID || d.body != `{"type":"run:failed","é":"ü"}` || !d.at.Equal(b.clock.Now()) {
			t.Errorf("got %+v, want notice %s byte for byte", d, n.ID)
		}
		if n.State != flow.NoticeSent || n.Tries != 1 || n.Status != 204 || n.Error != "" {
			t.Errorf("got %+v, want it sent", n)
		}
		b.stop()
		b.start()
		b.write("ws", 1)
		if b.next(); r.count() != 2 {
			t.Errorf("after a restart: got %d deliveries, want the new one only", r.count())
		}
	})
}

func TestAFailedNoticeIsTriedAgain(t *testing.T) {
	onEach(t, func(t *testing.T, b *bed) {
		r := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 2 {
				w.Header().Set("Retry-After", "600")
			}
			if n < 4 {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		b.send("ws", r.URL)
		b.write("ws", 1)
		first := b.next()
		if pause := first.DueAt.Sub(b.clock.Now()); first.State != flow.NoticeWaiting || first.Error != "HTTP 500: Internal Server Error" || pause < 5*time.Second || pause > 6*time.Second {
			t.Fatalf("got %+v, want it to wait 5 s", first)
		}
		b.clock.Advance(first.DueAt.Sub(b.clock.Now()))
		second := b.next()
		if pause := second.DueAt.Sub(b.clock.Now()); pause != 10*time.Minute || second.ID != first.ID {
			t.Errorf("with Retry-After 600: got a pause of %s", pause)
		}
		b.stop() // what waits outlives the process
		b.clock.Advance(10 * time.Minute)
		b.start()
		third := b.next()
		b.clock.Advance(third.DueAt.Sub(b.clock.Now()))
		if n := b.next(); n.State != flow.NoticeSent || n.Tries != 4 || r.count() != 4 {
			t.Errorf("got %+v after %d deliveries, want it sent with the fourth", n, r.count())
		}
		for _, d := range r.all {
			if d.id != first.ID {
				t.Errorf("a try had the id %s, want %s for all", d.id, first.ID)
			}
		}
	})
}

// What has become a secret since a notice was written is masked at the next
// try, under the signature of what is sent.
func TestANoticeIsMaskedAtEachTry(t *testing.T) {
	onEach(t, func(t *testing.T, b *bed) {
		r := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		b.send("ws", r.URL)
		b.write("ws", 1)
		first := b.next()
		b.mu.Lock()
		b.masker = masks.NewMasker(map[string]string{"late": "run:failed"}, nil)
		b.mu.Unlock()
		b.clock.Advance(first.DueAt.Sub(b.clock.Now()))
		b.next()
		for _, want := range []string{"run:failed", "[secret:late]"} {
			if d := <-r.came; d.body != `{"type":"`+want+`","é":"ü"}` {
				t.Errorf("got %s, want the type %s", d.body, want)
			}
		}
	})
}

func TestANoticeIsGivenUp(t *testing.T) {
	t.Parallel()
	b := newBed(t, store.Options{Path: filepath.Join(t.TempDir(), "t.db")})
	r := newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	b.send("ws", r.URL)
	began := b.clock.Now()
	b.write("ws", 1)
	for n := b.next(); n.State == flow.NoticeWaiting; n = b.next() {
		b.clock.Advance(n.DueAt.Sub(b.clock.Now()))
	}
	if took := b.clock.Now().Sub(began); took < 20*time.Hour || took > 30*time.Hour || r.count() != 11 {
		t.Errorf("given up after %s and %d tries, want about a day and 11", took, r.count())
	}
	gone := newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	b.send("ws", gone.URL)
	b.write("ws", 1)
	if n := b.next(); n.State != flow.NoticeGivenUp || n.Tries != 1 {
		t.Errorf("after 410: got %+v, want it given up", n)
	}
	b.mu.Lock()
	delete(b.targets, "ws")
	b.mu.Unlock()
	b.write("ws", 1)
	if n := b.next(); n.State != flow.NoticeGivenUp || !strings.Contains(n.Error, "not set any more") {
		t.Errorf("without a receiver: got %+v, want it given up", n)
	}
}

func TestBadReceivers(t *testing.T) {
	t.Parallel()
	innocent := newReceiver(t, nil)
	for name, tc := range map[string]struct {
		url    func(t *testing.T) string
		closed bool // the guard opens no private address
		says   string
	}{
		"redirects": {func(t *testing.T) string {
			return newReceiver(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, innocent.URL, http.StatusTemporaryRedirect)
			}).URL
		}, false, "HTTP 307: redirects are not followed"},
		"hangs": {func(t *testing.T) string {
			return newReceiver(t, func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }).URL
		}, false, "no answer within"},
		"is private":   {func(*testing.T) string { return innocent.URL + "/?key=s3cr3t" }, true, "not sent: "},
		"is not there": {func(*testing.T) string { return "http://127.0.0.1:1/s3cr3t" }, false, "cannot be reached"},
		"is metadata":  {func(*testing.T) string { return "http://169.254.169.254/s3cr3t" }, false, "never called"},
		"breaks off": {func(t *testing.T) string {
			return newReceiver(t, func(int, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }).URL
		}, false, "broke off"},
		"talks for ever": {func(t *testing.T) string {
			return newReceiver(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					if _, err := w.Write(make([]byte, 1<<10)); err != nil {
						return
					}
				}
			}).URL
		}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, store.Options{Path: filepath.Join(t.TempDir(), "t.db")})
			b.stop()
			b.open = !tc.closed
			b.start()
			b.send("ws", tc.url(t))
			b.write("ws", 1)
			n := b.next()
			if !strings.Contains(n.Error, tc.says) || strings.Contains(n.Error, "s3cr3t") || (tc.says == "") != (n.State == flow.NoticeSent) {
				t.Errorf("got %s %q, want %q and no URL", n.State, n.Error, tc.says)
			}
		})
	}
	t.Cleanup(func() {
		if innocent.count() != 0 {
			t.Errorf("the redirect's aim got %d deliveries, want none", innocent.count())
		}
	})
}

// TestADeadReceiverHoldsNobodyUp has one workspace's receiver hang on
// thousands of notices while another's are sent.
func TestADeadReceiverHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	b := newBed(t, store.Options{Path: filepath.Join(t.TempDir(), "t.db")})
	dead := newReceiver(t, func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	good := newReceiver(t, nil)
	b.send("dead", dead.URL)
	b.send("good", good.URL)
	b.write("dead", 5000)
	const many = 500
	b.write("good", many)
	seen := map[string]bool{}
	for len(seen) < many {
		if n := b.next(); n.Workspace == "good" {
			if n.State != flow.NoticeSent || seen[n.ID] {
				t.Fatalf("got %+v, want each sent once", n)
			}
			seen[n.ID] = true
		}
	}
	if got := dead.count(); got > 200 {
		t.Errorf("the dead receiver was tried %d times meanwhile, want few", got)
	}
}

func TestNoticesAreShownAndTried(t *testing.T) {
	t.Parallel()
	b := newBed(t, store.Options{Path: filepath.Join(t.TempDir(), "t.db")})
	by := flow.Caller{Workspace: "ws", Person: "p"}
	if _, err := b.courier.NoticesTest(t.Context(), by, nil); flow.CodeOf(err) != flow.CodeInvalid || !strings.Contains(err.Error(), "notify.url") {
		t.Errorf("without a receiver: got %v, want invalid that names the setting", err)
	}
	r := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 2 {
			w.WriteHeader(http.StatusTeapot)
		}
	})
	b.send("ws", r.URL)
	for _, want := range []notify.TestView{{Delivered: true, Status: 200}, {Status: 418, Error: "HTTP 418: I'm a teapot"}} {
		v, err := b.courier.NoticesTest(t.Context(), by, nil)
		if err != nil || v.Delivered != want.Delivered || v.Status != want.Status || v.Error != want.Error {
			t.Errorf("test: got %+v, %v, want %+v", v, err, want)
		}
	}
	b.write("ws", 3)
	for range 3 {
		b.next()
	}
	first, err := b.courier.NoticesList(t.Context(), by, &notify.NoticesIn{Limit: 2})
	if err != nil || len(first.Items) != 2 || first.Next == "" || first.Items[0].State != flow.NoticeSent {
		t.Fatalf("list: got %+v, %v, want two and more", first, err)
	}
	rest, err := b.courier.NoticesList(t.Context(), by, &notify.NoticesIn{Limit: 2, After: first.Next})
	if err != nil || len(rest.Items) != 1 || rest.Next != "" {
		t.Errorf("the rest: got %+v, %v, want one", rest, err)
	}
	if other, err := b.courier.NoticesList(t.Context(), flow.Caller{Workspace: "ws2"}, &notify.NoticesIn{}); err != nil || len(other.Items) != 0 {
		t.Errorf("another workspace's: got %+v, %v, want none", other, err)
	}
}
