package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

type secretsCmd struct {
	List  secretsListCmd  `cmd:"" help:"The names of the secrets."`
	Set   secretsSetCmd   `cmd:"" help:"Store a secret; its value is read from standard input or asked for."`
	Unset secretsUnsetCmd `cmd:"" help:"Remove a secret."`
}

type secretsListCmd struct{ connection }

// Help is shown under --help.
func (secretsListCmd) Help() string {
	return `Example:
  longstop secrets list`
}

// Run lists the secrets' names.
func (c *secretsListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Secrets(a.ctx)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, v := range l.Items {
			rows = append(rows, []string{v.Name, ago(v.UpdatedAt), v.Problem})
		}
		return a.table(c.JSON, l, []string{"secret", "changed", ""}, rows)
	})
}

type secretsSetCmd struct {
	Name string `arg:"" help:"Templates use it as {{ secrets.NAME }}."`
	connection
}

// Help is shown under --help.
func (secretsSetCmd) Help() string {
	return "Example:\n  printf %s \"$TOKEN\" | longstop secrets set api"
}

// Run stores a secret.
func (c *secretsSetCmd) Run(a *app) error {
	value, err := a.secretValue()
	if err != nil {
		return err
	}
	return c.with(a, func(s *session) error {
		v, err := s.PutSecret(a.ctx, c.Name, value)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(v)
		}
		fmt.Fprintf(a.out, "stored %s\n", v.Name)
		return nil
	})
}

// secretValue reads a value without showing it: never from an argument, which
// other people on the machine can see.
func (a *app) secretValue() (string, error) {
	if f, ok := a.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(a.err, "value: ")
		was, err := term.GetState(int(f.Fd()))
		if err != nil {
			return "", err
		}
		b, err := awaited(a.ctx, func() ([]byte, error) { return term.ReadPassword(int(f.Fd())) })
		if a.ctx.Err() != nil { // the terminal shows again what is typed
			err = errors.Join(err, term.Restore(int(f.Fd()), was))
		}
		fmt.Fprintln(a.err)
		return string(b), err
	}
	b, err := a.value("-")
	return strings.TrimRight(string(b), "\r\n"), err
}

type secretsUnsetCmd struct {
	Name string `arg:""`
	connection
}

// Help is shown under --help.
func (secretsUnsetCmd) Help() string {
	return `Example:
  longstop secrets unset api`
}

// Run removes a secret.
func (c *secretsUnsetCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		if err := s.DeleteSecret(a.ctx, c.Name); err != nil {
			return err
		}
		return c.said(a, "removed %s\n", c.Name)
	})
}
