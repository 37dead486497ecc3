-- +goose Up
-- The service whose agents this one takes over, so that a rotation that broke
-- off goes on with the key that it began with; '' for one of its own.
ALTER TABLE agent_services ADD COLUMN replaces TEXT NOT NULL DEFAULT '';

CREATE UNIQUE INDEX agent_services_successor ON agent_services (replaces) WHERE replaces <> '';
