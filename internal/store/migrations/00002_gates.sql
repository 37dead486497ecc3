-- +goose Up
-- What is to be told outside, written with the change that it is about.
CREATE TABLE outbox (
    id           TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    run_id       TEXT NOT NULL,
    type         TEXT NOT NULL,
    body         TEXT NOT NULL,
    state        TEXT NOT NULL,
    tries        BIGINT NOT NULL,
    status       BIGINT NOT NULL,
    error        TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    due_at       BIGINT,
    settled_at   BIGINT
);
CREATE INDEX outbox_due ON outbox (due_at, workspace_id) WHERE due_at IS NOT NULL;
CREATE INDEX outbox_due_of_workspace ON outbox (workspace_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX outbox_of_workspace ON outbox (workspace_id, id);
CREATE INDEX outbox_settled ON outbox (settled_at) WHERE settled_at IS NOT NULL;

-- Who works on a case that waits in the inbox, and until when.
CREATE TABLE gate_claims (
    gate_id      TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    holder       TEXT NOT NULL,
    name         TEXT NOT NULL,
    claimed_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL
);

CREATE INDEX gates_inbox ON gates (workspace_id, id) WHERE status = 'open' AND kind = 'needs_agent';

-- A run's gates and cases are few among the workspace's many: the index has to
-- serve the workspace and the order too, or the planner walks all of them.
DROP INDEX gates_of_run;
CREATE INDEX gates_of_run ON gates (run_id, workspace_id, id);
DROP INDEX cases_of_run;
CREATE INDEX cases_of_run ON cases (run_id, workspace_id, id);
