package recovery

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/longstop-dev/longstop/internal/egress"
	"github.com/longstop-dev/longstop/internal/flow"
)

// names is a DNS server on loopback that knows these names only.
func names(t *testing.T, known map[string]string) *net.Resolver {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) == 0 {
				continue
			}
			q := m.Questions[0]
			m.Response, m.Additionals = true, nil
			address, ok := known[strings.TrimSuffix(q.Name.String(), ".")]
			if !ok {
				m.RCode = dnsmessage.RCodeNameError
			} else if q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
					Body: &dnsmessage.AResource{A: netip.MustParseAddr(address).As4()}}}
			}
			if out, err := m.Pack(); err == nil {
				_, _ = c.WriteTo(out, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", c.LocalAddr().String())
	}}
}

// guarded is a bed with the real egress guard before it.
type guarded struct {
	*bed
	guard *egress.Guard
}

func (g guarded) CheckURL(ctx context.Context, url string) error { return g.guard.CheckURL(ctx, url) }

// Every way to write a forbidden place is a rejection with its reason, the
// built-in answers, and nothing is carried out.
func TestForbiddenPlaces(t *testing.T) {
	t.Parallel()
	guard, err := egress.New(egress.Policy{}, egress.WithResolver(names(t, map[string]string{
		"inner.example.com": "10.0.0.1", "meta.example.com": "169.254.169.254", "api.example.com": "93.184.216.34"})))
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{
		"http://169.254.169.254/latest/meta-data", "https://169.254.169.254/", "https://localhost/", "https://localhost:8443/", "https://127.0.0.1/",
		"https://127.1/", "https://0/", "https://0.0.0.0/", "https://10.0.0.1/", "https://192.168.1.1/", "https://172.16.0.1/", "https://100.64.0.1/",
		"https://inner.example.com/", "https://meta.example.com/", "https://INNER.example.com./",
		"https://2852039166/", "https://2130706433/", "https://0x7f000001/", "https://0251.0376.0251.0376/", "https://0177.0.0.1/", "https://127.0.0.01/",
		"https://[::1]/", "https://[::]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:a9fe:a9fe]/", "https://[64:ff9b::a9fe:a9fe]/", "https://[64:ff9b::7f00:1]/",
		"https://[2002:7f00:1::]/", "https://[fe80::1]/", "https://[fd00::1]/", "https://nowhere.example.com/", "http://api.example.com/",
		"https://user:pass@api.example.com/", "gopher://api.example.com/", "file:///etc/passwd", "//api.example.com/", "/users/42", "https:api.example.com",
		"https://api.example.com@127.0.0.1/", "https://127.0.0.1#@api.example.com/", "https://api.example.com\\\\@127.0.0.1/", "https://127。0。0。1/", "https://①②⑦.0.0.1/",
	} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			g := guarded{b, guard}
			b.settings.A2AAgentURL = "https://agent.example.com"
			b.own.answer = `{"type":"retry_with_params","diagnosis":"d","modifications":{"httpRequest":{"url":"` + url + `"}}}`
			c := b.desk().c
			c.Egress = g
			d := New(c)
			k, err := d.Freeze(t.Context(), httpFailure())
			if err != nil {
				t.Fatal(err)
			}
			v := d.Decide(t.Context(), httpFailure(), k)
			if v.Kind != flow.VerdictGate || v.Mods != nil || b.rules.count() != 1 {
				t.Fatalf("verdict = %s with %s, the built-in asked %d times; want it refused and the built-in asked", v.Kind, v.Mods, b.rules.count())
			}
			if why := v.Case.Asked[0].Rejection; !strings.HasPrefix(why, "modifications.httpRequest.url: ") || len(why) < 40 {
				t.Errorf("rejection = %q, want the place and the reason", why)
			}
		})
	}
}

func TestPublicPlaceIsLetThrough(t *testing.T) {
	t.Parallel()
	guard, err := egress.New(egress.Policy{}, egress.WithResolver(names(t, map[string]string{"api.example.com": "93.184.216.34"})))
	if err != nil {
		t.Fatal(err)
	}
	b := newBed(t)
	b.settings.A2AAgentURL = "https://agent.example.com"
	b.own.answer = `{"type":"retry_with_params","diagnosis":"d","modifications":{"httpRequest":{"url":"https://api.example.com/v2/users/42"}}}`
	c := b.desk().c
	c.Egress = guarded{b, guard}
	if v := New(c).Decide(t.Context(), httpFailure(), flow.Case{}); v.Kind != flow.VerdictRetry {
		t.Errorf("verdict = %s (%s), want a retry", v.Kind, v.Message)
	}
}
