package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// Guard decides where calls may go. It is safe for concurrent use; all its
// clients share its connections.
type Guard struct {
	places       []place
	allowPrivate bool
	public       *ssrf.Guardian
	metadata     []netip.Prefix
	private      []netip.Prefix
	resolver     *net.Resolver
	roots        *x509.CertPool
	secure       *http.Transport // https
	plain        *http.Transport // http, to opened places only
}

// Option changes a guard for tests.
type Option func(*Guard)

// WithResolver has names resolved by r.
func WithResolver(r *net.Resolver) Option { return func(g *Guard) { g.resolver = r } }

// WithRootCAs has servers trusted by these certificates instead of the
// system's.
func WithRootCAs(pool *x509.CertPool) Option { return func(g *Guard) { g.roots = pool } }

// New makes a guard. It fails if a place cannot be read, naming it.
func New(p Policy, options ...Option) (*Guard, error) {
	g := &Guard{allowPrivate: p.AllowPrivate, public: public(), metadata: metadata(), private: private(),
		resolver: &net.Resolver{PreferGo: true}}
	for _, s := range p.Allow {
		pl, err := parsePlace(s)
		if err != nil {
			return nil, err
		}
		g.places = append(g.places, pl)
	}
	for _, o := range options {
		o(g)
	}
	g.secure, g.plain = g.newTransport(g.dialer(false)), g.newTransport(g.dialer(true))
	return g, nil
}

// newTransport makes a pool of connections. Proxy stays nil: a proxy would be
// dialled in the place of what the guard is to judge.
func (g *Guard) newTransport(dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{RootCAs: g.roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        60 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
	}
}

// dialer connects to addresses that the guard lets through. Every address of a
// name is judged when it is dialled; over plain http only opened ones pass.
func (g *Guard) dialer(plain bool) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		named := g.openName(host, port)
		d := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Resolver: g.resolver,
			Control: func(network, address string, _ syscall.RawConn) error { return g.judge(network, address, named, plain) }}
		return d.DialContext(ctx, network, address)
	}
}

func (g *Guard) openName(host, port string) bool {
	for _, p := range g.places {
		if p.hasName(host, port) {
			return true
		}
	}
	return false
}

// judge lets an address through, or says why not.
func (g *Guard) judge(network, address string, named, plain bool) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return &Error{Reason: "the address cannot be read"}
	}
	for _, ip := range faces(a.Addr()) {
		if within(g.metadata, ip) {
			return &Error{Reason: "link-local and metadata addresses are never called"}
		}
	}
	if named || g.open(a) {
		return nil
	}
	if err := g.public.Safe(network, address, nil); err != nil {
		return &Error{Reason: "it leads to a private or reserved address",
			Fix: "use a public address, or have the operator open it with --egress-allow"}
	}
	if plain {
		return &Error{Reason: "http is not allowed here",
			Fix: "use https, or have the operator open the place with --egress-allow"}
	}
	return nil
}

// open reports whether an address is one that the operator opened.
func (g *Guard) open(a netip.AddrPort) bool {
	for _, p := range g.places {
		if p.hasAddr(a) {
			return true
		}
	}
	return g.allowPrivate && within(g.private, a.Addr())
}

// CheckURL says whether a URL may be called, before anything depends on it:
// its scheme, its host and every address that the host resolves to. What it
// lets through is judged again when it is dialled. Its errors are [*Error],
// except that of a context that ends.
func (g *Guard) CheckURL(ctx context.Context, rawURL string) error {
	u, err := url.Parse(rawURL)
	if err != nil {
		return &Error{Reason: "not a URL", Fix: "give an absolute URL such as https://agent.example.com"}
	}
	host, err := wellFormed(u)
	if err != nil {
		return err
	}
	addrs, err := g.resolve(ctx, u, host)
	if err != nil {
		return err
	}
	port := portOf(u)
	named := g.openName(host, port)
	for _, a := range addrs {
		network := "tcp4"
		if a.Is6() {
			network = "tcp6"
		}
		if err := g.judge(network, net.JoinHostPort(a.String(), port), named, u.Scheme == "http"); err != nil {
			return placed(err, u)
		}
	}
	return nil
}

// resolve gives the host's addresses.
func (g *Guard) resolve(ctx context.Context, u *url.URL, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	addrs, err := g.resolver.LookupNetIP(ctx, "ip", host)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil || len(addrs) == 0 {
		return nil, refuse(u, "check the name", "the host %q does not resolve", host)
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return addrs, nil
}
