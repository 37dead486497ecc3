package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/longstop-dev/longstop/internal/chain"
	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/server"
	"github.com/longstop-dev/longstop/internal/show"
)

type auditCmd struct {
	List   auditListCmd   `cmd:"" help:"Who changed what, newest first."`
	Verify auditVerifyCmd `cmd:"" help:"Check that nothing of the record was changed, removed or added."`
	Export auditExportCmd `cmd:"" help:"Write the whole record as JSON lines, to keep and verify elsewhere."`
}

type auditListCmd struct {
	Person string `placeholder:"ID" help:"Only what this person did."`
	Op     string `placeholder:"NAME" help:"Only this operation, such as runs.start, or keys. for all of keys."`
	Target string `placeholder:"WHAT" help:"Only what was done to this, such as run/ID, or setting/ for all settings."`
	From   string `placeholder:"TIME" help:"From this instant on, such as 2026-01-31T00:00:00Z."`
	To     string `placeholder:"TIME" help:"Before this instant."`
	paging
	connection
}

// Help is shown under --help.
func (auditListCmd) Help() string {
	return `Examples:
  longstop audit list
  longstop audit list --op secrets. --from 2026-01-01T00:00:00Z
  longstop audit list --target run/RUN_ID`
}

// Run lists the record.
func (c *auditListCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		l, err := s.Audit(a.ctx, client.AuditFilter{Person: c.Person, Op: c.Op, Target: c.Target, From: c.From, To: c.To, Page: c.page()})
		if err != nil {
			return err
		}
		who := names(a, s)
		var rows [][]string
		for _, v := range l.Items {
			rows = append(rows, []string{fmt.Sprint(v.Seq), v.At.Local().Format(time.DateTime), who(v.Author), v.KeyID, v.Op, show.Line(v.Target, 60), show.Line(string(v.Details), 100)})
		}
		defer a.more(c.JSON, l.Next)
		return a.table(c.JSON, l, []string{"row", "when", "who", "key", "what", "to", "details"}, rows)
	})
}

// recordAfter gives the rows after one, the oldest first.
func recordAfter(a *app, s *session) func(int64) ([]flow.Audit, error) {
	return func(after int64) ([]flow.Audit, error) {
		f := client.AuditFilter{Oldest: true, Page: client.Page{Limit: 500}}
		if after > 0 {
			f.After = strconv.FormatInt(after, 10)
		}
		l, err := s.Audit(a.ctx, f)
		if err != nil {
			return nil, err
		}
		return l.Items, nil
	}
}

type auditExportCmd struct{ connection }

// exported is a line of an export: a row, or at the end the head.
type exported struct {
	flow.Audit
	Head *flow.AuditHead `json:"head,omitempty"`
}

// Help is shown under --help.
func (auditExportCmd) Help() string {
	return `Example:
  longstop audit export > audit.jsonl && longstop audit verify --file audit.jsonl`
}

// Run writes the record.
func (c *auditExportCmd) Run(a *app) error {
	return c.with(a, func(s *session) error {
		e := json.NewEncoder(a.out)
		e.SetEscapeHTML(false)
		read := recordAfter(a, s)
		head, err := s.AuditHead(a.ctx) // first: the record may grow meanwhile, and what came after is left out
		if err != nil {
			return err
		}
		for after := int64(0); after < head.Seq; {
			rows, err := read(after)
			if err != nil {
				return err
			}
			if len(rows) == 0 {
				break
			}
			for _, row := range rows {
				if after = row.Seq; after > head.Seq {
					break
				}
				if err := e.Encode(row); err != nil {
					return err
				}
			}
		}
		return e.Encode(map[string]any{"head": head})
	})
}

type auditVerifyCmd struct {
	Head      string `placeholder:"HASH" help:"A head that you kept: it must still be in the record."`
	File      string `placeholder:"FILE" help:"Without a server: an export, or a SQLite database file."`
	Workspace string `placeholder:"ID" help:"With a database: only this workspace's record."`
	connection
}

// Help is shown under --help.
func (auditVerifyCmd) Help() string {
	return `Examples:
  longstop audit verify
  longstop audit verify --head HASH
  longstop audit verify --file audit.jsonl
  longstop audit verify --file .longstop/longstop.db

Prints the head: keep it elsewhere, for whoever can write to the database can write the whole
record anew, and only a head that was kept shows that. Exits with 1 if the record is broken.`
}

// Run verifies the record.
func (c *auditVerifyCmd) Run(a *app) error {
	reports, err := c.reports(a)
	if err != nil {
		return err
	}
	ok := true
	for _, r := range reports {
		ok = ok && r.OK
	}
	if c.JSON {
		if err := a.printJSON(reports); err != nil {
			return err
		}
	} else {
		for _, name := range slices.Sorted(maps.Keys(reports)) {
			c.print(a, name, reports[name])
		}
	}
	if !ok {
		return status(exitFailed)
	}
	return nil
}

func (c *auditVerifyCmd) print(a *app, name string, r chain.Report) {
	if r.OK {
		fmt.Fprintf(a.out, "%s  %s: %d rows in %d links\nhead %s\n", a.ink.Good("whole"), show.Line(name, 200), r.Rows, r.Links, r.Head.Hash)
		return
	}
	where := fmt.Sprintf("row %d", r.Broken.First)
	if r.Broken.Last > r.Broken.First {
		where = fmt.Sprintf("rows %d to %d", r.Broken.First, r.Broken.Last)
	}
	fmt.Fprintf(a.out, "%s  %s: at %s: %s\nright up to row %d with head %s\n", a.ink.Bad("broken"), show.Line(name, 200), where, show.Line(r.Broken.Why, 400), r.Head.Seq, r.Head.Hash)
}

func (c *auditVerifyCmd) reports(a *app) (map[string]chain.Report, error) {
	if c.File == "" {
		return c.online(a)
	}
	f, err := os.Open(c.File)
	if err != nil {
		return nil, flow.Errorf(flow.CodeInvalid, "%s cannot be read", c.File).At("--file").Right("an export, or a SQLite database file").Because(err)
	}
	defer f.Close()
	begin := make([]byte, 16)
	n, err := io.ReadFull(f, begin)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, flow.Errorf(flow.CodeInvalid, "%s cannot be read", c.File).At("--file").Because(err)
	}
	if bytes.Equal(begin, []byte("SQLite format 3\x00")) {
		return server.VerifyDatabase(a.ctx, c.File, "", c.Workspace, c.Head)
	}
	r, err := verifyExport(io.MultiReader(bytes.NewReader(begin[:n]), f), c.Head)
	return map[string]chain.Report{c.File: r}, err
}

func (c *auditVerifyCmd) online(a *app) (out map[string]chain.Report, err error) {
	err = c.with(a, func(s *session) error {
		me, err := s.Me(a.ctx)
		if err != nil {
			return err
		}
		head := func() (flow.AuditHead, error) {
			h, err := s.AuditHead(a.ctx)
			if err != nil {
				return flow.AuditHead{}, err
			}
			return *h, nil
		}
		r, err := chain.Verify(c.Head, recordAfter(a, s), head)
		out = map[string]chain.Report{me.Workspace: r}
		return err
	})
	return out, err
}

// maxLine bounds a line of an export.
const maxLine = 8 << 20

// verifyExport verifies what export has written.
func verifyExport(r io.Reader, kept string) (chain.Report, error) {
	v := chain.NewVerifier(kept)
	var head *flow.AuditHead
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		row, err := exportedLine(lines.Bytes())
		if err == nil && head != nil {
			err = errors.New("it stands after the head")
		}
		if err != nil {
			return chain.Report{}, flow.Errorf(flow.CodeInvalid, "line %d is no row of the record", n).At("--file").Right("what longstop audit export writes").Because(err)
		}
		if row.Head != nil {
			head = row.Head
			continue
		}
		v.Add(row.Audit)
	}
	if err := lines.Err(); err != nil {
		return chain.Report{}, flow.Errorf(flow.CodeInvalid, "the file cannot be read: %v", err).At("--file")
	}
	if head == nil {
		return chain.Report{}, flow.Errorf(flow.CodeInvalid, "the export has no head at its end: it was cut off").At("--file").Right("what longstop audit export writes, whole")
	}
	return v.End(*head), nil
}

// exportedLine reads a line of an export, which stands there letter by letter
// as export writes it: what another reader could take for something else than
// what was hashed, such as a member that is given twice, must not pass.
func exportedLine(line []byte) (row exported, err error) {
	if err := json.Unmarshal(line, &row); err != nil {
		return row, err
	}
	row.At = row.At.UTC()
	var written any = row.Audit
	if row.Head != nil {
		written = map[string]any{"head": row.Head}
	}
	again, err := flow.PlainJSON(written)
	if err == nil && !bytes.Equal(line, again) {
		err = fmt.Errorf("it is written in another way than %s", show.Line(string(again), 200))
	}
	return row, err
}
