package cli

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/phrase"
	"github.com/longstop-dev/longstop/internal/show"
)

type pushCmd struct {
	Kind          string   `placeholder:"KIND" help:"external: the agent is hosted elsewhere. No other kind is offered here."`
	Card          string   `placeholder:"URL" help:"The agent card's URL, required; a bare origin gets /.well-known/agent-card.json appended."`
	Bucket        string   `placeholder:"ID" help:"The Agent Service's bucket, required; buckets list prints them."`
	AsPubkey      string   `placeholder:"HEX" help:"The Agent Service's public key, which forms the agent id <pubkey>:<alias>. Without it the manifest has no agent id."`
	Alias         string   `placeholder:"NAME" help:"The registry alias, without a colon. Default: a slug of the card's name."`
	AgentVersion  string   `default:"1.0.0" placeholder:"SEMVER" help:"The version to register. Default: ${default}."`
	Scope         []string `default:"default" placeholder:"NAME" help:"The vault scopes the agent asks for: --scope a b, --scope a,b or --scope a --scope b. Default: ${default}."`
	IdleTimeout   string   `default:"30m" placeholder:"DURATION" help:"How long a conversation survives with no events. Default: ${default}."`
	SecretPhrase  string   `placeholder:"WORDS" help:"The Agent Service's phrase, or @file: checked against --as-pubkey; it is sent nowhere."`
	SubjectPhrase string   `placeholder:"WORDS" help:"The phrase of the person who pushes, or @file: it must be the one whose access token is used; it is sent nowhere."`
	AccessToken   string   `placeholder:"KEY" help:"The API key: another name of --key."`
	CDN           string   `name:"cdn" placeholder:"URL" help:"Where others read the bucket from; kept with the bucket."`
	codeAgents
	connection
}

// codeAgents are the flags that belong to agents whose code is pushed.
type codeAgents struct {
	Agent      *string `hidden:"" help:"Of code agents only."`
	Out        *string `hidden:"" help:"Of code agents only."`
	Vault      *string `hidden:"" help:"Of code agents only."`
	VaultScope *string `hidden:"" help:"Of code agents only."`
	VaultAPI   *string `hidden:"" name:"vault-api" help:"Of code agents only."`
	VaultToken *string `hidden:"" help:"Of code agents only."`
}

// given is the first of the flags that was given; "" for none.
func (c *codeAgents) given() string {
	for _, f := range []struct {
		flag  string
		value *string
	}{
		{"--agent", c.Agent}, {"--out", c.Out}, {"--vault", c.Vault},
		{"--vault-scope", c.VaultScope}, {"--vault-api", c.VaultAPI}, {"--vault-token", c.VaultToken},
	} {
		if f.value != nil {
			return f.flag
		}
	}
	return ""
}

// Help is shown under --help.
func (pushCmd) Help() string {
	return `Example:
  longstop push --kind external --card https://agent.example.com \
    --bucket BUCKET --as-pubkey PUBKEY

Of the agent only the card's URL is stored; the card is read again at every call.
services create makes the key and the bucket.`
}

// joined makes one argument of the scopes that push --scope a b has.
func joined(args []string) []string {
	if len(args) == 0 || args[0] != "push" {
		return args
	}
	var out []string
	for i := 0; i < len(args); i++ {
		if args[i] != "--scope" {
			out = append(out, args[i])
			continue
		}
		var names []string
		for i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i++
			names = append(names, args[i])
		}
		out = append(out, "--scope="+strings.Join(names, ","))
	}
	return out
}

// Run registers the agent.
func (c *pushCmd) Run(a *app) error {
	p, err := c.check(a)
	if err != nil {
		return err
	}
	if c.AccessToken != "" {
		c.Key = c.AccessToken
	}
	return c.with(a, func(s *session) error {
		out, err := s.PushAgent(a.ctx, p)
		if err != nil {
			return flagged(err)
		}
		if c.JSON {
			return a.printJSON(out)
		}
		fmt.Fprintf(a.out, "%s %s  %s\n", show.Line(out.Name, 100), out.Version, out.Card)
		if out.AgentID != "" {
			fmt.Fprintf(a.out, "agent id  %s\n", out.AgentID)
		}
		fmt.Fprintf(a.out, "manifest  %s in %s\n", out.Key, out.Bucket)
		for _, n := range out.Notices {
			fmt.Fprintf(a.out, "note: %s\n", show.Line(n, 300))
		}
		if out.AgentID != "" {
			fmt.Fprintln(a.out, a.ink.Faint("ask it: longstop agents try "+out.Alias+" \"hello\""+c.where()))
		}
		return nil
	})
}

// flagged names the flag instead of the member that the server does not like.
func flagged(err error) error {
	e := asFlow(err)
	flag, known := map[string]string{
		"kind": "--kind", "card": "--card", "bucket": "--bucket", "asPubkey": "--as-pubkey", "alias": "--alias", "version": "--agent-version",
		"scopes": "--scope", "idleTimeout": "--idle-timeout", "publicBase": "--cdn", "subject": "--subject-phrase", "phrase": "--secret-phrase",
	}[e.Field]
	if !known {
		return err
	}
	named := *e
	named.Field = flag
	return &named
}

// check refuses what cannot be pushed and says by which flag.
func (c *pushCmd) check(a *app) (client.Push, error) {
	var p client.Push
	bad := func(flag, message, fix string) (client.Push, error) {
		return p, flow.Errorf(flow.CodeInvalid, "%s", message).At(flag).Right(fix)
	}
	if c.Kind != flow.KindExternal {
		if c.Card != "" {
			return bad("--card", "it is only for --kind external", "add --kind external")
		}
		if c.Kind == "" {
			return bad("--kind", "it is required, with --card and --bucket", "--kind external --card URL --bucket ID, for an agent that is hosted elsewhere")
		}
		return bad("--kind", "agents of the kind "+c.Kind+" are not offered here", "--kind external --card URL, for an agent that is hosted elsewhere")
	}
	if flag := c.given(); flag != "" {
		return bad(flag, "it is only for code agents, and is refused with --kind external", "leave it out")
	}
	switch {
	case c.Card == "":
		return bad("--card", "it is required with --kind external", "the agent card's URL, such as https://agent.example.com")
	case c.Bucket == "":
		return bad("--bucket", "it is required", "an id that longstop buckets list prints; longstop services create makes one")
	case strings.Contains(c.Alias, ":"):
		return bad("--alias", "an alias cannot contain a colon", "letters, digits, dots, dashes and underscores")
	case c.AccessToken != "" && c.Key != "" && c.AccessToken != c.Key:
		return bad("--access-token", "--key and --access-token are two names of the same thing and differ here", "one of them")
	}
	idle, err := parseIdle(c.IdleTimeout)
	if err != nil {
		return p, err
	}
	if err := c.checkPhrases(a, &p); err != nil {
		return p, err
	}
	p.Kind, p.Card, p.Bucket, p.AsPubkey, p.Alias, p.Version, p.PublicBase = c.Kind, c.Card, c.Bucket, c.AsPubkey, c.Alias, c.AgentVersion, c.CDN
	p.IdleTimeout, p.Scopes = int64(idle/time.Second), c.Scope
	return p, nil
}

// checkPhrases derives keys of phrases and compares: no phrase leaves this
// process.
func (c *pushCmd) checkPhrases(a *app, p *client.Push) error {
	if c.SecretPhrase != "" {
		key, err := a.keyOf("--secret-phrase", c.SecretPhrase)
		if err != nil {
			return err
		}
		if c.AsPubkey == "" {
			return flow.Errorf(flow.CodeInvalid, "the phrase is that of %s, and no Agent Service is named", key).At("--secret-phrase").Right("--as-pubkey " + key)
		}
		if key != c.AsPubkey {
			return flow.Errorf(flow.CodeInvalid, "the phrase is that of another Agent Service than --as-pubkey names").At("--secret-phrase").
				Right("the phrase of " + c.AsPubkey)
		}
	}
	if c.SubjectPhrase == "" {
		return nil
	}
	key, err := a.keyOf("--subject-phrase", c.SubjectPhrase)
	p.Subject = key
	return err
}

// keyOf is the public key, in hex, of a phrase that stands in an argument or
// in a file.
func (a *app) keyOf(flag, words string) (string, error) {
	text, err := a.value(words)
	if err != nil {
		return "", err
	}
	private, err := phrase.Key(string(text))
	if err != nil {
		return "", asFlow(err).At(flag)
	}
	return hex.EncodeToString(private.Public().(ed25519.PublicKey)), nil
}

// parseIdle reads a duration such as 30m or 1d.
func parseIdle(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok && err != nil {
		var n uint64
		if n, err = strconv.ParseUint(days, 10, 16); err == nil {
			d = time.Duration(n) * 24 * time.Hour
		}
	}
	if err != nil || d < time.Second || d > 365*24*time.Hour || d%time.Second != 0 {
		return 0, flow.Errorf(flow.CodeInvalid, "%q is no time for which a conversation can survive", text).At("--idle-timeout").
			Right("whole seconds from 1s to 365d, such as 30m, 2h or 1d; 0 is refused")
	}
	return d, nil
}

// phraseArg reads a phrase that stands in an argument or in a file.
func (a *app) phraseArg(words string) (string, error) {
	b, err := a.value(words)
	return strings.TrimSpace(string(b)), err
}
