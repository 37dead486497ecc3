package web

import (
	"crypto/rand"
	"crypto/sha256"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/longstop-dev/longstop/internal/flow"
)

const (
	cookieName  = "longstop_session"
	sessionLife = 12 * time.Hour
	maxSessions = 10_000 // the oldest goes for a new one
	maxKey      = 512    // bytes of a key that is typed in
	loginEvery  = 3 * time.Second
	loginBurst  = 10
	maxSources  = 4096 // addresses that are remembered
)

// session is a browser that has shown a key. The key is asked about again with
// every page, so that one that is revoked opens nothing any more.
type session struct {
	key  string
	till time.Time
}

// sessions are kept in memory, by the hash of what the cookie holds: they end
// with the process.
type sessions struct {
	clock flow.Clock

	mu    sync.Mutex
	open  map[[sha256.Size]byte]session
	tries map[netip.Addr]*rate.Limiter
}

func newSessions(clock flow.Clock) *sessions {
	return &sessions{clock: clock, open: map[[sha256.Size]byte]session{}, tries: map[netip.Addr]*rate.Limiter{}}
}

// start opens a session and gives its cookie's value.
func (s *sessions) start(key string) string {
	token := rand.Text() + rand.Text()
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= maxSessions {
		s.sweep(now)
	}
	s.open[sha256.Sum256([]byte(token))] = session{key: key, till: now.Add(sessionLife)}
	return token
}

// sweep forgets sessions that are over, and if none is the oldest.
func (s *sessions) sweep(now time.Time) {
	var oldest [sha256.Size]byte
	var till time.Time
	for id, v := range s.open {
		if !v.till.After(now) {
			delete(s.open, id)
		} else if till.IsZero() || v.till.Before(till) {
			oldest, till = id, v.till
		}
	}
	if len(s.open) >= maxSessions {
		delete(s.open, oldest)
	}
}

// key gives the key of the session that a request belongs to, "" for none.
func (s *sessions) key(r *http.Request) string {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.open[sha256.Sum256([]byte(c.Value))]
	if !v.till.After(s.clock.Now()) {
		return ""
	}
	return v.key
}

// end forgets the session that a request belongs to.
func (s *sessions) end(r *http.Request) {
	if c, err := r.Cookie(cookieName); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, sha256.Sum256([]byte(c.Value)))
	}
}

// failed counts a wrong key against the address it came from, and says how
// long that has to wait.
func (s *sessions) failed(remote string) time.Duration {
	addr, _ := netip.ParseAddrPort(remote) // an address that is none counts as one
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.tries[addr.Addr()]
	if l == nil {
		if len(s.tries) >= maxSources {
			clear(s.tries)
		}
		l = rate.NewLimiter(rate.Every(loginEvery), loginBurst)
		s.tries[addr.Addr()] = l
	}
	wait := l.ReserveN(now, 1)
	if d := wait.DelayFrom(now); d > 0 {
		wait.CancelAt(now)
		return d
	}
	return 0
}

// caller says who a request comes from. Whoever has no session is sent to the
// login, and comes back.
func (f *Face) caller(w http.ResponseWriter, r *http.Request) (flow.Caller, bool) {
	if key := f.sessions.key(r); key != "" {
		by, err := f.c.Keys.Authenticate(r.Context(), key)
		if err == nil {
			return by, true
		}
		if flow.CodeOf(err) != flow.CodeUnauthenticated {
			f.fail(w, r, err)
			return by, false
		}
		f.sessions.end(r) // the key was revoked
	}
	if r.Header.Get("HX-Request") != "" { // a page that is open sees to it itself
		w.Header().Set("HX-Redirect", loginFor(r.URL.Path))
		w.WriteHeader(http.StatusUnauthorized)
		return flow.Caller{}, false
	}
	http.Redirect(w, r, loginFor(r.URL.Path), http.StatusSeeOther)
	return flow.Caller{}, false
}

func (f *Face) askKey(w http.ResponseWriter, r *http.Request) {
	f.render(w, r, http.StatusOK, loginPage(back(r.URL.Query().Get("to")), ""))
}

// login opens a session for a key. A page of another site cannot send this
// form: it would say so in Sec-Fetch-Site or Origin.
func (f *Face) login(w http.ResponseWriter, r *http.Request) {
	if !sameSite(r) {
		http.Error(w, "this form was sent by another site", http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form cannot be read", http.StatusBadRequest)
		return
	}
	to, key := back(r.PostForm.Get("to")), strings.TrimSpace(r.PostForm.Get("key"))
	if len(key) > maxKey {
		key = ""
	}
	if _, err := f.c.Keys.Authenticate(r.Context(), key); err != nil {
		if flow.CodeOf(err) != flow.CodeUnauthenticated {
			f.fail(w, r, err)
			return
		}
		if wait := f.sessions.failed(r.RemoteAddr); wait > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
			f.render(w, r, http.StatusTooManyRequests, loginPage(to, "Too many wrong keys came from this address. Wait a little."))
			return
		}
		f.render(w, r, http.StatusUnauthorized, loginPage(to, err.Error()))
		return
	}
	f.sessions.end(r) // a session that was there is not gone on with
	f.cookie(w, f.sessions.start(key), int(sessionLife/time.Second))
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (f *Face) logout(w http.ResponseWriter, r *http.Request) {
	if !sameSite(r) {
		http.Error(w, "this form was sent by another site", http.StatusForbidden)
		return
	}
	f.sessions.end(r)
	f.cookie(w, "", -1)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

func (f *Face) cookie(w http.ResponseWriter, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: f.c.Secure, SameSite: http.SameSiteLaxMode})
}

// sameSite reports whether a form comes from one of our own pages.
func sameSite(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin" || site == "none"
	}
	origin := r.Header.Get("Origin")
	return origin == "" || strings.EqualFold(strings.TrimPrefix(strings.TrimPrefix(origin, "https://"), "http://"), r.Host)
}

// back is a path of ours to go back to; anything else is the login.
func back(to string) string {
	if strings.HasPrefix(to, "/runs/") && !strings.ContainsAny(to, "\\\r\n\t") {
		return to
	}
	return "/login"
}
