package chain

import (
	"fmt"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Report is what a verification has found.
type Report struct {
	OK     bool           `json:"ok"`
	Rows   int64          `json:"rows"`
	Links  int64          `json:"links"`
	Head   flow.AuditHead `json:"head"` // as far as it was right
	Broken *Break         `json:"broken,omitempty"`
}

// Break is the first place where a record is not what was written: among the
// rows First to Last.
type Break struct {
	First int64  `json:"first"`
	Last  int64  `json:"last"`
	Why   string `json:"why"`
}

// Verifier checks a record, row by row from the first on.
type Verifier struct {
	kept string // a head that somebody has kept, "" for none
	seen bool

	workspace string
	report    Report
	first     int64 // of the link that is being read
	rows      [][]byte
}

// NewVerifier makes a Verifier. The head that somebody has kept, if it is not
// empty, must turn up in the record.
func NewVerifier(kept string) *Verifier {
	return &Verifier{kept: kept, first: 1}
}

// Add takes the next row. After the first break it takes nothing more.
func (v *Verifier) Add(a flow.Audit) {
	if v.report.Broken != nil {
		return
	}
	next := v.first + int64(len(v.rows))
	if a.Seq != next {
		v.fail(min(next, a.Seq), max(next, a.Seq)-1, fmt.Sprintf("row %d follows where row %d must: rows are missing, moved or written twice", a.Seq, next))
		return
	}
	if v.workspace == "" {
		v.workspace = a.Workspace
	}
	text, err := Canonical(a)
	switch {
	case err != nil:
		v.fail(a.Seq, a.Seq, "the row cannot be read: "+err.Error())
		return
	case a.Workspace != v.workspace:
		v.fail(a.Seq, a.Seq, "the row is another workspace's")
		return
	}
	v.rows = append(v.rows, text)
	v.report.Rows++
	if a.Hash == "" {
		return
	}
	if want := Link(v.report.Head.Hash, v.first, v.rows); a.Hash != want {
		v.fail(v.first, a.Seq, fmt.Sprintf("the hash at row %d is %s, and these rows after what comes before give %s: one of them was changed, moved, added or removed", a.Seq, brief(a.Hash), brief(want)))
		return
	}
	v.report.Links++
	v.report.Head = flow.AuditHead{Seq: a.Seq, Hash: a.Hash}
	v.seen = v.seen || a.Hash == v.kept
	v.first, v.rows = a.Seq+1, v.rows[:0]
}

// Head gives how far the record was right.
func (v *Verifier) Head() flow.AuditHead { return v.report.Head }

// Broken reports whether a break was found already.
func (v *Verifier) Broken() bool { return v.report.Broken != nil }

// End says what came of it. The head is what is stored beside the rows.
func (v *Verifier) End(stored flow.AuditHead) Report {
	got := v.report.Head
	switch {
	case v.report.Broken != nil:
	case len(v.rows) > 0:
		v.fail(v.first, v.first+int64(len(v.rows))-1, "the last rows have no hash: what came after them was removed, or they were added")
	case got.Seq < stored.Seq:
		v.fail(got.Seq+1, stored.Seq, fmt.Sprintf("the record ends with row %d, and its head is row %d: the rows between were removed", got.Seq, stored.Seq))
	case got != stored:
		v.fail(stored.Seq+1, got.Seq, fmt.Sprintf("the head is row %d with %s, and the record ends with row %d and %s: the head was changed, or rows were added",
			stored.Seq, brief(stored.Hash), got.Seq, brief(got.Hash)))
	case v.kept != "" && !v.seen:
		v.fail(1, got.Seq, "the head that was kept, "+brief(v.kept)+", is nowhere in the record: it was cut, or written anew from some row on")
	case got.Seq == 0:
		v.fail(1, 1, "there is no row at all, and a workspace's record begins when it is made: it was emptied")
	}
	v.report.OK = v.report.Broken == nil
	return v.report
}

// Verify checks a whole record: page gives some rows after a seq, the oldest
// first, and none at the end; head what is stored beside them. While a record
// grows, it is read on until it stands still or has been caught up with.
func Verify(kept string, page func(after int64) ([]flow.Audit, error), head func() (flow.AuditHead, error)) (Report, error) {
	v := NewVerifier(kept)
	var stored flow.AuditHead
	for range 100 {
		before, err := v.read(page)
		if err != nil {
			return Report{}, err
		}
		if stored, err = head(); err != nil {
			return Report{}, err
		}
		still := before == v.first+int64(len(v.rows))-1 // there was nothing more
		if v.Broken() || stored.Seq <= v.report.Head.Seq || still {
			break
		}
	}
	return v.End(stored), nil
}

// read takes the rows that there are after those that it has, and gives the
// seq from which it did.
func (v *Verifier) read(page func(int64) ([]flow.Audit, error)) (from int64, err error) {
	from = v.first + int64(len(v.rows)) - 1
	for after := from; !v.Broken(); {
		rows, err := page(after)
		if err != nil {
			return from, err
		}
		for _, row := range rows {
			v.Add(row)
			after = row.Seq
		}
		if len(rows) == 0 {
			break
		}
	}
	return from, nil
}

func (v *Verifier) fail(first, last int64, why string) {
	v.report.Broken = &Break{First: first, Last: max(first, last), Why: why}
}

// brief is the beginning of a hash.
func brief(hash string) string {
	if len(hash) > 16 {
		return hash[:16] + "…"
	}
	if hash == "" {
		return "no hash"
	}
	return hash
}
