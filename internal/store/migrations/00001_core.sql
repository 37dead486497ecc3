-- +goose Up
-- One text for SQLite and PostgreSQL: ids and JSON are TEXT, instants are
-- BIGINT microseconds since 1970, sealed bytes are base64 TEXT.

CREATE TABLE workspaces (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE people (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    public_key TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE memberships (
    person_id    TEXT NOT NULL REFERENCES people (id),
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    role         TEXT NOT NULL,
    PRIMARY KEY (person_id, workspace_id)
);

CREATE TABLE api_keys (
    id           TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    person_id    TEXT NOT NULL REFERENCES people (id),
    name         TEXT NOT NULL,
    role         TEXT NOT NULL,
    hash         TEXT NOT NULL UNIQUE,
    prefix       TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    revoked_at   BIGINT
);

CREATE TABLE settings (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    key          TEXT NOT NULL,
    value        TEXT NOT NULL,
    sealed       TEXT NOT NULL,
    meta         TEXT NOT NULL,
    updated_by   TEXT NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, key)
);

CREATE TABLE secrets (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    name         TEXT NOT NULL,
    sealed       TEXT NOT NULL,
    updated_by   TEXT NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, name)
);

CREATE TABLE mcp_servers (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id           TEXT NOT NULL,
    url          TEXT NOT NULL,
    transport    TEXT NOT NULL,
    command      TEXT NOT NULL,
    sealed       TEXT NOT NULL,
    updated_by   TEXT NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
);

CREATE TABLE workflows (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    name         TEXT NOT NULL,
    version_id   TEXT NOT NULL,
    number       BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, name)
);

CREATE TABLE workflow_versions (
    id           TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    workflow     TEXT NOT NULL,
    number       BIGINT NOT NULL,
    digest       TEXT NOT NULL,
    source       TEXT NOT NULL,
    definition   TEXT NOT NULL,
    author       TEXT NOT NULL,
    created_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX workflow_versions_content ON workflow_versions (workspace_id, workflow, digest, number);

CREATE TABLE runs (
    id           TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    workflow     TEXT NOT NULL,
    version_id   TEXT NOT NULL,
    status       TEXT NOT NULL,
    version      BIGINT NOT NULL,
    owner        TEXT NOT NULL,
    epoch        BIGINT NOT NULL,
    seq          BIGINT NOT NULL,
    current      TEXT NOT NULL,
    input        TEXT NOT NULL,
    output       TEXT,
    error        TEXT NOT NULL,
    author       TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    finished_at  BIGINT,
    wake_at      BIGINT,
    wake_seq     BIGINT NOT NULL
);
CREATE INDEX runs_of_workspace ON runs (workspace_id, id);
CREATE INDEX runs_at_work ON runs (id) WHERE status IN ('queued', 'running');
CREATE INDEX runs_due ON runs (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE steps (
    run_id      TEXT NOT NULL,
    idx         BIGINT NOT NULL,
    iteration   TEXT NOT NULL,
    status      TEXT NOT NULL,
    output      TEXT,
    error       TEXT NOT NULL,
    source      TEXT NOT NULL,
    message     TEXT NOT NULL,
    attempts    BIGINT NOT NULL,
    started_at  BIGINT,
    finished_at BIGINT,
    progress    TEXT NOT NULL,
    PRIMARY KEY (run_id, idx, iteration)
);

-- What happened, one row for each Change: its events and its step log rows.
CREATE TABLE journal (
    run_id   TEXT NOT NULL,
    last_seq BIGINT NOT NULL,
    events   TEXT NOT NULL,
    logs     TEXT NOT NULL,
    PRIMARY KEY (run_id, last_seq)
);

CREATE TABLE gates (
    id           TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    run_id       TEXT NOT NULL,
    kind         TEXT NOT NULL,
    status       TEXT NOT NULL,
    body         TEXT NOT NULL
);
CREATE INDEX gates_open ON gates (workspace_id, id) WHERE status = 'open';
CREATE INDEX gates_of_workspace ON gates (workspace_id, id);
CREATE INDEX gates_of_run ON gates (run_id);

CREATE TABLE cases (
    id           TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    run_id       TEXT NOT NULL,
    body         TEXT NOT NULL
);
CREATE INDEX cases_of_workspace ON cases (workspace_id, id);
CREATE INDEX cases_of_run ON cases (run_id);
