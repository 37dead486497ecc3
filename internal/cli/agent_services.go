package cli

import (
	"fmt"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/show"
)

type servicesCmd struct {
	List   servicesListCmd   `cmd:"" help:"The workspace's Agent Services."`
	Create servicesCreateCmd `cmd:"" help:"Make an Agent Service, or import its key; makes a bucket if there is none."`
	Rotate servicesRotateCmd `cmd:"" help:"Give its agents a new key and move their connections."`
}

type servicesListCmd struct{ connection }

// Help is shown under --help.
func (servicesListCmd) Help() string {
	return `Example:
  longstop services list`
}

// Run lists Agent Services.
func (c *servicesListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.AgentServices(a.ctx)
		if err != nil {
			return err
		}
		rotated := map[string]bool{}
		for _, v := range l.Items {
			rotated[v.Replaces] = true
		}
		var rows [][]string
		for _, v := range l.Items {
			is := mark(v.Default)
			if rotated[v.PublicKey] {
				is = "rotated"
			}
			rows = append(rows, []string{v.PublicKey, show.Line(v.Name, 60), v.Bucket, is})
		}
		return a.table(c.JSON, l, []string{"public key", "name", "bucket", ""}, rows)
	})
}

func mark(def bool) string {
	if def {
		return "default"
	}
	return ""
}

type servicesCreateCmd struct {
	Name         string `arg:"" optional:"" help:"A name for people."`
	SecretPhrase string `placeholder:"WORDS" help:"Import the key of a BIP-39 phrase, or @file; the server keeps it sealed."`
	Bucket       string `placeholder:"ID" help:"Where its manifests go. Default: the workspace's default bucket."`
	Default      bool   `help:"Make it the workspace's default."`
	connection
}

// Help is shown under --help.
func (servicesCreateCmd) Help() string {
	return `Examples:
  longstop services create
  longstop services create "the sales agents" --secret-phrase @phrase.txt`
}

// Run makes an Agent Service.
func (c *servicesCreateCmd) Run(a *app) error {
	words, err := a.phraseArg(c.SecretPhrase)
	if err != nil {
		return err
	}
	return c.with(a, func(s *session) error {
		v, err := s.CreateAgentService(a.ctx, client.NewAgentService{Name: c.Name, Phrase: words, Bucket: c.Bucket, Default: c.Default})
		if err != nil {
			return flagged(err)
		}
		if c.JSON {
			return a.printJSON(v)
		}
		fmt.Fprintf(a.out, "public key  %s\nbucket      %s\n", v.PublicKey, v.Bucket)
		fmt.Fprintln(a.out, a.ink.Faint("register an agent: longstop push --kind external --card URL --bucket "+v.Bucket+" --as-pubkey "+v.PublicKey+c.where()))
		return nil
	})
}

type servicesRotateCmd struct {
	Key string `arg:"" help:"The public key that is replaced."`
	connection
}

// Help is shown under --help.
func (servicesRotateCmd) Help() string {
	return `Example:
  longstop services rotate PUBKEY

The agents are pushed again under the new key, and so have new ids: workflows and events
that name them have to follow. The old key stays published for tokens that are about.
A rotation that breaks off goes on, to the same new key, when it is run again.`
}

// Run rotates a key.
func (c *servicesRotateCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		v, err := s.RotateAgentService(a.ctx, c.Key)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(v)
		}
		fmt.Fprintf(a.out, "public key  %s\n", v.Service.PublicKey)
		for _, id := range v.Agents {
			fmt.Fprintf(a.out, "moved       %s\n", id)
		}
		return nil
	})
}

type bucketsCmd struct {
	List    bucketsListCmd    `cmd:"" help:"The workspace's buckets."`
	Create  bucketsCreateCmd  `cmd:"" help:"Make a bucket."`
	Reindex bucketsReindexCmd `cmd:"" help:"Build the index of a bucket's manifests again."`
}

type bucketsListCmd struct{ connection }

// Help is shown under --help.
func (bucketsListCmd) Help() string {
	return `Example:
  longstop buckets list`
}

// Run lists buckets.
func (c *bucketsListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Buckets(a.ctx)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, b := range l.Items {
			rows = append(rows, []string{b.ID, show.Line(b.URL, 100), mark(b.Default)})
		}
		return a.table(c.JSON, l, []string{"id", "url", ""}, rows)
	})
}

type bucketsCreateCmd struct {
	URL        string `arg:"" optional:"" help:"file:///DIR or s3://NAME/PREFIX?endpoint=URL&region=REGION, where the operator opened them. Default: a folder of the server's own."`
	PublicBase string `placeholder:"URL" help:"Where others read it from."`
	Default    bool   `help:"Make it the workspace's default."`
	connection
}

// Help is shown under --help.
func (bucketsCreateCmd) Help() string {
	return `Examples:
  longstop buckets create
  longstop buckets create "s3://manifests/agents?region=eu-west-1"`
}

// Run makes a bucket.
func (c *bucketsCreateCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		b, err := s.CreateBucket(a.ctx, client.NewBucket{URL: c.URL, PublicBase: c.PublicBase, Default: c.Default})
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(b)
		}
		fmt.Fprintf(a.out, "%s  %s\n", b.ID, b.URL)
		return nil
	})
}

type bucketsReindexCmd struct {
	ID string `arg:"" help:"The bucket's id."`
	connection
}

// Help is shown under --help.
func (bucketsReindexCmd) Help() string {
	return `Example:
  longstop buckets reindex BUCKET`
}

// Run reindexes a bucket.
func (c *bucketsReindexCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		v, err := s.Reindex(a.ctx, c.ID)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(v)
		}
		fmt.Fprintf(a.out, "%d manifests indexed\n", v.Indexed)
		for _, left := range v.Left {
			fmt.Fprintf(a.out, "left out: %s\n", show.Line(left, 300))
		}
		return nil
	})
}
