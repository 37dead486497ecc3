-- +goose Up
-- The audit record: who changed what. Each workspace's rows count from 1; the
-- last row of each commit has the hash of the chain up to it, and the head is
-- kept once more beside the rows, so that a cut at the end is seen.

CREATE TABLE audit (
    workspace_id TEXT NOT NULL,
    seq          BIGINT NOT NULL,
    at           BIGINT NOT NULL,
    author       TEXT NOT NULL,
    key_id       TEXT NOT NULL,
    op           TEXT NOT NULL,
    target       TEXT NOT NULL,
    outcome      TEXT NOT NULL,
    details      TEXT NOT NULL,
    hash         TEXT NOT NULL,
    PRIMARY KEY (workspace_id, seq)
);

CREATE TABLE audit_heads (
    workspace_id TEXT PRIMARY KEY,
    seq          BIGINT NOT NULL,
    hash         TEXT NOT NULL
);

CREATE INDEX memberships_of_workspace ON memberships (workspace_id);
CREATE INDEX keys_of_workspace ON api_keys (workspace_id);
