package store

import (
	"context"
	"slices"

	"github.com/longstop-dev/longstop/internal/chain"
	"github.com/longstop-dev/longstop/internal/flow"
)

// note is an audit row that waits to be written with its cause.
type note struct {
	row  flow.Audit
	text []byte // canonical, made before the committer takes it
	void bool   // nothing was changed after all
}

// notes prepares audit rows.
func notes(rows []flow.Audit) ([]*note, error) {
	out := make([]*note, 0, len(rows))
	for _, row := range rows {
		text, err := chain.Canonical(row)
		if err != nil {
			return nil, err
		}
		out = append(out, &note{row: row, text: text})
	}
	return out, nil
}

// void says whether rows are not to be written after all: each time that the
// committer applies their write, since what it finds may differ.
func void(rows []*note, yes bool) {
	for _, n := range rows {
		n.void = yes
	}
}

// link writes the audit rows of a batch's members that are not refused: one
// link of the chain for each workspace. It gives the new heads, which hold
// once the batch is committed.
func (s *Store) link(ctx context.Context, t tx, batch []*op, refused []error) (map[string]flow.AuditHead, error) {
	byWorkspace := map[string][]*note{}
	var order []string // so that two tries write the same
	for i, o := range batch {
		if refused[i] != nil {
			continue
		}
		for _, n := range o.notes {
			if n.void {
				continue
			}
			if byWorkspace[n.row.Workspace] == nil {
				order = append(order, n.row.Workspace)
			}
			byWorkspace[n.row.Workspace] = append(byWorkspace[n.row.Workspace], n)
		}
	}
	heads := map[string]flow.AuditHead{}
	for _, workspace := range order {
		head, known := s.heads[workspace]
		if !known {
			var err error
			if head, err = readHead(ctx, t, workspace); err != nil {
				return nil, err
			}
		}
		head, err := writeLink(ctx, t, workspace, head, byWorkspace[workspace])
		if err != nil {
			return nil, err
		}
		heads[workspace] = head
	}
	return heads, nil
}

func writeLink(ctx context.Context, t tx, workspace string, head flow.AuditHead, rows []*note) (flow.AuditHead, error) {
	texts := make([][]byte, len(rows))
	for i, n := range rows {
		texts[i] = n.text
	}
	next := flow.AuditHead{Seq: head.Seq + int64(len(rows)), Hash: chain.Link(head.Hash, head.Seq+1, texts)}
	for i, n := range rows {
		hash := ""
		if i == len(rows)-1 {
			hash = next.Hash
		}
		a := &n.row
		err := t.send(ctx, nil, `INSERT INTO audit (workspace_id, seq, at, author, key_id, op, target, outcome, details, hash)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			workspace, head.Seq+1+int64(i), a.At.UnixMicro(), a.Author, a.KeyID, a.Op, a.Target, a.Outcome, string(a.Details), hash)
		if err != nil {
			return next, err
		}
	}
	err := t.send(ctx, nil, `INSERT INTO audit_heads (workspace_id, seq, hash) VALUES ($1, $2, $3)
		ON CONFLICT (workspace_id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash`, workspace, next.Seq, next.Hash)
	return next, err
}

// maxHeads bounds the heads that are kept in memory; when they are full, all
// are forgotten.
const maxHeads = 4096

// keep takes over the heads of a batch that is committed.
func (s *Store) keep(heads map[string]flow.AuditHead) {
	if len(s.heads)+len(heads) > maxHeads {
		clear(s.heads)
	}
	for workspace, head := range heads {
		s.heads[workspace] = head
	}
}

func readHead(ctx context.Context, r reader, workspace string) (flow.AuditHead, error) {
	var h flow.AuditHead
	err := r.queryRow(ctx, `SELECT seq, hash FROM audit_heads WHERE workspace_id = $1`, workspace).Scan(&h.Seq, &h.Hash)
	if noRows(err) {
		return flow.AuditHead{}, nil
	}
	return h, err
}

// AuditHead reads where a workspace's audit record ends.
func (s *Store) AuditHead(ctx context.Context, workspace string) (flow.AuditHead, error) {
	h, err := readHead(ctx, s.db, workspace)
	if err != nil {
		return h, unavailable(err)
	}
	return h, nil
}

// Audit reads audit rows of a workspace.
func (s *Store) Audit(ctx context.Context, f flow.AuditFilter) ([]flow.Audit, error) {
	return auditRows(ctx, s.db, f)
}

func auditRows(ctx context.Context, r reader, f flow.AuditFilter) ([]flow.Audit, error) {
	q := `SELECT workspace_id, seq, at, author, key_id, op, target, outcome, details, hash FROM audit
		WHERE workspace_id = $1 AND seq > $2 AND seq < $3 AND at >= $4 AND at < $5 AND (author = $6 OR $6 = '')
		AND (op = $7 OR $7 = '' OR op >= $8 AND op < $9) AND (target = $10 OR $10 = '' OR target >= $11 AND target < $12)`
	const last = int64(1) << 62
	from, to, low, high := int64(-last), last, int64(0), last
	if !f.From.IsZero() {
		from = f.From.UnixMicro()
	}
	if !f.To.IsZero() {
		to = f.To.UnixMicro()
	}
	switch {
	case f.After > 0 && f.Oldest:
		low = f.After
	case f.After > 0:
		high = f.After
	}
	order := ` ORDER BY seq DESC LIMIT $13`
	if f.Oldest {
		order = ` ORDER BY seq LIMIT $13`
	}
	ops, targets := between(f.Op, "."), between(f.Target, "/")
	rs, err := r.query(ctx, q+order, slices.Concat([]any{f.Workspace, low, high, from, to, f.Author, f.Op}, ops, []any{f.Target}, targets, []any{f.Limit})...)
	return collect(rs, err, func(r row) (flow.Audit, error) {
		var a flow.Audit
		var at int64
		var details string
		err := r.Scan(&a.Workspace, &a.Seq, &at, &a.Author, &a.KeyID, &a.Op, &a.Target, &a.Outcome, &details, &a.Hash)
		a.At, a.Details = fromMicros(at), []byte(details)
		return a, err
	})
}

// between gives the bounds of the names that begin with a text that ends with
// a separator, and otherwise bounds between which there is nothing.
func between(text, separator string) []any {
	if n := len(text) - len(separator); n > 0 && text[n:] == separator {
		return []any{text, text[:n] + string(separator[0]+1)}
	}
	return []any{"", ""}
}
