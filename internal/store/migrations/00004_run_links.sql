-- +goose Up
-- A run that was started again from one of its steps, and from which.
ALTER TABLE runs ADD COLUMN rerun_of TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN rerun_from TEXT NOT NULL DEFAULT '';
CREATE INDEX runs_reruns ON runs (rerun_of, id) WHERE rerun_of <> '';

-- Creations that a client may send again: what was asked, and what came of it.
CREATE TABLE idempotency_keys (
    workspace_id TEXT NOT NULL,
    key          TEXT NOT NULL,
    digest       TEXT NOT NULL,
    made         TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
