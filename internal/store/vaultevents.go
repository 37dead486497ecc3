package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"

	"github.com/longstop-dev/longstop/internal/flow"
)

// AppendEvent appends an event to its vault, gives it the next sequence
// number, and writes with it what route makes of one with a target. A key that
// has made an event already gives that one, if the content is the same, and
// nothing is written; conflict for another content. It answers not_found for a
// vault that is not there, and invalid for a parent that is not in it.
func (s *Store) AppendEvent(ctx context.Context, a flow.VaultAppend, audit ...flow.Audit) (flow.VaultAppended, error) {
	var out flow.VaultAppended
	rows, err := notes(audit)
	if err != nil {
		return out, err
	}
	err = s.noted(ctx, func(ctx context.Context, t tx) error {
		out = flow.VaultAppended{} // the committer may run this again
		void(rows, false)
		event := a.Event
		if err := t.queryRow(ctx, `SELECT seq FROM vaults WHERE id = $1 AND workspace_id = $2`, event.Vault, event.Workspace).Scan(&event.Seq); err != nil {
			if noRows(err) {
				return noVault(event.Vault)
			}
			return err
		}
		if a.Key != "" {
			had, err := byKey(ctx, t, &a)
			if err != nil || had != nil {
				if had != nil {
					out.Events, out.Again = []flow.VaultEvent{*had}, true
					void(rows, true)
				}
				return err
			}
		}
		if err := checkParents(ctx, t, &event); err != nil {
			return err
		}
		routed, err := route(ctx, t, &a, event)
		if err != nil {
			return err
		}
		return appendAll(ctx, t, &a, event, routed, &out)
	}, rows)
	return out, err
}

// byKey gives the event that a key has made.
func byKey(ctx context.Context, t tx, a *flow.VaultAppend) (*flow.VaultEvent, error) {
	var digest string
	var seq int64
	err := t.queryRow(ctx, `SELECT digest, seq FROM vault_event_keys WHERE vault_id = $1 AND key = $2`, a.Event.Vault, a.Key).Scan(&digest, &seq)
	switch {
	case noRows(err):
		return nil, nil
	case err != nil:
		return nil, err
	case digest != a.Digest:
		return nil, flow.Errorf(flow.CodeConflict, "the idempotency key has made an event of another content").At("Idempotency-Key").Right("a new key for a new event")
	}
	e, err := scanEvent(t.queryRow(ctx, `SELECT workspace_id, seq, body FROM vault_events WHERE vault_id = $1 AND seq = $2`, a.Event.Vault, seq))
	if noRows(err) {
		return nil, flow.Errorf(flow.CodeConflict, "the event of this idempotency key is past its retention").At("Idempotency-Key")
	}
	return &e, err
}

func checkParents(ctx context.Context, t tx, e *flow.VaultEvent) error {
	for _, id := range e.Parents {
		var n int64
		if err := t.queryRow(ctx, `SELECT COUNT(*) FROM vault_events WHERE id = $1 AND vault_id = $2`, id, e.Vault).Scan(&n); err != nil {
			return err
		}
		if n == 0 {
			return flow.Errorf(flow.CodeInvalid, "there is no event %q in this vault", id).At("parents").Right("ids of events of the same vault")
		}
	}
	return nil
}

// route reads what is known of a targeted event and has the rule decide.
func route(ctx context.Context, t tx, a *flow.VaultAppend, e flow.VaultEvent) (flow.Routed, error) {
	if e.Target == "" || a.Route == nil {
		return flow.Routed{}, nil
	}
	r := flow.Routing{Event: e}
	agent, err := scanAgent(t.queryRow(ctx, `SELECT `+agentColumns+` FROM agents WHERE workspace_id = $1 AND agent_id = $2 AND newest = 1`, e.Workspace, e.Target))
	switch {
	case err == nil:
		r.Agent = &agent
	case !noRows(err):
		return flow.Routed{}, err
	}
	c, err := scanConnection(t.queryRow(ctx, `SELECT `+connectionColumns+` FROM connections WHERE vault_id = $1 AND agent_id = $2`, e.Vault, e.Target))
	switch {
	case noRows(err):
		return a.Route(r), nil
	case err != nil:
		return flow.Routed{}, err
	}
	r.Connection = &c
	j, err := scanJob(t.queryRow(ctx, `SELECT `+jobColumns+` FROM jobs WHERE connection_id = $1 AND scope = $2 AND key = $3 AND ended_at IS NULL`, c.ID, e.Scope, a.Conversation))
	switch {
	case noRows(err):
		return a.Route(r), nil
	case err != nil:
		return flow.Routed{}, err
	}
	r.Job = &j
	var open int64
	if err := t.queryRow(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM turns WHERE job_id = $1 AND status <> 'done' LIMIT 1) AS open`, j.ID).Scan(&open); err != nil {
		return flow.Routed{}, err
	}
	r.Busy = open > 0
	return a.Route(r), nil
}

// appendAll writes the event and what came of it.
func appendAll(ctx context.Context, t tx, a *flow.VaultAppend, e flow.VaultEvent, routed flow.Routed, out *flow.VaultAppended) error {
	e.Seq++
	events := []flow.VaultEvent{e}
	if routed.Answer != nil {
		answer := *routed.Answer
		answer.Seq = e.Seq + 1
		events = append(events, answer)
	}
	if err := insertEvents(ctx, t, events); err != nil {
		return err
	}
	if a.Key != "" {
		err := t.send(ctx, nil, `INSERT INTO vault_event_keys (vault_id, key, digest, seq) VALUES ($1, $2, $3, $4)`, e.Vault, a.Key, a.Digest, e.Seq)
		if err != nil {
			return err
		}
	}
	for _, j := range []*flow.Job{routed.Ended, routed.Job} { // the old one first: one Job of a key is open
		if j != nil {
			if err := putJob(ctx, t, j); err != nil {
				return err
			}
		}
	}
	if routed.Turn != nil {
		routed.Turn.EventSeq = e.Seq
		if err := insertTurn(ctx, t, routed.Turn); err != nil {
			return err
		}
	}
	out.Events, out.Turn = events, routed.Turn
	return nil
}

// insertEvents appends events of one vault, numbered already.
func insertEvents(ctx context.Context, t tx, events []flow.VaultEvent) error {
	for i := range events {
		e := &events[i]
		body, err := flow.PlainJSON(e)
		if err != nil {
			return flow.Errorf(flow.CodeInternal, "an event cannot be written as JSON").Because(err)
		}
		err = t.send(ctx, nil, `INSERT INTO vault_events (vault_id, seq, id, workspace_id, scope, type, correlation, at, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			e.Vault, e.Seq, e.ID, e.Workspace, e.Scope, e.Type, indexed(Correlation(e.Metadata)), e.At.UnixMicro(), string(body))
		if err != nil {
			return err
		}
		for _, parent := range e.Parents {
			err := t.send(ctx, nil, `INSERT INTO vault_event_parents (parent_id, vault_id, seq) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, parent, e.Vault, e.Seq)
			if err != nil {
				return err
			}
		}
	}
	last := &events[len(events)-1]
	return t.send(ctx, nil, `UPDATE vaults SET seq = $2 WHERE id = $1`, last.Vault, last.Seq)
}

// maxIndexed is how long a text of somebody else's may be in an index;
// PostgreSQL refuses more than 2,700 bytes.
const maxIndexed = 512

// indexed is a text as it stands in an index: what is too long by its digest.
func indexed(text string) string {
	if len(text) <= maxIndexed {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Correlation is metadata.correlation as events are found by it: a text as
// it is, anything else as JSON; "" for none.
func Correlation(metadata json.RawMessage) string {
	var m flow.EventMetadata
	if len(metadata) == 0 || json.Unmarshal(metadata, &m) != nil || len(m.Correlation) == 0 || string(m.Correlation) == "null" {
		return ""
	}
	var text string
	if json.Unmarshal(m.Correlation, &text) == nil {
		return text
	}
	return string(m.Correlation)
}

func scanEvent(r row) (flow.VaultEvent, error) {
	var e flow.VaultEvent
	var workspace, body string
	var seq int64
	if err := r.Scan(&workspace, &seq, &body); err != nil {
		return e, err
	}
	err := json.Unmarshal([]byte(body), &e)
	e.Workspace, e.Seq = workspace, seq
	return e, err
}

// VaultEvents lists a vault's events in order: fewer than asked for where
// those are more than [flow.MaxEventPage].
func (s *Store) VaultEvents(ctx context.Context, f flow.EventFilter) ([]flow.VaultEvent, error) {
	q, args := eventsQuery(f)
	var size int
	rs, err := s.db.query(ctx, q, args...)
	return collect(rs, err, func(r row) (flow.VaultEvent, error) {
		if size > flow.MaxEventPage {
			return flow.VaultEvent{}, errFull
		}
		e, err := scanEvent(r)
		size += e.Size()
		return e, err
	})
}

// eventsQuery is the statement of a list of events. Both engines read no more
// of a vault than what is asked for: SQLite takes tables in the order in which
// CROSS JOIN names them, and a partial index where its condition is named.
func eventsQuery(f flow.EventFilter) (string, []any) {
	from, where := `vault_events e`, ` WHERE e.vault_id = $1 AND e.seq > $2`
	args := []any{f.Vault, f.After, f.Limit}
	add := func(column, value string) {
		if value != "" {
			args = append(args, value)
			where += ` AND ` + column + ` = $` + string(rune('0'+len(args)))
		}
	}
	if f.Parent != "" {
		from = `vault_event_parents p CROSS JOIN vault_events e`
		where += ` AND p.vault_id = $1 AND p.vault_id = e.vault_id AND p.seq = e.seq`
		add(`p.parent_id`, f.Parent)
	}
	add(`e.scope`, f.Scope)
	add(`e.type`, f.Type)
	if f.Correlation != "" {
		where += ` AND e.correlation <> ''`
		add(`e.correlation`, indexed(f.Correlation))
	}
	return `SELECT e.workspace_id, e.seq, e.body FROM ` + from + where + ` ORDER BY e.seq LIMIT $3`, args
}

// VaultEvent reads an event of a vault by its id. It answers not_found.
func (s *Store) VaultEvent(ctx context.Context, workspace, vault, id string) (flow.VaultEvent, error) {
	e, err := scanEvent(s.db.queryRow(ctx, `SELECT workspace_id, seq, body FROM vault_events WHERE id = $1 AND vault_id = $2 AND workspace_id = $3`, id, vault, workspace))
	return found(e, err, func() *flow.Error { return flow.Errorf(flow.CodeNotFound, "there is no event %q in this vault", id) })
}

// Forget removes the events of vaults whose retention is over and says how
// many; the turns that they asked for go with them once those are done, and the
// Jobs that nothing is left of once they have ended. It holds up others for batch of a vault's events at most, and for a vault that
// has nothing to forget not at all.
func (s *Store) Forget(ctx context.Context, now int64, batch int) (int64, error) {
	var gone int64
	rs, err := s.db.query(ctx, `SELECT id, retention_days FROM vaults WHERE retention_days > 0 ORDER BY id`)
	keeping, err := collect(rs, err, scanKept)
	if err != nil {
		return 0, err
	}
	for _, v := range keeping {
		for n := int64(batch); n == int64(batch); gone += n {
			if n, err = s.forget(ctx, v, now, int64(batch)); err != nil {
				return gone, err
			}
		}
		for n := int64(batch); n == int64(batch); {
			if n, err = s.forgetJobs(ctx, v, now, int64(batch)); err != nil {
				return gone, err
			}
		}
	}
	return gone, nil
}

// kept is a vault with how long it keeps its events.
type kept struct {
	vault string
	days  int64
}

func scanKept(r row) (kept, error) {
	var v kept
	err := r.Scan(&v.vault, &v.days)
	return v, err
}

// forget removes a batch of what is over of a vault.
func (s *Store) forget(ctx context.Context, v kept, now, batch int64) (gone int64, err error) {
	if last, _, err := v.over(ctx, s.db, now, batch); err != nil || !last.Valid {
		return 0, err
	}
	err = s.write(ctx, func(ctx context.Context, t tx) error {
		gone = 0
		v, err := scanKept(t.queryRow(ctx, `SELECT id, retention_days FROM vaults WHERE id = $1 AND retention_days > 0`, v.vault))
		if noRows(err) { // its owner has changed that meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		last, before, err := v.over(ctx, t, now, batch)
		if err != nil || !last.Valid {
			return err
		}
		const over = ` AS e WHERE vault_id = $1 AND seq <= $2 AND at < $3 AND` + answeredAll
		for _, q := range []string{
			`DELETE FROM turns WHERE event_id IN (SELECT id FROM vault_events` + over + `)`,
			`DELETE FROM vault_event_parents WHERE vault_id = $1 AND seq IN (SELECT seq FROM vault_events` + over + `)`,
			`DELETE FROM vault_event_keys WHERE vault_id = $1 AND seq IN (SELECT seq FROM vault_events` + over + `)`,
		} {
			if err := t.send(ctx, nil, q, v.vault, last.Int64, before); err != nil {
				return err
			}
		}
		gone, err = t.exec(ctx, `DELETE FROM vault_events`+over, v.vault, last.Int64, before)
		return err
	})
	return gone, err
}

// forgetJobs removes a batch of a vault's Jobs that have been silent for as long
// as events are kept and for longer than they may idle, and have no turns.
func (s *Store) forgetJobs(ctx context.Context, v kept, now, batch int64) (gone int64, err error) {
	const over = ` FROM jobs AS j WHERE vault_id = $1 AND last_at < $2 AND last_at + idle < $3
		AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.job_id = j.id) LIMIT $4`
	args := []any{v.vault, v.before(now), now, batch}
	var any int64
	if err := s.db.queryRow(ctx, `SELECT COUNT(*) FROM (SELECT 1`+over+`) AS o`, args...).Scan(&any); err != nil || any == 0 {
		return 0, err
	}
	err = s.write(ctx, func(ctx context.Context, t tx) error {
		gone, err = t.exec(ctx, `DELETE FROM jobs WHERE id IN (SELECT j.id`+over+`)`, args...)
		return err
	})
	return gone, err
}

// before is the instant of the oldest event that is kept.
func (v kept) before(now int64) int64 { return now - v.days*int64(24*60*60*1_000_000) }

// answeredAll is the condition that no turn waits for the answer to an event e.
const answeredAll = ` NOT EXISTS (SELECT 1 FROM turns t WHERE t.event_id = e.id AND t.status <> 'done')`

// over is the last of a vault's oldest events that are over, at most limit of
// them, and before when. One whose turn is not done stays until that has been
// answered.
func (v kept) over(ctx context.Context, r reader, now, limit int64) (last sql.NullInt64, before int64, err error) {
	const window = 1000 // beside the limit: what is looked at behind what stays
	before = v.before(now)
	err = r.queryRow(ctx, `SELECT MAX(seq) FROM (SELECT seq FROM (SELECT seq, id, at FROM vault_events WHERE vault_id = $1 ORDER BY seq LIMIT $2) AS e
		WHERE at < $3 AND`+answeredAll+` ORDER BY seq LIMIT $4) AS oldest`, v.vault, limit+window, before, limit).Scan(&last)
	return last, before, err
}
