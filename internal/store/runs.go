package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/longstop-dev/longstop/internal/flow"
)

// Apply commits one transition, whole or not at all. It answers stale if the
// run has moved since: another version, or another epoch.
func (s *Store) Apply(ctx context.Context, c flow.Change) error {
	enc, err := encode(c) // outside the committer, whose time everybody shares
	if err != nil {
		return err
	}
	return s.write(ctx, func(ctx context.Context, t tx) error { return apply(ctx, t, &c, enc) }, c.Audit...)
}

// encoded is the JSON of a change, made before the committer takes it.
type encoded struct {
	progress, gates, cases []string
	observed               []string // by case; "" for one that is not
	events, logs           string
}

func encode(c flow.Change) (encoded, error) {
	var e encoded
	var err error
	text := func(v any) string {
		b, mErr := json.Marshal(v)
		if mErr != nil && err == nil {
			err = flow.Errorf(flow.CodeInternal, "a change cannot be written as JSON").Because(mErr)
		}
		return string(b)
	}
	for i := range c.Steps {
		p := &c.Steps[i].Progress
		if c.Steps[i].Status.Done() && p.Mends == 0 && p.Episode == 0 && p.Branch == "" && p.Failure == nil && p.Carried == "" {
			e.progress = append(e.progress, "{}") // what is done has nothing to take up
			continue
		}
		e.progress = append(e.progress, text(p))
	}
	for i := range c.Gates {
		e.gates = append(e.gates, text(c.Gates[i]))
	}
	for i := range c.Cases {
		k, observed := c.Cases[i], ""
		if k.Observed != nil { // it has a row of its own, which outlives the case
			observed = text(k.Observed)
			k.Observed = nil
		}
		e.cases, e.observed = append(e.cases, text(k)), append(e.observed, observed)
	}
	var eventsErr, logsErr error
	e.events, eventsErr = eventsText(c.Events)
	e.logs, logsErr = logsText(c.Logs)
	if bad := errors.Join(eventsErr, logsErr); bad != nil && err == nil {
		err = flow.Errorf(flow.CodeInternal, "a change cannot be written as JSON").Because(bad)
	}
	return e, err
}

func apply(ctx context.Context, t tx, c *flow.Change, e encoded) error {
	if err := putOnce(ctx, t, c.Once); err != nil {
		return err
	}
	if err := putRun(ctx, t, c); err != nil {
		return err
	}
	for i := range c.Steps {
		if err := putStep(ctx, t, c.Run.ID, &c.Steps[i], e.progress[i]); err != nil {
			return err
		}
	}
	if len(c.Events) > 0 {
		err := t.send(ctx, nil, `INSERT INTO journal (run_id, last_seq, events, logs) VALUES ($1, $2, $3, $4)`,
			c.Run.ID, c.Run.Seq, e.events, e.logs)
		if err != nil {
			return err
		}
	}
	for i := range c.Gates {
		g := &c.Gates[i]
		err := t.send(ctx, nil, `INSERT INTO gates (id, workspace_id, run_id, kind, status, body) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (id) DO UPDATE SET status = excluded.status, body = excluded.body`,
			g.ID, g.Workspace, g.RunID, string(g.Kind), string(g.Status), e.gates[i])
		if err != nil {
			return err
		}
		if err := unclaim(ctx, t, g); err != nil {
			return err
		}
	}
	for i := range c.Notices {
		if err := putNotice(ctx, t, &c.Notices[i]); err != nil {
			return err
		}
	}
	for i := range c.Cases {
		k := &c.Cases[i]
		err := t.send(ctx, nil, `INSERT INTO cases (id, workspace_id, run_id, body) VALUES ($1, $2, $3, $4)
			ON CONFLICT (id) DO UPDATE SET body = excluded.body`, k.ID, k.Workspace, k.RunID, e.cases[i])
		if err == nil && k.Observed != nil {
			err = openObservation(ctx, t, k, e.observed[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// putRun writes the run's row first, so that a stale change has written
// nothing when it is refused.
func putRun(ctx context.Context, t tx, c *flow.Change) error {
	r := &c.Run
	if r.Version == 1 {
		return t.send(ctx, nil, `INSERT INTO runs (id, workspace_id, workflow, version_id, status, version, owner, epoch, seq, current,
			input, output, error, author, created_at, finished_at, wake_at, wake_seq, rerun_of, rerun_from)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)`,
			r.ID, r.Workspace, r.Workflow, r.VersionID, string(r.Status), r.Version, r.Owner, r.Epoch, r.Seq, r.Current,
			string(r.Input), text(r.Output), r.Error, r.Author, r.CreatedAt.UnixMicro(), micros(r.FinishedAt), micros(r.WakeAt), r.WakeSeq,
			r.RerunOf, r.RerunFrom)
	}
	epoch := r.Epoch
	if c.Claim {
		epoch--
	}
	stale := &flow.Error{Code: flow.CodeStale, Message: "run " + r.ID + " has moved on"}
	return t.send(ctx, stale, `UPDATE runs SET status = $1, version = $2, owner = $3, epoch = $4, seq = $5, current = $6, output = $7,
		error = $8, finished_at = $9, wake_at = $10, wake_seq = $11 WHERE id = $12 AND version = $13 AND epoch = $14`,
		string(r.Status), r.Version, r.Owner, r.Epoch, r.Seq, r.Current, text(r.Output),
		r.Error, micros(r.FinishedAt), micros(r.WakeAt), r.WakeSeq, r.ID, r.Version-1, epoch)
}

func putStep(ctx context.Context, t tx, runID string, s *flow.StepInstance, progress string) error {
	return t.send(ctx, nil, `INSERT INTO steps (run_id, idx, iteration, status, output, error, source, message, attempts, started_at, finished_at, progress)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (run_id, idx, iteration) DO UPDATE SET status = excluded.status, output = excluded.output, error = excluded.error,
		source = excluded.source, message = excluded.message, attempts = excluded.attempts, started_at = excluded.started_at,
		finished_at = excluded.finished_at, progress = excluded.progress`,
		runID, s.Index, s.Iteration, string(s.Status), text(s.Output), s.Error, string(s.RecoverySource), s.Message, s.Attempts,
		micros(s.StartedAt), micros(s.FinishedAt), progress)
}

const runColumns = `id, workspace_id, workflow, version_id, status, version, owner, epoch, seq, current,
	input, output, error, author, created_at, finished_at, wake_at, wake_seq, rerun_of, rerun_from`

func scanRun(r row) (flow.Run, error) {
	var v flow.Run
	var status, input string
	var output sql.NullString
	var created int64
	var finished, wake sql.NullInt64
	err := r.Scan(&v.ID, &v.Workspace, &v.Workflow, &v.VersionID, &status, &v.Version, &v.Owner, &v.Epoch, &v.Seq, &v.Current,
		&input, &output, &v.Error, &v.Author, &created, &finished, &wake, &v.WakeSeq, &v.RerunOf, &v.RerunFrom)
	v.Status, v.Input, v.Output = flow.RunStatus(status), json.RawMessage(input), raw(output)
	v.CreatedAt, v.FinishedAt, v.WakeAt = fromMicros(created), instant(finished), instant(wake)
	return v, err
}

// Run reads a run of a workspace; with an empty workspace, of any, which is
// for the engine only. It answers not_found.
func (s *Store) Run(ctx context.Context, workspace, id string) (flow.Run, error) {
	v, err := scanRun(s.db.queryRow(ctx, `SELECT `+runColumns+` FROM runs WHERE id = $1 AND (workspace_id = $2 OR $2 = '')`, id, workspace))
	if noRows(err) {
		return v, flow.Errorf(flow.CodeNotFound, "there is no run %s", id)
	}
	if err != nil {
		return v, unavailable(err)
	}
	return v, nil
}

// Runs lists a workspace's runs, newest first, without inputs and outputs.
func (s *Store) Runs(ctx context.Context, f flow.RunFilter) ([]flow.Run, error) {
	q, args := listRuns(f)
	rs, err := s.db.query(ctx, q, args...)
	return collect(rs, err, scanRun)
}

// listRuns writes the query of a list of runs with the conditions of its
// filter only, and for a status that few runs have in the words of an index
// that holds just those: one text for all filters would look at every run.
func listRuns(f flow.RunFilter) (q string, args []any) {
	if f.Before == "" {
		f.Before = "~" // after every id
	}
	q = `SELECT id, workspace_id, workflow, version_id, status, version, owner, epoch, seq, current,
		'null', NULL, error, author, created_at, finished_at, wake_at, wake_seq, rerun_of, rerun_from FROM runs WHERE id < $2`
	args = []any{f.Workspace, f.Before, f.Limit}
	if f.Workflow != "" {
		args = append(args, f.Workflow)
		q += ` AND workflow = $` + strconv.Itoa(len(args))
	}
	workspace := ` AND workspace_id = $1`
	switch flow.RunStatus(f.Status) {
	case flow.RunQueued, flow.RunRunning:
		q += ` AND status IN ('queued', 'running')`
		workspace = ` AND workspace_id || '' = $1` // else SQLite takes the index of all that the workspace has
	case flow.RunWaiting, flow.RunFailed, flow.RunCancelled:
		q += ` AND status IN ('waiting', 'failed', 'cancelled')`
	}
	if f.Status != "" {
		args = append(args, f.Status)
		q += ` AND status = $` + strconv.Itoa(len(args))
	}
	return q + workspace + ` ORDER BY id DESC LIMIT $3`, args
}

// Reruns lists the runs that were started again from a run, oldest first, at
// most limit.
func (s *Store) Reruns(ctx context.Context, workspace, id string, limit int) ([]string, error) {
	rs, err := s.db.query(ctx, `SELECT id FROM runs WHERE rerun_of = $1 AND rerun_of <> '' AND workspace_id = $2 ORDER BY id LIMIT $3`, id, workspace, limit)
	return collect(rs, err, func(r row) (id string, err error) { return id, r.Scan(&id) })
}

// Steps reads the checkpoints of a run, in index order.
func (s *Store) Steps(ctx context.Context, runID string) ([]flow.StepInstance, error) {
	rs, err := s.db.query(ctx, `SELECT idx, iteration, status, output, error, source, message, attempts, started_at, finished_at, progress
		FROM steps WHERE run_id = $1 ORDER BY idx, iteration`, runID)
	return collect(rs, err, func(r row) (flow.StepInstance, error) {
		var v flow.StepInstance
		var status, source, progress string
		var output sql.NullString
		var started, finished sql.NullInt64
		if err := r.Scan(&v.Index, &v.Iteration, &status, &output, &v.Error, &source, &v.Message, &v.Attempts, &started, &finished, &progress); err != nil {
			return v, err
		}
		v.Status, v.RecoverySource, v.Output = flow.StepStatus(status), flow.Source(source), raw(output)
		v.StartedAt, v.FinishedAt = instant(started), instant(finished)
		if err := json.Unmarshal([]byte(progress), &v.Progress); err != nil {
			return v, damaged("step "+v.StepKey.String()+" of run "+runID, err)
		}
		return v, nil
	})
}

// Unfinished lists the runs that a node must drive: those at work when the
// process that drove them ended.
func (s *Store) Unfinished(ctx context.Context) ([]string, error) {
	rs, err := s.db.query(ctx, `SELECT id FROM runs WHERE status IN ('queued', 'running') ORDER BY id`)
	return collect(rs, err, func(r row) (id string, err error) { return id, r.Scan(&id) })
}

// Wakeups lists the wake-ups of all parked runs, the earliest first.
func (s *Store) Wakeups(ctx context.Context) ([]flow.Wakeup, error) {
	rs, err := s.db.query(ctx, `SELECT id, wake_seq, wake_at FROM runs WHERE wake_at IS NOT NULL ORDER BY wake_at`)
	return collect(rs, err, func(r row) (flow.Wakeup, error) {
		var v flow.Wakeup
		var at sql.NullInt64
		err := r.Scan(&v.RunID, &v.Seq, &at)
		v.At = instant(at)
		return v, err
	})
}
