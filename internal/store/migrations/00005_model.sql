-- +goose Up
-- What the built-in model has used, by workspace and day in UTC.

CREATE TABLE model_usage (
    workspace_id  TEXT NOT NULL,
    day           TEXT NOT NULL,
    calls         BIGINT NOT NULL,
    input_tokens  BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    total_tokens  BIGINT NOT NULL,
    estimated     BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, day)
);

-- What the own agent would have done about a case, where it is only observed:
-- it may come when the case and its run are long closed.
CREATE TABLE observations (
    case_id      TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    state        TEXT NOT NULL,
    body         TEXT NOT NULL
);
CREATE INDEX observations_of_workspace ON observations (workspace_id, case_id);
CREATE INDEX observations_asked ON observations (case_id) WHERE state = 'asked';
