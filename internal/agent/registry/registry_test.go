package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/longstop-dev/longstop/internal/a2a"
	"github.com/longstop-dev/longstop/internal/agent/registry"
	"github.com/longstop-dev/longstop/internal/bucket"
	"github.com/longstop-dev/longstop/internal/egress"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/flow/flowtest"
	"github.com/longstop-dev/longstop/internal/ident"
	"github.com/longstop-dev/longstop/internal/secret"
	"github.com/longstop-dev/longstop/internal/store"
)

// bed is a registry over a real store, with cards served by this process.
type bed struct {
	t     *testing.T
	store *store.Store
	r     *registry.Registry
	ada   flow.Caller
	dir   string
	cards map[string]string // by path
	url   string
}

type wire struct{ *a2a.Client }

func (w wire) Card(ctx context.Context, _, url string) (*a2a.Card, error) {
	return w.FetchSigned(ctx, url, a2a.CardPolicy{})
}

// literal judges addresses only: tests look no name up.
type literal struct{ *egress.Guard }

func (g literal) CheckURL(ctx context.Context, rawURL string) error {
	if u, err := url.Parse(rawURL); err == nil && net.ParseIP(u.Hostname()) == nil {
		return nil
	}
	return g.Guard.CheckURL(ctx, rawURL)
}

const card10 = `{"name":"Order Desk!","description":"knows orders","supportedInterfaces":[{"url":"https://agent.example/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"skills":[{"id":"s"}],"securitySchemes":{"a":{"type":"oauth2"}}}`

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, dir: t.TempDir(), cards: map[string]string{"/.well-known/agent-card.json": card10}, ada: flow.Caller{Workspace: "ws", Person: "ada", Role: flow.RoleOwner}}
	var err error
	if b.store, err = store.Open(t.Context(), store.Options{Path: filepath.Join(b.dir, "t.db")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.store.Close() })
	if _, err := b.store.Found(t.Context(), flow.Workspace{ID: "ws", Name: "w"}, flow.Person{ID: "ada", Name: "Ada", PublicKey: []byte{0xad, 0xa0}},
		flow.Key{ID: "key", Workspace: "ws", Person: "ada", Role: flow.RoleOwner, Hash: []byte{1}}); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to, ok := strings.CutPrefix(b.cards[r.URL.Path], "-> "); ok {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		if body, ok := b.cards[r.URL.Path]; ok {
			fmt.Fprint(w, body)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(srv.Close)
	b.url = srv.URL
	guard, err := egress.New(egress.Policy{AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := secret.NewKeyring(make([]byte, secret.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	b.r = registry.New(registry.Config{Agents: b.store, Services: b.store, People: b.store, Cards: wire{&a2a.Client{HTTP: guard.Client(egress.ClientOptions{})}}, Guard: literal{guard}, Sealer: keyring,
		HTTP: guard.Client(egress.ClientOptions{}), Buckets: bucket.Options{Dir: filepath.Join(b.dir, "buckets")}, Clock: flowtest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), NewID: ident.New})
	return b
}

func (b *bed) service() *registry.ServiceView {
	b.t.Helper()
	s, err := b.r.CreateService(b.t.Context(), b.ada, &registry.CreateServiceIn{})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// push pushes what a valid push would be, changed.
func (b *bed) push(s *registry.ServiceView, change func(*registry.PushIn)) (*registry.PushOut, error) {
	in := &registry.PushIn{}
	in.Body.Kind, in.Body.Card, in.Body.Bucket, in.Body.AsPubkey = "external", b.url, s.Bucket, s.PublicKey
	if change != nil {
		change(in)
	}
	return b.r.Push(b.t.Context(), b.ada, in)
}

// The manifest is in the bucket and holds what the specification says, and
// nothing of what the card says about endpoints, skills and security.
//
// spec: A-001
// spec: A-009
// spec: A-011
// spec: A-012
// spec: A-014
// spec: A-016
// spec: A-018
// spec: A-020
// spec: A-021
// spec: A-023
// spec: A-034
func TestPush(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.service()
	out, err := b.push(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(b.dir, "buckets", s.Bucket, "agents", "order-desk", "1.0.0", "manifest.json")
	raw, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"kind": "external", "card": b.url + "/.well-known/agent-card.json", "agentId": s.PublicKey + ":order-desk", "alias": "order-desk", "version": "1.0.0",
		"scopes": []any{"default"}, "idleTimeout": 1800.0, "name": "Order Desk!", "description": "knows orders"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("manifest:\n got %v\nwant %v", got, want)
	}
	if out.Called != "1.0.0" || len(out.Notices) != 0 {
		t.Errorf("answer: %+v", out)
	}
	files := 0
	err = filepath.WalkDir(filepath.Join(b.dir, "buckets"), func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files++
		}
		return err
	})
	if err != nil || files != 1 {
		t.Errorf("%d files in the bucket, want the manifest: %v", files, err)
	}
	l, err := b.r.ListAgents(t.Context(), b.ada, &registry.None{})
	if err != nil || len(l.Items) != 1 || l.Items[0].ID != s.PublicKey+":order-desk" {
		t.Errorf("list: %+v, %v", l, err)
	}
}

// spec: A-017
func TestPushWithoutAService(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.service()
	out, err := b.push(s, func(in *registry.PushIn) { in.Body.AsPubkey = "" })
	if err != nil || out.AgentID != "" || len(out.Notices) != 1 || !strings.Contains(out.Notices[0], "--as-pubkey") {
		t.Fatalf("got %+v, %v", out, err)
	}
	if l, err := b.r.ListAgents(t.Context(), b.ada, &registry.None{}); err != nil || len(l.Items) != 0 {
		t.Errorf("listed: %+v, %v", l, err)
	}
	out, err = b.push(s, nil)
	if err != nil || out.AgentID == "" {
		t.Errorf("pushed again: %+v, %v", out, err)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.service()
	for i, v := range []string{"1.2.0", "1.10.0", "1.9.0", "1.10.0-rc.1"} {
		out, err := b.push(s, func(in *registry.PushIn) { in.Body.Version = v })
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"1.2.0", "1.10.0", "1.10.0", "1.10.0"}[i]; out.Called != want {
			t.Errorf("after %s: %s is called, want %s", v, out.Called, want)
		}
	}
	b.cards["/.well-known/agent-card.json"] = strings.Replace(card10, "knows orders", "knows all orders", 1)
	if _, err := b.push(s, func(in *registry.PushIn) { in.Body.Version, in.Body.Scopes = "1.10.0", []string{"mail"} }); err != nil {
		t.Fatal(err)
	}
	got, err := b.r.GetAgent(t.Context(), b.ada, &registry.AgentIn{ID: "order-desk"})
	if err != nil || got.Version != "1.10.0" || got.Description != "knows all orders" || strings.Join(got.Scopes, "") != "mail" || len(got.Versions) != 4 {
		t.Errorf("agent: %+v, %v", got, err)
	}
}

// TestRefusals: each with the member that is wrong.
//
// spec: A-010
// spec: A-013
// spec: A-015
// spec: A-019
// spec: A-024
func TestRefusals(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.service()
	for path, card := range map[string]string{
		"/none.json":   `{"name":"a","description":"d"}`,
		"/rest.json":   `{"name":"a","supportedInterfaces":[{"url":"https://a.example","protocolBinding":"HTTP+JSON","protocolVersion":"1.0"}]}`,
		"/grpc.json":   `{"name":"a","supportedInterfaces":[{"url":"https://a.example","protocolBinding":"GRPC","protocolVersion":"1.0"}]}`,
		"/noname.json": `{"url":"https://a.example/rpc"}`,
		"/html.json":   `<html>hello</html>`,
		"/list.json":   `[]`,
		"/huge.json":   `{"name":"a","url":"https://a.example","x":"` + strings.Repeat("x", 10<<20) + `"}`,
		"/deep.json":   `{"name":"a","url":"https://a.example","x":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`,
		"/signs.json":  `{"name":"...","url":"https://a.example/rpc"}`,
		"/away.json":   `-> http://169.254.169.254/latest/meta-data`,
		"/bad.json":    `{"name":"a","url":"ftp://a.example"}`,
	} {
		b.cards[path] = card
	}
	at := func(path string) func(*registry.PushIn) {
		return func(in *registry.PushIn) { in.Body.Card = b.url + path }
	}
	for name, c := range map[string]struct {
		change func(*registry.PushIn)
		code   flow.Code
		field  string
	}{
		"no kind":                   {func(in *registry.PushIn) { in.Body.Kind = "" }, flow.CodeInvalid, "kind"},
		"code":                      {func(in *registry.PushIn) { in.Body.Kind = "code" }, flow.CodeInvalid, "kind"},
		"no card":                   {func(in *registry.PushIn) { in.Body.Card = "" }, flow.CodeInvalid, "card"},
		"no bucket":                 {func(in *registry.PushIn) { in.Body.Bucket = "" }, flow.CodeInvalid, "bucket"},
		"unknown bucket":            {func(in *registry.PushIn) { in.Body.Bucket = "bkt_x" }, flow.CodeInvalid, "bucket"},
		"no key":                    {func(in *registry.PushIn) { in.Body.AsPubkey = "abc" }, flow.CodeInvalid, "asPubkey"},
		"not held":                  {func(in *registry.PushIn) { in.Body.AsPubkey = strings.Repeat("0", 64) }, flow.CodeInvalid, "asPubkey"},
		"colon":                     {func(in *registry.PushIn) { in.Body.Alias = "a:b" }, flow.CodeInvalid, "alias"},
		"path":                      {func(in *registry.PushIn) { in.Body.Alias = "../b" }, flow.CodeInvalid, "alias"},
		"dots":                      {func(in *registry.PushIn) { in.Body.Alias = ".." }, flow.CodeInvalid, "alias"},
		"short version":             {func(in *registry.PushIn) { in.Body.Version = "1.0" }, flow.CodeInvalid, "version"},
		"no version":                {func(in *registry.PushIn) { in.Body.Version = "../1" }, flow.CodeInvalid, "version"},
		"idle":                      {func(in *registry.PushIn) { n := int64(-1); in.Body.IdleTimeout = &n }, flow.CodeInvalid, "idleTimeout"},
		"more than a year":          {func(in *registry.PushIn) { n := int64(366 * 24 * 3600); in.Body.IdleTimeout = &n }, flow.CodeInvalid, "idleTimeout"},
		"a dot first":               {func(in *registry.PushIn) { in.Body.Alias = ".a" }, flow.CodeInvalid, "alias"},
		"a long alias":              {func(in *registry.PushIn) { in.Body.Alias = strings.Repeat("a", 101) }, flow.CodeInvalid, "alias"},
		"many scopes":               {func(in *registry.PushIn) { in.Body.Scopes = slices.Repeat([]string{"a"}, 33) }, flow.CodeInvalid, "scopes"},
		"no idle time":              {func(in *registry.PushIn) { in.Body.IdleTimeout = new(int64) }, flow.CodeInvalid, "idleTimeout"},
		"scope":                     {func(in *registry.PushIn) { in.Body.Scopes = []string{"a b"} }, flow.CodeInvalid, "scopes"},
		"a base that runs":          {func(in *registry.PushIn) { in.Body.PublicBase = "javascript:alert(1)" }, flow.CodeInvalid, "publicBase"},
		"a base with a password":    {func(in *registry.PushIn) { in.Body.PublicBase = "https://a:b@cdn.example" }, flow.CodeInvalid, "publicBase"},
		"another person":            {func(in *registry.PushIn) { in.Body.Subject = "ffff" }, flow.CodeForbidden, "subject"},
		"no endpoint":               {at("/none.json"), flow.CodeInvalid, "card"},
		"HTTP+JSON only":            {at("/rest.json"), flow.CodeInvalid, "card"},
		"gRPC only":                 {at("/grpc.json"), flow.CodeInvalid, "card"},
		"no name":                   {at("/noname.json"), flow.CodeInvalid, "card"},
		"HTML":                      {at("/html.json"), flow.CodeInvalid, "card"},
		"a list":                    {at("/list.json"), flow.CodeInvalid, "card"},
		"10 MB":                     {at("/huge.json"), flow.CodeInvalid, "card"},
		"deep":                      {at("/deep.json"), flow.CodeInvalid, "card"},
		"a redirect to metadata":    {at("/away.json"), flow.CodeInvalid, "card"},
		"an endpoint of FTP":        {at("/bad.json"), flow.CodeInvalid, "card"},
		"not there":                 {at("/nothing.json"), flow.CodeInvalid, "card"},
		"a name without any letter": {at("/signs.json"), flow.CodeInvalid, "alias"},
		"nobody answers":            {func(in *registry.PushIn) { in.Body.Card = "http://127.0.0.1:1" }, flow.CodeInvalid, "card"},
	} {
		_, err := b.push(s, c.change)
		var e *flow.Error
		if e, _ = err.(*flow.Error); e == nil || e.Code != c.code || e.Field != c.field || e.Fix == "" {
			t.Errorf("%s: got %v, want %s at %s with what would be right", name, err, c.code, c.field)
		}
	}
	if l, err := b.r.ListAgents(t.Context(), b.ada, &registry.None{}); err != nil || len(l.Items) != 0 {
		t.Errorf("something was registered: %+v, %v", l, err)
	}
}

// TestCards: every form that declares an endpoint for JSON-RPC is taken.
//
// spec: A-031
// spec: A-032
// spec: A-033
func TestCards(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.service()
	real, err := json.Marshal(&sdk.AgentCard{Name: "real", Description: "d", Version: "1.0.0", SupportedInterfaces: []*sdk.AgentInterface{sdk.NewAgentInterface("https://a.example/rpc", sdk.TransportProtocolJSONRPC)}})
	if err != nil {
		t.Fatal(err)
	}
	for name, card := range map[string]string{
		"minimal":        `{"name":"minimal","url":"https://a.example/rpc"}`,
		"interfaces-0-3": `{"name":"interfaces-0-3","interfaces":[{"url":"https://a.example/rpc","transport":"JSONRPC"}]}`,
		"additional":     `{"name":"additional","url":"https://a.example/grpc","preferredTransport":"GRPC","additionalInterfaces":[{"url":"https://a.example/rpc","transport":"JSONRPC"}]}`,
		"real":           string(real),
	} {
		b.cards["/"+name+".json"] = card
		out, err := b.push(s, func(in *registry.PushIn) { in.Body.Card = b.url + "/" + name + ".json?v=1" })
		if err != nil || out.Alias != name || !strings.HasSuffix(out.Card, "/"+name+".json?v=1") {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
	if a2asrv.WellKnownAgentCardPath != "/.well-known/agent-card.json" {
		t.Errorf("the SDK serves cards at %s", a2asrv.WellKnownAgentCardPath)
	}
}

// TestReindex: an index that is lost is there again, and what others put into
// the bucket is left out and named.
func TestReindex(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.service()
	for _, v := range []string{"1.0.0", "2.0.0"} {
		if _, err := b.push(s, func(in *registry.PushIn) { in.Body.Version = v }); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.store.DeleteAgent(t.Context(), "ws", s.PublicKey+":order-desk"); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(b.dir, "buckets", s.Bucket, "agents")
	put := func(place, body string) {
		t.Helper()
		at := filepath.Join(root, place)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	good := `{"kind":"external","card":"https://a.example","agentId":"` + s.PublicKey + `:x","alias":"x","version":"1.0.0","scopes":["default"],"idleTimeout":60}`
	bad := map[string]string{
		"a/1.0.0/manifest.json": `not JSON`,
		"b/1.0.0/manifest.json": strings.Replace(good, "external", "code", 1),
		"c/1.0.0/manifest.json": good,
		"d/1.0.0/manifest.json": strings.NewReplacer(`:x"`, `:d"`, `"x"`, `"d"`, s.PublicKey, strings.Repeat("1", 64)).Replace(good),
		"e/1.0.0/manifest.json": strings.NewReplacer(`"x"`, `"e"`).Replace(good),
		"f/1.0.0/manifest.json": strings.NewReplacer(`:x"`, `:f"`, `"x"`, `"f"`, `60`, `0`).Replace(good),
		"g/1.0.0/manifest.json": strings.Repeat(" ", bucket.MaxObject+1),
		"h/1.0.0/manifest.json": strings.NewReplacer(s.PublicKey+`:x"`, `:h"`, `"x"`, `"h"`).Replace(good),
		"i/1.0.0/manifest.json": strings.NewReplacer(`:x"`, `:x:i"`, `"x"`, `"i"`).Replace(good),
	}
	for place, body := range bad {
		put(place, body)
	}
	put("x/1.0.0/manifest.json", good)
	put("x/1.0.0/other", "x")
	out, err := b.r.Reindex(t.Context(), b.ada, &registry.ReindexIn{ID: s.Bucket})
	if err != nil || out.Indexed != 3 || len(out.Left) != len(bad) {
		t.Errorf("got %+v, %v; want 3 indexed and %d left", out, err, len(bad))
	}
	if a, err := b.r.GetAgent(t.Context(), b.ada, &registry.AgentIn{ID: "order-desk"}); err != nil || a.Version != "2.0.0" {
		t.Errorf("the highest: %+v, %v", a, err)
	}
}

// TestWhatIsSaidOfACard: one fact, where it was found, and one thing that would
// be right.
func TestWhatIsSaidOfACard(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.service()
	b.cards["/broken.json"] = `{"name":`
	for card, want := range map[string]string{
		"agent.example.com":    "card: the agent card is not usable: agent.example.com cannot be fetched: not an absolute http or https URL (https://agent.example.com)",
		"http://127.0.0.1:1":   "connection refused, at http://127.0.0.1:1/.well-known/agent-card.json (a URL at which this server reaches the agent)",
		b.url + "/no/card":     "HTTP 404 Not Found: 404 page not found, at " + b.url + "/no/card (the URL of the agent's card, or the origin that has it at /.well-known/agent-card.json)",
		b.url + "/broken.json": "it is not valid JSON at byte 8: unexpected end of JSON input, at " + b.url + "/broken.json (a card with a name and a JSON-RPC endpoint)",
	} {
		_, err := b.push(s, func(in *registry.PushIn) { in.Body.Card = card })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", card, err, want)
		}
	}
}

// TestACredentialThatNobodySends is told of at the push: the agent would refuse
// every call.
func TestACredentialThatNobodySends(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.service()
	for scheme, want := range map[string]string{
		`{"apiKeySecurityScheme":{"name":"k","location":"header"}}`: "the card requires key, and nothing but the execution token is ever sent",
		`{"httpAuthSecurityScheme":{"scheme":"basic"}}`:             "the card requires key",
		`{}`: "the card cannot be called as it is",
		`{"httpAuthSecurityScheme":{"scheme":"bearer","bearerFormat":"JWT"}}`: "",
	} {
		b.cards["/k.json"] = `{"name":"k","description":"d","url":"https://a.example/rpc","securitySchemes":{"key":` + scheme + `},"securityRequirements":[{"schemes":{"key":{"list":[]}}}]}`
		out, err := b.push(s, func(in *registry.PushIn) { in.Body.Card = b.url + "/k.json" })
		if err != nil || want == "" && len(out.Notices) != 0 || want != "" && !strings.Contains(strings.Join(out.Notices, " "), want) {
			t.Errorf("%s: %+v, %v; want %q", scheme, out, err, want)
		}
	}
}

// TestAnEndpointThatIsShut is told of at the push.
func TestAnEndpointThatIsShut(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.cards["/m.json"] = `{"name":"m","description":"d","url":"http://169.254.169.254/latest"}`
	out, err := b.push(b.service(), func(in *registry.PushIn) { in.Body.Card = b.url + "/m.json" })
	if err != nil || len(out.Notices) != 1 || !strings.Contains(out.Notices[0], "as it is now the agent cannot be called: ") || !strings.Contains(out.Notices[0], "169.254.169.254") {
		t.Errorf("got %+v, %v; want it registered and a notice", out, err)
	}
}

// TestVersionsPushedAtOnce: the highest is called, in whatever order they come
// to be written.
func TestVersionsPushedAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.service()
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			if _, err := b.push(s, func(in *registry.PushIn) { in.Body.Version = fmt.Sprintf("1.%d.0", i) }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, v := range []string{"1.12.0+1", "1.12.0+2"} { // of one precedence: the one that was pushed last
		if out, err := b.push(s, func(in *registry.PushIn) { in.Body.Version = v; in.Body.Alias = "built" }); err != nil || out.Called != v {
			t.Errorf("pushed %s: %+v, %v", v, out, err)
		}
	}
	if a, err := b.r.GetAgent(t.Context(), b.ada, &registry.AgentIn{ID: "order-desk"}); err != nil || a.Version != "1.11.0" || len(a.Versions) != 12 {
		t.Errorf("called: %+v, %v; want 1.11.0 of 12", a, err)
	}
}

// TestAnAliasOfTwoAgents names neither.
func TestAnAliasOfTwoAgents(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	one, two := b.service(), b.service()
	other, err := b.r.CreateBucket(t.Context(), b.ada, &registry.CreateBucketIn{})
	if err != nil {
		t.Fatal(err)
	}
	two.Bucket = other.ID
	for _, s := range []*registry.ServiceView{one, two} {
		if _, err := b.push(s, nil); err != nil {
			t.Fatal(err)
		}
	}
	_, err = b.r.GetAgent(t.Context(), b.ada, &registry.AgentIn{ID: "order-desk"})
	if flow.CodeOf(err) != flow.CodeConflict || !strings.Contains(err.Error(), one.PublicKey) || !strings.Contains(err.Error(), two.PublicKey) {
		t.Errorf("got %v, want a conflict that names both", err)
	}
}

// TestAManifestOfSomebodyElse stays when an agent that had its place before is
// removed.
func TestAManifestOfSomebodyElse(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.service()
	p, err := b.push(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(b.dir, "buckets", s.Bucket, filepath.FromSlash(p.Key))
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	others := bytes.ReplaceAll(body, []byte(s.PublicKey), []byte(strings.Repeat("1", 64)))
	if err := os.WriteFile(file, others, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.r.RemoveAgent(t.Context(), b.ada, &registry.AgentIn{ID: p.AgentID}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, others) {
		t.Errorf("the other's manifest: %d bytes, %v", len(got), err)
	}
}
