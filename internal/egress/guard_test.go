package egress_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/longstop-dev/longstop/internal/egress"
)

// names is a DNS server of the test's own; a name's answers may change with
// each question.
type names struct {
	mu  sync.Mutex
	ips map[string][][]string // name to the answers of the first, second, ... question of a type; the last stays
	n   map[string]int
}

func (d *names) next(name string, kind dnsmessage.Type) ([]string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	answers, ok := d.ips[name]
	if !ok {
		return nil, false
	}
	key := name + kind.String()
	i := min(d.n[key], len(answers)-1)
	d.n[key]++
	return answers[i], true
}

// resolver serves the names over UDP on loopback.
func resolver(t *testing.T, ips map[string][][]string) *net.Resolver {
	t.Helper()
	d := &names{ips: ips, n: map[string]int{}}
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(b)
			if err != nil {
				return
			}
			if out := d.answer(b[:n]); out != nil {
				pc.WriteTo(out, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

func (d *names) answer(q []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(q) != nil || len(m.Questions) != 1 {
		return nil
	}
	m.Response, m.Additionals = true, nil
	ask := m.Questions[0]
	ips, ok := d.next(strings.TrimSuffix(strings.ToLower(ask.Name.String()), "."), ask.Type)
	if !ok {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, s := range ips {
		ip := net.ParseIP(s)
		h := dnsmessage.ResourceHeader{Name: ask.Name, Type: ask.Type, Class: ask.Class}
		if v4 := ip.To4(); v4 != nil && ask.Type == dnsmessage.TypeA {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: [4]byte(v4)}})
		} else if v4 == nil && ask.Type == dnsmessage.TypeAAAA {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: [16]byte(ip.To16())}})
		}
	}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}

func guard(t *testing.T, p egress.Policy, o ...egress.Option) *egress.Guard {
	t.Helper()
	g, err := egress.New(p, o...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// spec: R-113 R-114
func TestCheckURL(t *testing.T) {
	t.Parallel()
	dns := func() egress.Option {
		return egress.WithResolver(resolver(t, map[string][][]string{
			"good.test": {{"93.184.216.34"}}, "ten.test": {{"10.0.0.1"}}, "mixed.test": {{"93.184.216.34", "10.0.0.1"}},
			"meta.test": {{"169.254.169.254"}}, "six.test": {{"::1"}}, "localhost": {{"127.0.0.1", "::1"}}, "mapped.test": {{"2002:7f00:1::"}},
		}))
	}
	closed, private := guard(t, egress.Policy{}, dns()), guard(t, egress.Policy{AllowPrivate: true}, dns())
	for rawURL, want := range map[string]struct{ closed, private bool }{ // whether it may be called
		"https://good.test/":                              {true, true},
		"https://good.test./":                             {true, true},
		"https://GOOD.test:8443/":                         {true, true},
		"https://good.test:0x50/":                         {false, false},
		"https://good.test:99999/":                        {false, false},
		"https://0x0a000001.good.test/":                   {false, false}, // no such name
		"https://[fd20:ce::254]/":                         {false, false},
		"https://192.0.0.192/":                            {false, false},
		"https://127.0.0.1./":                             {false, false},
		"https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/": {false, false}, // Teredo
		"https://[64:ff9b:1::7f00:1]/":                    {false, false},
		"https://[fec0::1]/":                              {false, false},
		"https://[ff02::1]/":                              {false, false},
		"https://[100::1]/":                               {false, false},
		"https://[5f00::1]/":                              {false, false},
		"https://93.184.216.34:8443/x":                    {true, true},
		"https://[2606:4700:4700::1111]/":                 {true, true},
		"http://good.test/":                               {false, false},
		"https://ten.test/":                               {false, true},
		"http://ten.test/":                                {false, true},
		"https://mixed.test/":                             {false, true},
		"http://mixed.test/":                              {false, false},
		"https://meta.test/":                              {false, false},
		"https://six.test/":                               {false, true},
		"https://localhost/":                              {false, true},
		"http://localhost:8080/":                          {false, true},
		"https://LOCALHOST./":                             {false, true},
		"https://127.0.0.1/":                              {false, true},
		"https://[::1]/":                                  {false, true},
		"https://10.1.2.3/":                               {false, true},
		"https://172.16.0.1/":                             {false, true},
		"https://192.168.1.1/":                            {false, true},
		"https://100.64.1.1/":                             {false, true},
		"https://[fd00::1]/":                              {false, true},
		"https://169.254.169.254/":                        {false, false},
		"http://169.254.169.254/latest":                   {false, false},
		"https://[::ffff:169.254.169.254]/":               {false, false},
		"https://[fe80::1]/":                              {false, false},
		"https://[fd00:ec2::254]/":                        {false, false},
		"https://168.63.129.16/":                          {false, false},
		"https://100.100.100.200/":                        {false, false},
		"https://0.0.0.0/":                                {false, false},
		"https://[::]/":                                   {false, false},
		"https://224.0.0.1/":                              {false, false},
		"https://255.255.255.255/":                        {false, false},
		"https://[64:ff9b::7f00:1]/":                      {false, false},
		"https://[64:ff9b::a9fe:a9fe]/":                   {false, false},
		"https://[2002:7f00:1::]/":                        {false, false},
		"https://mapped.test/":                            {false, false},
		"https://[::ffff:10.0.0.1]/":                      {false, true},
		"https://[::127.0.0.1]/":                          {false, false},
		"https://2130706433/":                             {false, false},
		"https://0177.0.0.1/":                             {false, false},
		"https://0x7f000001/":                             {false, false},
		"https://0x7f.0.0.1/":                             {false, false},
		"https://127.1/":                                  {false, false},
		"https://①②⑦.⓪.⓪.①/":                              {false, false},
		"https://nowhere.test/":                           {false, false},
		"https://user:pass@good.test/":                    {false, false},
		"https://[fe80::1%25eth0]/":                       {false, false},
		"ftp://good.test/":                                {false, false},
		"file:///etc/passwd":                              {false, false},
		"//good.test/":                                    {false, false},
		"/path":                                           {false, false},
		"https:///":                                       {false, false},
		"://":                                             {false, false},
	} {
		for name, tc := range map[string]struct {
			g    *egress.Guard
			want bool
		}{"closed": {closed, want.closed}, "private": {private, want.private}} {
			err := tc.g.CheckURL(t.Context(), rawURL)
			if (err == nil) != tc.want {
				t.Errorf("%s, %s: got %v, want allowed %v", rawURL, name, err, tc.want)
			}
			if err != nil && !errors.Is(err, egress.ErrRefused) {
				t.Errorf("%s, %s: %v is not ErrRefused", rawURL, name, err)
			}
			if err != nil && (strings.Contains(err.Error(), "user:") || strings.Contains(err.Error(), ":pass@")) {
				t.Errorf("%s: the error shows the password: %v", rawURL, err)
			}
		}
	}
}

func TestOpenedPlaces(t *testing.T) {
	t.Parallel()
	dns := egress.WithResolver(resolver(t, map[string][][]string{"api.internal": {{"10.0.0.7"}}, "other.internal": {{"10.0.0.7"}}, "nat.internal": {{"64:ff9b::a9fe:a9fe"}}, "six.internal": {{"2002:a9fe:a9fe::"}}, "xn--bcher-kva.internal": {{"10.0.0.7"}},
		"meta.internal": {{"169.254.169.254"}}}))
	for _, tc := range []struct {
		allow, url string
		want       bool
	}{
		{"10.0.0.0/8", "http://10.9.9.9/", true},
		{"10.0.0.0/8", "http://11.0.0.1/", false},
		{"10.0.0.0/8", "https://192.168.0.1/", false},
		{"api.internal", "http://api.internal:9000/", true},
		{"api.internal:8443", "https://api.internal:8443/", true},
		{"api.internal:8443", "https://api.internal/", false},
		{"api.internal", "https://other.internal/", false},
		{"meta.internal", "https://meta.internal/", false},
		{"API.internal.", "http://api.internal/", true},
		{"api.internal", "http://API.internal./", true},
		{"bücher.internal", "http://bücher.internal/", true},
		{"xn--bcher-kva.internal", "http://BÜCHER.internal/", true},
		{"nat.internal", "https://nat.internal/", false},
		{"six.internal", "https://six.internal/", false},
		{"::/0", "https://[64:ff9b::a9fe:a9fe]/", false},
		{"::/0", "https://[::ffff:169.254.169.254]/", false},
		{"::ffff:10.0.0.1", "http://10.0.0.1/", true},
		{"::1", "http://[::1]:99/", true},
		{"127.0.0.1:9000", "http://127.0.0.1:9000/", true},
		{"127.0.0.1:9000", "http://127.0.0.1:9001/", false},
		{"[::1]:80", "http://[::1]:80/", true},
		{"169.254.0.0/16", "http://169.254.169.254/", false},
	} {
		err := guard(t, egress.Policy{Allow: []string{tc.allow}}, dns).CheckURL(t.Context(), tc.url)
		if (err == nil) != tc.want {
			t.Errorf("%s with %s opened: got %v, want allowed %v", tc.url, tc.allow, err, tc.want)
		}
	}
	for _, bad := range []string{"", "10.0.0.0/99", "http://x/", "a b", "x@y", ":80", "a:b:c", "x:", "x:0", "x:99999", "x:http", "2130706433", "10.1", "0x7f000001"} {
		if _, err := egress.New(egress.Policy{Allow: []string{bad}}); err == nil || !strings.Contains(err.Error(), "--egress-allow") {
			t.Errorf("place %q: got %v, want an error that names --egress-allow", bad, err)
		}
	}
}

// get calls through a guard's client.
func get(t *testing.T, c *http.Client, rawURL string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", rawURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err == nil {
		t.Cleanup(func() { resp.Body.Close() })
	}
	return resp, err
}

func TestANameThatResolvesAnewIsJudgedWhenDialled(t *testing.T) {
	t.Parallel()
	g := guard(t, egress.Policy{}, egress.WithResolver(resolver(t, map[string][][]string{"flip.test": {{"93.184.216.34"}, {"127.0.0.1"}}})))
	if err := g.CheckURL(t.Context(), "https://flip.test/"); err != nil {
		t.Fatalf("check: %v", err)
	}
	if _, err := get(t, g.Client(egress.ClientOptions{}), "https://flip.test/"); !errors.Is(err, egress.ErrRefused) {
		t.Errorf("dial: got %v, want a refusal", err)
	}
}

// A name that is private when it is checked, so that http may reach it, and
// public when it is dialled, is not reached over http.
func TestHTTPIsJudgedWhenDialled(t *testing.T) {
	t.Parallel()
	g := guard(t, egress.Policy{AllowPrivate: true}, egress.WithResolver(resolver(t, map[string][][]string{"flop.test": {{"127.0.0.1"}, {"93.184.216.34"}}})))
	if err := g.CheckURL(t.Context(), "http://flop.test/"); err != nil {
		t.Fatalf("check: %v", err)
	}
	_, err := get(t, g.Client(egress.ClientOptions{}), "http://flop.test/a?token=t0ken")
	var e *egress.Error
	if !errors.As(err, &e) || e.URL != "http://flop.test/a" || !strings.Contains(e.Reason, "http is not allowed") || e.Fix == "" {
		t.Errorf("dial: got %+v (%v), want a refusal of http that names the URL without its query", e, err)
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another origin was called") }))
	t.Cleanup(other.Close)
	mux.Handle("/meta", http.RedirectHandler("http://169.254.169.254/latest", http.StatusFound))
	mux.Handle("/other", http.RedirectHandler(other.URL, http.StatusFound))
	mux.Handle("/here", http.RedirectHandler("/there", http.StatusFound))
	mux.HandleFunc("/there", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "arrived") })
	g := guard(t, egress.Policy{AllowPrivate: true})
	for path, want := range map[string]struct{ none, same int }{"/meta": {302, 302}, "/other": {302, 302}, "/here": {302, 200}} {
		resp, err := get(t, g.Client(egress.ClientOptions{}), s.URL+path)
		if err != nil || resp.StatusCode != want.none {
			t.Errorf("%s, following none: got %v, %v, want %d", path, resp, err, want.none)
		}
		resp, err = get(t, g.Client(egress.ClientOptions{SameOriginRedirects: 10}), s.URL+path)
		if err != nil || resp.StatusCode != want.same {
			t.Errorf("%s, within the origin: got %v, %v, want %d", path, resp, err, want.same)
		}
	}
}

func TestTheClientRefusesAtTheDial(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a private address was called") }))
	t.Cleanup(s.Close)
	g := guard(t, egress.Policy{})
	u, _ := url.Parse(s.URL)
	for _, rawURL := range []string{s.URL, "https://" + u.Host + "/"} {
		if _, err := get(t, g.Client(egress.ClientOptions{}), rawURL); !errors.Is(err, egress.ErrRefused) {
			t.Errorf("%s: got %v, want a refusal", rawURL, err)
		}
	}
}

func TestNoProxyIsUsed(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the proxy was called") }))
	t.Cleanup(proxy.Close)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "direct") }))
	t.Cleanup(s.Close)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	resp, err := get(t, guard(t, egress.Policy{AllowPrivate: true}).Client(egress.ClientOptions{}), s.URL)
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("got %v, %v", resp, err)
	}
}

func TestCertificatesAreChecked(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	t.Cleanup(s.Close)
	if _, err := get(t, guard(t, egress.Policy{AllowPrivate: true}).Client(egress.ClientOptions{}), s.URL); err == nil {
		t.Error("an unknown certificate was trusted")
	}
	pool := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	if _, err := get(t, guard(t, egress.Policy{AllowPrivate: true}, egress.WithRootCAs(pool)).Client(egress.ClientOptions{}), s.URL); err != nil {
		t.Errorf("with its root: %v", err)
	}
}
