package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/show"
)

// printJSON prints a value for machines.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// table prints rows for people, or what they were made of for machines.
func (a *app) table(asJSON bool, v any, header []string, rows [][]string) error {
	if asJSON {
		return a.printJSON(v)
	}
	if len(rows) == 0 {
		fmt.Fprintln(a.out, a.ink.Faint("none"))
		return nil
	}
	show.Table(a.out, a.ink, header, rows)
	return nil
}

// paging is the part of a long list that is asked for.
type paging struct {
	After string `help:"The cursor that the page before gave."`
	Limit int    `help:"How many at most."`
}

func (p paging) page() client.Page { return client.Page{After: p.After, Limit: p.Limit} }

// said tells people that something was done; a machine has the exit code.
func (c connection) said(a *app, format string, args ...any) error {
	if !c.JSON {
		fmt.Fprintf(a.out, format, args...)
	}
	return nil
}

// more tells people that a list goes on; machines find it in the list.
func (a *app) more(asJSON bool, next string) {
	if next != "" && !asJSON {
		fmt.Fprintln(a.out, a.ink.Faint("more: --after "+next))
	}
}

func ago(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	d := time.Since(t).Round(time.Second)
	switch {
	case d < 0:
		return "in " + (-d).String()
	case d < time.Hour:
		return d.String() + " ago"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// value reads an argument that may stand in a file (@name) or come from
// standard input (-).
func (a *app) value(arg string) ([]byte, error) {
	switch {
	case arg == "-":
		return awaited(a.ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(a.in, maxValue)) })
	case strings.HasPrefix(arg, "@"):
		b, err := readFile(a.ctx, arg[1:], maxValue)
		if err != nil {
			return nil, unreadable(arg[1:], err, "name a file that is there")
		}
		return b, nil
	}
	return []byte(arg), nil
}

// quoted is an argument as a shell takes it.
func quoted(s string) string {
	special := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("./:_-%@+=,", r))
	}
	if s != "" && strings.IndexFunc(s, special) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// where says what is wrong with JSON, and in which line and column.
func where(b []byte, err error) string {
	var bad *json.SyntaxError
	if !errors.As(err, &bad) {
		return err.Error()
	}
	line, column := flow.Place(b, int(bad.Offset)-1)
	return fmt.Sprintf("line %d, column %d: %v", line, column, bad)
}

// jsonArg reads an argument that must be JSON; an empty one is nil.
func (a *app) jsonArg(flag, arg string) (json.RawMessage, error) {
	if arg == "" {
		return nil, nil
	}
	b, err := a.value(arg)
	if err != nil {
		return nil, asFlow(err).At(flag)
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		what := "it"
		if file, ok := strings.CutPrefix(arg, "@"); ok {
			what = file
		}
		return nil, flow.Errorf(flow.CodeInvalid, "%s is not JSON: %s", what, where(b, err)).At(flag).Right(`such as '{"userId": 42}', or @file`)
	}
	return b, nil
}
