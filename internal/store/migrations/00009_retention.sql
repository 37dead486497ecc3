-- +goose Up
-- What goes with the events that are over is found by their numbers.
CREATE INDEX vault_event_parents_by_event ON vault_event_parents (vault_id, seq);

CREATE INDEX vault_event_keys_by_event ON vault_event_keys (vault_id, seq);

-- A list of a scope's events.
CREATE INDEX vault_events_by_scope ON vault_events (vault_id, scope, seq);
