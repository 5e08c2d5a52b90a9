-- Runs are there from the moment that they are asked for. A pending run has the time before which it
-- does not begin; places are the order in which runs were asked for.
ALTER TABLE runs ADD COLUMN due_ms bigint;
CREATE INDEX runs_pending ON runs (place) WHERE due_ms IS NOT NULL;
CREATE INDEX runs_pending_by_thread ON runs (thread, place) WHERE due_ms IS NOT NULL;

-- How many runs of a thread are pending. The ledger number changes with every run that is enqueued or
-- dequeued, so that a writer knows whether what it remembers of them still holds.
ALTER TABLE threads
    ADD COLUMN pending bigint NOT NULL DEFAULT 0,
    ADD COLUMN ledger bigint NOT NULL DEFAULT 0;
