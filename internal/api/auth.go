package api

import (
	"context"
	"net"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"github.com/longstop-dev/longstop/internal/flow"
)

// caller says who sends a request. Whoever guesses keys is slowed down.
func (f *face) caller(ctx context.Context, authorization, remote string) (flow.Caller, error) {
	scheme, key, _ := strings.Cut(authorization, " ")
	if authorization != "" && !strings.EqualFold(scheme, "Bearer") {
		return flow.Caller{}, flow.Errorf(flow.CodeUnauthenticated, "this needs an API key").Right("send Authorization: Bearer <key>")
	}
	from := remote
	if host, _, err := net.SplitHostPort(remote); err == nil {
		from = host
	}
	if f.fail.tooMany(from) {
		return flow.Caller{}, flow.Errorf(flow.CodeRateLimited, "too many unknown keys from this address").Right("wait a second")
	}
	by, err := f.Access.Authenticate(ctx, strings.TrimSpace(key))
	if err != nil && flow.CodeOf(err) == flow.CodeUnauthenticated {
		f.fail.count(from)
	}
	return by, err
}

// The pace at which one address may send unknown keys.
const (
	failuresASecond = 5
	failuresAtOnce  = 50
	maxAddresses    = 4096
)

// failures counts unknown keys by address. It is bounded: a full table is
// emptied, which forgives everybody once.
type failures struct {
	mu   sync.Mutex
	from map[string]*rate.Limiter
}

func newFailures() *failures { return &failures{from: map[string]*rate.Limiter{}} }

func (f *failures) tooMany(from string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.from[from]
	return l != nil && l.Tokens() < 1
}

func (f *failures) count(from string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.from[from]
	if l == nil {
		if len(f.from) >= maxAddresses {
			clear(f.from)
		}
		l = rate.NewLimiter(failuresASecond, failuresAtOnce)
		f.from[from] = l
	}
	l.Allow()
}
