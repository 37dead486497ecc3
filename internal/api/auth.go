package api

import (
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

// keyProtocol starts the WebSocket subprotocol in which a browser, which can
// set no header, sends its key. It is never chosen as the protocol.
const keyProtocol = "bearer."

// authenticate finds out who calls, and fills it into c. A wrong key counts
// against the address it comes from; a right one always passes, so that
// nobody behind the same address can lock others out.
func (a *API) authenticate(r *http.Request, c *call) error {
	if a.c.Access == nil {
		return refuse(http.StatusServiceUnavailable, "this server knows no keys", "", "")
	}
	bearer, err := bearerOf(r)
	if err == nil {
		c.by, err = a.c.Access.Authenticate(r.Context(), bearer)
	}
	if err == nil {
		c.bearer = bearer
		return nil
	}
	if bearer == "" || flow.CodeOf(err) != flow.CodeUnauthenticated {
		return err
	}
	if wait := a.failures.count(r.RemoteAddr); wait > 0 {
		p := refuse(http.StatusTooManyRequests, "too many wrong API keys came from this address", "", "wait, then send a key of this server that is not revoked")
		p.header = http.Header{"Retry-After": {strconv.Itoa(int(math.Ceil(wait.Seconds())))}}
		return p
	}
	return err
}

// bearerOf reads the key that a request carries, "" if it carries none.
func bearerOf(r *http.Request) (string, error) {
	if h := r.Header.Get("Authorization"); h != "" {
		scheme, key, _ := strings.Cut(h, " ")
		if !strings.EqualFold(scheme, "bearer") {
			return "", flow.Errorf(flow.CodeUnauthenticated, "only bearer authentication is served").Right("send Authorization: Bearer <key>")
		}
		return strings.TrimSpace(key), nil
	}
	if isUpgrade(r) {
		for _, p := range protocols(r) {
			if key, ok := strings.CutPrefix(p, keyProtocol); ok {
				return key, nil
			}
		}
	}
	return "", nil
}

func protocols(r *http.Request) []string {
	var out []string
	for _, h := range r.Header.Values("Sec-WebSocket-Protocol") {
		for p := range strings.SplitSeq(h, ",") {
			out = append(out, strings.TrimSpace(p))
		}
	}
	return out
}

// maxAddresses bounds the addresses that are remembered; when they are full,
// all are forgotten.
const maxAddresses = 4096

// failures counts wrong keys by the address they come from.
type failures struct {
	clock flow.Clock
	every time.Duration
	burst int

	mu sync.Mutex
	by map[netip.Addr]*rate.Limiter
}

func newFailures(clock flow.Clock, l Limits) *failures {
	return &failures{clock: clock, every: l.FailedKeyEvery, burst: l.FailedKeys, by: map[netip.Addr]*rate.Limiter{}}
}

// count counts a wrong key, and says how long to wait if it was one too many.
func (f *failures) count(remote string) time.Duration {
	addr := network(remote)
	now := f.clock.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.by[addr]
	if l == nil {
		if len(f.by) >= maxAddresses {
			clear(f.by)
		}
		l = rate.NewLimiter(rate.Every(f.every), f.burst)
		f.by[addr] = l
	}
	r := l.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// network is what counts as one address: of IPv6 the 64 bits that one
// customer has at least.
func network(remote string) netip.Addr {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	addr := ap.Addr().Unmap().WithZone("")
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return addr
}
