-- A run has a row from the request for it on. `due_ms` of a pending run is the time before which it
-- does not begin. `place` is the order of the requests.
ALTER TABLE runs ADD COLUMN due_ms bigint;
CREATE INDEX runs_pending ON runs (place) WHERE due_ms IS NOT NULL;
CREATE INDEX runs_pending_by_thread ON runs (thread, place) WHERE due_ms IS NOT NULL;

-- Number of pending runs of a thread. The ledger number changes with every run that is enqueued or
-- dequeued, so that a writer detects whether the pending runs that it has cached are current.
ALTER TABLE threads
    ADD COLUMN pending bigint NOT NULL DEFAULT 0,
    ADD COLUMN ledger bigint NOT NULL DEFAULT 0;
