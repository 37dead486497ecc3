package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// Guard decides where calls may go. It is safe for concurrent use; all its
// clients share one pool of connections.
type Guard struct {
	places       []place
	allowPrivate bool
	public       *ssrf.Guardian
	metadata     []netip.Prefix
	private      []netip.Prefix
	resolver     *net.Resolver
	roots        *x509.CertPool
	transport    *http.Transport
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
	g.transport = &http.Transport{
		DialContext:            g.dial,
		TLSClientConfig:        &tls.Config{RootCAs: g.roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        60 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		ForceAttemptHTTP2:      true,
	}
	return g, nil
}

// dial connects to an address that the guard lets through. Every address of a
// name is judged when it is dialled.
func (g *Guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	named := g.openName(host, port)
	d := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Resolver: g.resolver,
		Control: func(network, address string, _ syscall.RawConn) error { return g.judge(network, address, named) }}
	return d.DialContext(ctx, network, address)
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
func (g *Guard) judge(network, address string, named bool) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return &Error{Reason: "the address cannot be read"}
	}
	if within(g.metadata, a.Addr()) {
		return &Error{Reason: "link-local and metadata addresses are never called"}
	}
	if named || g.open(a) {
		return nil
	}
	if err := g.public.Safe(network, address, nil); err != nil {
		return &Error{Reason: "it leads to a private or reserved address",
			Fix: "use a public address, or have the operator open it with --egress-allow"}
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
// lets through is judged again when it is dialled.
func (g *Guard) CheckURL(ctx context.Context, rawURL string) error {
	u, err := url.Parse(rawURL)
	if err != nil {
		return &Error{Reason: "not a URL", Fix: "give an absolute URL such as https://agent.example.com"}
	}
	if err := wellFormed(u); err != nil {
		return err
	}
	addrs, err := g.resolve(ctx, u)
	if err != nil {
		return err
	}
	port := portOf(u)
	named, opened := g.openName(u.Hostname(), port), true
	for _, a := range addrs {
		at := net.JoinHostPort(a.String(), port)
		network := "tcp4"
		if a.Is6() {
			network = "tcp6"
		}
		if err := g.judge(network, at, named); err != nil {
			e := err.(*Error)
			return &Error{URL: shown(u), Reason: e.Reason, Fix: e.Fix}
		}
		ap, err := netip.ParseAddrPort(at)
		opened = opened && err == nil && g.open(ap)
	}
	if u.Scheme == "http" && !named && !opened {
		return refuse(u, "use https, or have the operator open the place with --egress-allow", "http is not allowed here")
	}
	return nil
}

// wellFormed refuses what is no absolute http or https URL with a plain host.
func wellFormed(u *url.URL) error {
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return refuse(u, "use https", "the scheme %q is not allowed", u.Scheme)
	case u.User != nil:
		return refuse(u, "put credentials into a header", "a URL must not carry a user or a password")
	case u.Hostname() == "":
		return refuse(u, "give an absolute URL such as https://agent.example.com", "the URL names no host")
	case strings.ContainsAny(u.Hostname(), "%"):
		return refuse(u, "leave the zone out", "an address with a zone is not allowed")
	}
	return nil
}

// resolve gives the host's addresses. A number that is no dotted address, as
// in http://2130706433, is a name that does not resolve.
func (g *Guard) resolve(ctx context.Context, u *url.URL) ([]netip.Addr, error) {
	host := u.Hostname()
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	if numeric(host) {
		return nil, refuse(u, "write an address as four decimal numbers, or a name", "the host %q is an address in an unusual form", host)
	}
	addrs, err := g.resolver.LookupNetIP(ctx, "ip", strings.TrimSuffix(host, "."))
	if err != nil || len(addrs) == 0 {
		return nil, refuse(u, "check the name", "the host %q does not resolve", host)
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return addrs, nil
}

// numeric reports whether a host would be read as an address by lenient
// parsers: decimal, octal, hexadecimal or short.
func numeric(host string) bool {
	last := host[strings.LastIndexByte(strings.TrimSuffix(host, "."), '.')+1:]
	last = strings.TrimSuffix(last, ".")
	if last == "" {
		return true
	}
	if strings.HasPrefix(strings.ToLower(last), "0x") {
		return true
	}
	for _, r := range last {
		if r < '0' || r > '9' {
			return false
		}
	}
	return true
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "http" {
		return "80"
	}
	return "443"
}
