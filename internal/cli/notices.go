package cli

import (
	"fmt"

	"github.com/longstop-dev/longstop/internal/show"
)

type noticesCmd struct {
	List noticesListCmd `cmd:"" help:"What was told to notify.url and what waits to be, newest first."`
	Test noticesTestCmd `cmd:"" help:"Send a signed test notice, once."`
}

type noticesListCmd struct {
	paging
	connection
}

// Help is shown under --help.
func (noticesListCmd) Help() string {
	return `Notices are signed webhooks: a gate has opened, a reminder is due, a run has failed.

Examples:
  longstop settings set notify.url https://hooks.example.com/longstop
  echo whsec_$(openssl rand -base64 32) | longstop settings set notify.secret -
  longstop notices list`
}

// Run lists notices.
func (c *noticesListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Notices(a.ctx, c.page())
		if err != nil {
			return err
		}
		var rows [][]string
		for _, n := range l.Items {
			next := ""
			if n.DueAt != nil {
				next = ago(*n.DueAt)
			}
			rows = append(rows, []string{n.ID, n.Type, n.RunID, n.State, fmt.Sprint(n.Tries), show.Line(n.Error, 60), ago(n.CreatedAt), next})
		}
		defer a.more(c.JSON, l.Next)
		return a.table(c.JSON, l, []string{"notice", "type", "run", "state", "tries", "last error", "written", "next try"}, rows)
	})
}

type noticesTestCmd struct{ connection }

// Help is shown under --help.
func (noticesTestCmd) Help() string {
	return `Example:
  longstop notices test`
}

// Run sends a test notice.
func (c *noticesTestCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		v, err := s.TestNotice(a.ctx)
		if err != nil {
			return err
		}
		switch {
		case c.JSON:
			err = a.printJSON(v)
		case v.Delivered:
			fmt.Fprintf(a.out, "%s HTTP %d in %s: the receiver has %s\n", a.ink.Good("✓"), v.Status, show.Millis(v.DurationMS), v.ID)
		default:
			fmt.Fprintf(a.out, "%s %s\n", a.ink.Bad("✗"), show.Line(v.Error, 200))
		}
		if err == nil && !v.Delivered {
			return status(exitFailed)
		}
		return err
	})
}
