package registry

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"

	"golang.org/x/mod/semver"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Bounds of a registration.
const (
	maxAlias  = 100
	maxScopes = 32
	maxIdle   = 365 * 24 * 60 * 60 // seconds
	maxURL    = 2000
)

// PushIn registers a version of an agent.
type PushIn struct {
	Body struct {
		Kind        string   `json:"kind,omitempty" minLength:"1" doc:"external: the agent is hosted elsewhere."`
		Card        string   `json:"card" doc:"The URL of the agent card; below a bare origin /.well-known/agent-card.json is read. bridge:<name> for one behind a bridge."`
		Bucket      string   `json:"bucket" doc:"The id of the bucket that the manifest goes to."`
		AsPubkey    string   `json:"asPubkey,omitempty" minLength:"1" doc:"The Agent Service's public key: the agent's id is <pubkey>:<alias>. Without it the manifest has no id, and nobody can call the agent."`
		Alias       string   `json:"alias,omitempty" minLength:"1" doc:"Default: a slug of the card's name."`
		Version     string   `json:"version,omitempty" minLength:"1" doc:"Semver. Default 1.0.0."`
		Scopes      []string `json:"scopes,omitempty" doc:"Of vaults, that the agent asks for. Default: default."`
		IdleTimeout *int64   `json:"idleTimeout,omitempty" doc:"Seconds that a conversation survives without events. Default 1800; 0 is refused."`
		PublicBase  string   `json:"publicBase,omitempty" doc:"Where others read the bucket from; kept with the bucket."`
		Subject     string   `json:"subject,omitempty" minLength:"1" doc:"The public key of the person who pushes; it must be the caller's."`
	}
}

// PushOut is what was registered.
type PushOut struct {
	flow.Manifest
	Bucket  string   `json:"bucket"`
	Key     string   `json:"key" doc:"Of the manifest in the bucket."`
	Called  string   `json:"called,omitempty" doc:"The version that is called from now on: the highest."`
	Notices []string `json:"notices" doc:"What whoever pushes should know."`
}

// Push reads the card, writes the manifest into the bucket and indexes it. It
// answers invalid with the member that is wrong.
func (r *Registry) Push(ctx context.Context, by flow.Caller, in *PushIn) (*PushOut, error) {
	if err := r.checkPush(ctx, by, in); err != nil {
		return nil, err
	}
	b, err := r.bucket(ctx, by, in.Body.Bucket)
	if err != nil {
		return nil, err
	}
	card, err := r.readCard(ctx, by, in.Body.Card)
	if err != nil {
		return nil, err
	}
	m := flow.Manifest{Kind: flow.KindExternal, Card: in.Body.Card, Alias: in.Body.Alias, Version: in.Body.Version, Scopes: in.Body.Scopes,
		IdleTimeout: *in.Body.IdleTimeout, Name: card.Name, Description: card.Description}
	if card.Source != "" {
		m.Card = card.Source
	}
	if m.Alias == "" {
		if m.Alias = slug(card.Name); m.Alias == "" {
			return nil, flow.Errorf(flow.CodeInvalid, "the card's name %q makes no alias", card.Name).At("alias").Right("name one: letters, digits, dots, dashes and underscores")
		}
	}
	out := &PushOut{Bucket: b.ID, Key: manifestKey(m), Notices: []string{}}
	if in.Body.AsPubkey == "" {
		out.Notices = append(out.Notices, "the manifest has no agent id, so nobody can call the agent: push again with --as-pubkey")
	} else {
		m.AgentID = in.Body.AsPubkey + ":" + m.Alias
	}
	for _, notice := range []string{otherCredential(card), r.shut(ctx, in.Body.Card, card)} {
		if notice != "" {
			out.Notices = append(out.Notices, notice)
		}
	}
	if card.Description == "" {
		out.Notices = append(out.Notices, "the card has no description, which lists of agents show")
	}
	if err := r.put(ctx, by, b.ID, m, ""); err != nil {
		return nil, err
	}
	if in.Body.PublicBase != "" {
		b.PublicBase = in.Body.PublicBase
		did := by.Did("agents.push", "bucket/"+b.ID, r.c.Clock.Now(), map[string]any{"publicBase": b.PublicBase})
		if err := r.c.Services.PutBucket(ctx, b, did); err != nil {
			return nil, err
		}
		out.Notices = append(out.Notices, "the bucket's public base is kept; the server itself reads manifests from the bucket and does not use it")
	}
	if out.Manifest = m; m.AgentID != "" {
		if out.Called, err = r.called(ctx, by.Workspace, m.AgentID); err != nil {
			return nil, err
		}
		if out.Called != m.Version {
			out.Notices = append(out.Notices, "version "+out.Called+" is higher and goes on being called")
		}
	}
	return out, nil
}

// checkPush refuses what cannot be registered, and fills in what may be absent.
func (r *Registry) checkPush(ctx context.Context, by flow.Caller, in *PushIn) error {
	bad := func(field, message, fix string) error {
		return flow.Errorf(flow.CodeInvalid, "%s", message).At(field).Right(fix)
	}
	p := &in.Body
	p.AsPubkey = strings.ToLower(p.AsPubkey)
	if p.Version == "" {
		p.Version = "1.0.0"
	}
	if p.IdleTimeout == nil {
		idle := int64(flow.DefaultIdleTimeout / time.Second)
		p.IdleTimeout = &idle
	}
	if len(p.Scopes) == 0 {
		p.Scopes = []string{flow.DefaultScope}
	}
	switch {
	case p.Kind != flow.KindExternal:
		return bad("kind", "agents of the kind "+cmp.Or(p.Kind, "code")+" are not offered here", "external, for an agent that is hosted elsewhere")
	case p.Card == "":
		return bad("card", "it is required with the kind external", "the URL of the agent card, such as https://agent.example.com")
	case len(p.Card) > maxURL:
		return bad("card", "the URL is too long", fmt.Sprintf("at most %d bytes", maxURL))
	case p.Bucket == "":
		return bad("bucket", "it is required", "an id that buckets list prints; services create makes one")
	case p.Alias != "" && !isAlias(p.Alias):
		return bad("alias", fmt.Sprintf("%q cannot be an alias", p.Alias), "letters, digits, dots, dashes and underscores, without a colon, at most 100")
	case !isVersion(p.Version):
		return bad("version", fmt.Sprintf("%q is no semver", p.Version), "three numbers, such as 1.0.0")
	case *p.IdleTimeout <= 0 || *p.IdleTimeout > maxIdle:
		return bad("idleTimeout", "a conversation cannot survive for that long", "1 second to a year; the default is 30m")
	}
	if err := checkPublicBase(p.PublicBase); err != nil {
		return err
	}
	if err := checkScopes(p.Scopes); err != nil {
		return err
	}
	if err := r.checkService(ctx, by, p.AsPubkey); err != nil {
		return err
	}
	if p.Subject == "" {
		return nil
	}
	person, err := r.c.People.Person(ctx, by.Person)
	if err != nil {
		return err
	}
	if hex.EncodeToString(person.PublicKey) != p.Subject {
		return flow.Errorf(flow.CodeForbidden, "the subject is another person than the one whose access token is used").At("subject").
			Right("the phrase of the person who pushes")
	}
	return nil
}

func checkScopes(scopes []string) error {
	if len(scopes) > maxScopes {
		return flow.Errorf(flow.CodeInvalid, "%d scopes are too many", len(scopes)).At("scopes").Right(fmt.Sprintf("at most %d", maxScopes))
	}
	for _, s := range scopes {
		if !isAlias(s) {
			return flow.Errorf(flow.CodeInvalid, "%q is no scope's name", s).At("scopes").Right("letters, digits, dots, dashes and underscores")
		}
	}
	return nil
}

func (r *Registry) checkService(ctx context.Context, by flow.Caller, key string) error {
	if key == "" {
		return nil
	}
	if raw, err := hex.DecodeString(key); err != nil || len(raw) != 32 || strings.ToLower(key) != key {
		return flow.Errorf(flow.CodeInvalid, "it is no public key of an Agent Service").At("asPubkey").Right("64 hexadecimal digits in lower case, as services list prints")
	}
	_, err := r.c.Services.Service(ctx, by.Workspace, key)
	if flow.CodeOf(err) == flow.CodeNotFound {
		return flow.Errorf(flow.CodeInvalid, "the Agent Service %s is not held here", key).At("asPubkey").Right("one that services list prints; services create --secret-phrase imports one")
	}
	return err
}

// checkPublicBase refuses what nobody could read a bucket from; "" is none.
func checkPublicBase(base string) error {
	if base == "" {
		return nil
	}
	u, err := url.Parse(base)
	if err != nil || len(base) > maxURL || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return flow.Errorf(flow.CodeInvalid, "it is no URL that others could read the bucket from").At("publicBase").Right("such as https://cdn.example.com")
	}
	return nil
}

// put writes a manifest and indexes it. Its place in the bucket may hold an
// earlier push of the same agent, or of the one it follows.
func (r *Registry) put(ctx context.Context, by flow.Caller, bucketID string, m flow.Manifest, follows string) error {
	b, err := r.bucket(ctx, by, bucketID)
	if err != nil {
		return err
	}
	place, err := r.open(b)
	if err != nil {
		return err
	}
	key := manifestKey(m)
	there, err := place.Get(ctx, key)
	switch {
	case err == nil:
		var old flow.Manifest
		if json.Unmarshal(there, &old) == nil && old.AgentID != "" && old.AgentID != m.AgentID && old.AgentID != follows {
			if m.AgentID == "" {
				return flow.Errorf(flow.CodeConflict, "the bucket holds %s of %s, which would lose its id", key, old.AgentID).At("asPubkey").Right("--as-pubkey " + strings.SplitN(old.AgentID, ":", 2)[0] + ", or another alias")
			}
			return flow.Errorf(flow.CodeConflict, "the bucket holds %s of another Agent Service, %s", key, old.AgentID).At("alias").Right("another alias, or a bucket of its own for each service")
		}
	case flow.CodeOf(err) != flow.CodeNotFound:
		return err
	}
	body, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return flow.Errorf(flow.CodeInternal, "the manifest cannot be written").Because(err)
	}
	if err := place.Put(ctx, key, append(body, '\n')); err != nil {
		return err
	}
	if m.AgentID == "" {
		return nil
	}
	return r.index(ctx, by, m, "agents.push")
}

// index makes a manifest known to those who call agents.
func (r *Registry) index(ctx context.Context, by flow.Caller, m flow.Manifest, op string) error {
	service, _, _ := strings.Cut(m.AgentID, ":")
	now := r.c.Clock.Now()
	return r.c.Agents.PutAgent(ctx, flow.Agent{ID: m.AgentID, Workspace: by.Workspace, Service: service, Manifest: m, PushedBy: by.Person, PushedAt: now}, highest,
		by.Did(op, "agent/"+m.AgentID, now, map[string]any{"version": m.Version, "card": m.Card, "scopes": m.Scopes}))
}

// called is the version of an agent that is called; "" if it has none.
func (r *Registry) called(ctx context.Context, workspace, id string) (string, error) {
	a, err := r.c.Agents.Agent(ctx, workspace, id)
	if flow.CodeOf(err) == flow.CodeNotFound {
		return "", nil
	}
	return a.Manifest.Version, err
}

// highest is the highest of some versions; of those that differ in their build
// metadata only, the last.
func highest(versions []string) string {
	best := versions[0]
	for _, v := range versions[1:] {
		if semver.Compare("v"+v, "v"+best) >= 0 {
			best = v
		}
	}
	return best
}

func manifestKey(m flow.Manifest) string {
	return "agents/" + m.Alias + "/" + m.Version + "/manifest.json"
}

// slug makes an alias of a name.
func slug(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-") && (unicode.IsSpace(r) || unicode.IsPunct(r) || unicode.IsSymbol(r)):
			b.WriteByte('-')
		}
	}
	s := b.String()
	return strings.Trim(s[:min(len(s), maxAlias)], "-")
}

func isAlias(s string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`).MatchString(s)
}

// isVersion knows three numbers with what semver allows behind them.
func isVersion(s string) bool {
	return len(s) <= 100 && semver.IsValid("v"+s) && strings.Count(strings.SplitN(strings.SplitN(s, "-", 2)[0], "+", 2)[0], ".") == 2
}
