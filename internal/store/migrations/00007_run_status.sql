-- +goose Up
-- Runs that are neither at work nor succeeded are few, and are what people
-- look for. A list names the statuses in the same words, so that both engines
-- see that this index has them all. The workflow comes last, so that those of
-- another one are passed over without a look at their rows.
CREATE INDEX runs_unusual ON runs (workspace_id, status, id, workflow) WHERE status IN ('waiting', 'failed', 'cancelled');

CREATE INDEX runs_of_workflow ON runs (workspace_id, workflow, id);
