package cli

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

type vaultsCmd struct {
	List   vaultsListCmd   `cmd:"" help:"The workspace's vaults."`
	Create vaultsCreateCmd `cmd:"" help:"Make a vault, which you own."`
	Show   vaultsShowCmd   `cmd:"" help:"A vault, and who was let in."`
	Delete vaultsDeleteCmd `cmd:"" help:"Remove a vault of yours with all that is in it."`
	Append vaultsAppendCmd `cmd:"" help:"Append an event; one with a target asks that agent."`
	Events vaultsEventsCmd `cmd:"" help:"A vault's events; --follow goes on."`
}

type vaultsListCmd struct{ connection }

// Help is shown under --help.
func (vaultsListCmd) Help() string {
	return `Example:
  longstop vaults list`
}

// Run lists vaults.
func (c *vaultsListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Vaults(a.ctx)
		if err != nil {
			return err
		}
		who := names(a, s)
		var rows [][]string
		for _, v := range l.Items {
			rows = append(rows, []string{v.ID, show.Line(v.Name, 60), spaced(v.Scopes), fmt.Sprint(v.Seq), who(v.Owner)})
		}
		return a.table(c.JSON, l, []string{"id", "name", "scopes", "events", "owner"}, rows)
	})
}

type vaultsCreateCmd struct {
	Name      string   `arg:"" help:"Its name in the workspace."`
	Scope     []string `placeholder:"NAME" help:"A scope beside default. Repeatable."`
	Retention int      `placeholder:"DAYS" help:"Events older than this are removed; 0 keeps all."`
	connection
}

// Help is shown under --help.
func (vaultsCreateCmd) Help() string {
	return `Example:
  longstop vaults create orders --scope mail --retention 90`
}

// Run makes a vault.
func (c *vaultsCreateCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		v, err := s.CreateVault(a.ctx, client.NewVault{Name: c.Name, Scopes: c.Scope, RetentionDays: c.Retention})
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(v)
		}
		fmt.Fprintf(a.out, "%s  %s\n", v.ID, v.Name)
		fmt.Fprintln(a.out, a.ink.Faint("let an agent in: longstop connections create "+quoted(v.Name)+" AGENT"+c.where()))
		return nil
	})
}

type vaultsShowCmd struct {
	ID string `arg:"" help:"The vault's id or name."`
	connection
}

// Help is shown under --help.
func (vaultsShowCmd) Help() string {
	return `Example:
  longstop vaults show orders`
}

// Run shows a vault.
func (c *vaultsShowCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		v, err := s.Vault(a.ctx, c.ID)
		if err != nil {
			return err
		}
		l, err := s.Connections(a.ctx, v.ID)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(struct {
				*client.Vault
				Connections []client.Connection `json:"connections"`
			}{v, l.Items})
		}
		fmt.Fprintf(a.out, "%s  %s\nscopes  %s\nevents  %d\nowner   %s\n\n", v.ID, show.Line(v.Name, 100), spaced(v.Scopes), v.Seq, names(a, s)(v.Owner))
		return a.table(false, nil, connectionHeader(), connectionRows(l.Items))
	})
}

type vaultsDeleteCmd struct {
	ID  string `arg:"" help:"The vault's id or name."`
	Yes bool   `help:"Remove it with all that is in it; nothing is asked."`
	connection
}

// Help is shown under --help.
func (vaultsDeleteCmd) Help() string {
	return `Example:
  longstop vaults delete orders --yes`
}

// Run removes a vault.
func (c *vaultsDeleteCmd) Run(a *app) error {
	if !c.Yes {
		return flow.Errorf(flow.CodeInvalid, "the vault would be gone with all that is in it").At("--yes").Right("give --yes to remove it")
	}
	return c.with(a, func(s *session) error {
		if err := s.DeleteVault(a.ctx, c.ID); err != nil {
			return err
		}
		return c.said(a, "removed %s with all that was in it\n", c.ID)
	})
}

type vaultsAppendCmd struct {
	Vault    string   `arg:"" help:"The vault's id or name."`
	Type     string   `required:"" placeholder:"TYPE" help:"Such as order.placed."`
	Scope    string   `placeholder:"NAME" help:"One of the vault's. Default: default."`
	Target   string   `placeholder:"AGENT" help:"An agent's id or alias: it is asked."`
	Text     string   `placeholder:"TEXT" help:"payload.text; @file, or - for standard input."`
	Payload  string   `placeholder:"JSON" help:"The payload, an object; or @file."`
	Metadata string   `placeholder:"JSON" help:"metadata, an object: correlation is echoed by the answer, conversation names the Job."`
	Parent   []string `placeholder:"EVENT" help:"An event of the vault that this one follows. Repeatable."`
	Once     string   `name:"idempotency-key" placeholder:"KEY" help:"Sent again with the same content, this appends nothing more."`
	connection
}

// Help is shown under --help.
func (vaultsAppendCmd) Help() string {
	return `Examples:
  longstop vaults append orders --type order.placed --payload '{"id": 7}'
  longstop vaults append orders --type question.asked --target helper --text "Is order 7 late?"`
}

// Run appends an event.
func (c *vaultsAppendCmd) Run(a *app) error {
	e := client.NewEvent{Scope: c.Scope, Type: c.Type, Target: c.Target, Parents: c.Parent}
	var err error
	if e.Payload, err = a.jsonArg("--payload", c.Payload); err != nil {
		return err
	}
	if e.Metadata, err = a.jsonArg("--metadata", c.Metadata); err != nil {
		return err
	}
	if c.Text != "" {
		text, err := a.value(c.Text)
		if err != nil {
			return err
		}
		if e.Payload, err = withText(e.Payload, string(text)); err != nil {
			return err
		}
	}
	return c.with(a, func(s *session) error {
		if e.Target, err = s.agentID(a, c.Target); err != nil {
			return err
		}
		v, err := s.AppendEvent(a.ctx, c.Vault, e, c.Once)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(v)
		}
		a.event(*v)
		return nil
	})
}

// withText puts a text into a payload, which is an object or nothing.
func withText(payload json.RawMessage, text string) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(payload) > 0 && (json.Unmarshal(payload, &members) != nil || members == nil) {
		return nil, flow.Errorf(flow.CodeInvalid, "it is not an object").At("--payload").Right(`such as '{"order": 7}'`)
	}
	if _, there := members["text"]; there {
		return nil, flow.Errorf(flow.CodeInvalid, "it has a text already, and another one is given").At("--payload").Right("one of them")
	}
	var err error
	if members["text"], err = json.Marshal(text); err != nil {
		return nil, err
	}
	return json.Marshal(members)
}

// agentID is the id behind an alias; "" stays.
func (s *session) agentID(a *app, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	v, err := s.Agent(a.ctx, name)
	if err != nil {
		return name, err
	}
	return v.ID, nil
}

type vaultsEventsCmd struct {
	Vault       string `arg:"" help:"The vault's id or name."`
	After       int64  `placeholder:"SEQ" help:"Only those with a higher sequence number."`
	Scope       string `placeholder:"NAME" help:"Only those of a scope."`
	Type        string `placeholder:"TYPE" help:"Only those of a type."`
	Correlation string `placeholder:"VALUE" help:"Only those with this metadata.correlation."`
	ParentID    string `name:"parent" placeholder:"EVENT" help:"Only those that follow an event."`
	Limit       int    `default:"100" help:"How many at most."`
	Follow      bool   `help:"Go on with what is appended, until Ctrl-C."`
	connection
}

// Help is shown under --help.
func (vaultsEventsCmd) Help() string {
	return `Examples:
  longstop vaults events orders --type agent.answered
  longstop vaults events orders --follow --after 120`
}

// Run lists events.
func (c *vaultsEventsCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		if c.Follow {
			if c.Scope+c.Type+c.Correlation+c.ParentID != "" {
				return flow.Errorf(flow.CodeInvalid, "what is followed cannot be narrowed").At("--follow").Right("without --scope, --type, --correlation and --parent")
			}
			return s.FollowVault(a.ctx, c.Vault, c.After, func(e flow.VaultEvent) error {
				if c.JSON {
					return a.printJSON(e)
				}
				a.event(e)
				return nil
			})
		}
		f := client.EventFilter{Scope: c.Scope, Type: c.Type, Correlation: c.Correlation, Parent: c.ParentID}
		f.After, f.Limit = c.After, c.Limit
		l, err := s.VaultEvents(a.ctx, c.Vault, f)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(l)
		}
		for _, e := range l.Items {
			a.event(e)
		}
		a.more(c.JSON, l.Next)
		return nil
	})
}

// event prints an event in a line or two: who said what to whom.
func (a *app) event(e flow.VaultEvent) {
	var p struct{ Text, Message, Prompt, Question, Body, Error, Code string }
	text := string(e.Payload)
	if json.Unmarshal(e.Payload, &p) == nil {
		text = cmp.Or(p.Error, p.Text, p.Message, p.Prompt, p.Question, p.Body, text)
	}
	if p.Code != "" {
		text = p.Code + ": " + text
	}
	who := string(e.Author.Kind)
	if e.Author.Kind == flow.AuthorAgent {
		who = flow.Alias(e.Author.ID)
	}
	if e.Target != "" {
		who += " to " + flow.Alias(e.Target)
	}
	fmt.Fprintf(a.out, "%6d  %s  %s  %s  %s\n", e.Seq, e.At.Local().Format("15:04:05"),
		a.ink.Bold(show.Line(e.Type, 60)), a.ink.Faint(show.Line(who, 60)), show.Line(text, 200))
}
