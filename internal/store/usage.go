package store

import (
	"context"

	"github.com/longstop-dev/longstop/internal/flow"
)

// ModelTokens gives the tokens that the built-in model has used in a workspace
// on a day.
func (s *Store) ModelTokens(ctx context.Context, workspace, day string) (int64, error) {
	var total int64
	err := s.db.queryRow(ctx, `SELECT total_tokens FROM model_usage WHERE workspace_id = $1 AND day = $2`, workspace, day).Scan(&total)
	if noRows(err) {
		return 0, nil
	}
	if err != nil {
		return 0, unavailable(err)
	}
	return total, nil
}

// AddModelTokens counts one call of the built-in model.
func (s *Store) AddModelTokens(ctx context.Context, workspace, day string, u flow.Usage) error {
	var estimated int64
	if u.Estimated {
		estimated = 1
	}
	return s.write(ctx, func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, `INSERT INTO model_usage (workspace_id, day, calls, input_tokens, output_tokens, total_tokens, estimated)
			VALUES ($1, $2, 1, $3, $4, $5, $6)
			ON CONFLICT (workspace_id, day) DO UPDATE SET calls = model_usage.calls + 1,
				input_tokens = model_usage.input_tokens + excluded.input_tokens, output_tokens = model_usage.output_tokens + excluded.output_tokens,
				total_tokens = model_usage.total_tokens + excluded.total_tokens, estimated = model_usage.estimated + excluded.estimated`,
			workspace, day, u.Input, u.Output, u.Total, estimated)
		return err
	})
}

// ModelDays lists what the built-in model has used in a workspace, the newest
// day first: those before the day before, if that is given.
func (s *Store) ModelDays(ctx context.Context, workspace, before string, limit int) ([]flow.ModelDay, error) {
	if before == "" {
		before = "~" // after every day
	}
	rs, err := s.db.query(ctx, `SELECT day, calls, input_tokens, output_tokens, total_tokens, estimated FROM model_usage
		WHERE workspace_id = $1 AND day < $2 ORDER BY day DESC LIMIT $3`, workspace, before, limit)
	return collect(rs, err, func(r row) (flow.ModelDay, error) {
		var d flow.ModelDay
		var estimated int64
		err := r.Scan(&d.Day, &d.Calls, &d.Input, &d.Output, &d.Total, &estimated)
		d.Estimated = estimated > 0
		return d, err
	})
}
