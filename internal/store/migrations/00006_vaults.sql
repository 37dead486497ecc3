-- +goose Up
CREATE TABLE vaults (
    id             TEXT PRIMARY KEY,
    workspace_id   TEXT NOT NULL REFERENCES workspaces (id),
    name           TEXT NOT NULL,
    owner          TEXT NOT NULL REFERENCES people (id),
    scopes         TEXT NOT NULL,
    retention_days BIGINT NOT NULL,
    seq            BIGINT NOT NULL,
    created_at     BIGINT NOT NULL
);
CREATE UNIQUE INDEX vaults_by_name ON vaults (workspace_id, name);

-- Never updated. Rows go with their vault, or when its retention is over.
CREATE TABLE vault_events (
    vault_id     TEXT NOT NULL,
    seq          BIGINT NOT NULL,
    id           TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    scope        TEXT NOT NULL,
    type         TEXT NOT NULL,
    correlation  TEXT NOT NULL,
    at           BIGINT NOT NULL,
    body         TEXT NOT NULL,
    PRIMARY KEY (vault_id, seq)
);
CREATE UNIQUE INDEX vault_events_by_id ON vault_events (id);
CREATE INDEX vault_events_by_correlation ON vault_events (vault_id, correlation, seq) WHERE correlation <> '';
CREATE INDEX vault_events_by_type ON vault_events (vault_id, type, seq);

CREATE TABLE vault_event_parents (
    parent_id TEXT NOT NULL,
    vault_id  TEXT NOT NULL,
    seq       BIGINT NOT NULL,
    PRIMARY KEY (parent_id, vault_id, seq)
);

-- Which event an idempotency key made, and of what content.
CREATE TABLE vault_event_keys (
    vault_id TEXT NOT NULL,
    key      TEXT NOT NULL,
    digest   TEXT NOT NULL,
    seq      BIGINT NOT NULL,
    PRIMARY KEY (vault_id, key)
);

CREATE TABLE connections (
    id           TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    vault_id     TEXT NOT NULL,
    agent_id     TEXT NOT NULL,
    scopes       TEXT NOT NULL,
    ceiling      BIGINT NOT NULL,
    spent        BIGINT NOT NULL,
    warned       BIGINT NOT NULL,
    granted_by   TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    revoked_at   BIGINT
);
CREATE UNIQUE INDEX connections_of_agent ON connections (vault_id, agent_id);

CREATE TABLE buckets (
    id           TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    url          TEXT NOT NULL,
    public_base  TEXT NOT NULL,
    is_default   BIGINT NOT NULL,
    created_at   BIGINT NOT NULL
);

CREATE TABLE agent_services (
    public_key   TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    name         TEXT NOT NULL,
    sealed       TEXT NOT NULL,
    bucket_id    TEXT NOT NULL,
    is_default   BIGINT NOT NULL,
    created_at   BIGINT NOT NULL
);

-- The index of the manifests in the buckets.
CREATE TABLE agents (
    workspace_id TEXT NOT NULL,
    agent_id     TEXT NOT NULL,
    version      TEXT NOT NULL,
    service      TEXT NOT NULL,
    newest       BIGINT NOT NULL,
    manifest     TEXT NOT NULL,
    pushed_by    TEXT NOT NULL,
    pushed_at    BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, agent_id, version)
);

CREATE TABLE jobs (
    id            TEXT PRIMARY KEY,
    workspace_id  TEXT NOT NULL,
    connection_id TEXT NOT NULL,
    vault_id      TEXT NOT NULL,
    scope         TEXT NOT NULL,
    key           TEXT NOT NULL,
    context_id    TEXT NOT NULL,
    idle          BIGINT NOT NULL,
    last_at       BIGINT NOT NULL,
    ended_at      BIGINT
);
CREATE UNIQUE INDEX jobs_open ON jobs (connection_id, scope, key) WHERE ended_at IS NULL;
CREATE INDEX jobs_of_vault ON jobs (vault_id, id);

CREATE TABLE turns (
    id            TEXT PRIMARY KEY,
    workspace_id  TEXT NOT NULL,
    job_id        TEXT NOT NULL,
    connection_id TEXT NOT NULL,
    vault_id      TEXT NOT NULL,
    scope         TEXT NOT NULL,
    agent_id      TEXT NOT NULL,
    event_id      TEXT NOT NULL,
    event_seq     BIGINT NOT NULL,
    status        TEXT NOT NULL,
    version       BIGINT NOT NULL,
    progress      TEXT NOT NULL,
    next_at       BIGINT,
    created_at    BIGINT NOT NULL,
    finished_at   BIGINT
);
CREATE UNIQUE INDEX turns_of_event ON turns (event_id);
CREATE INDEX turns_of_job ON turns (job_id, event_seq);
CREATE INDEX turns_open ON turns (job_id, event_seq) WHERE status <> 'done';
