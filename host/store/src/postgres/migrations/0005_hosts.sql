-- What a host reports in addition to its heartbeats. A host of an earlier version reports nothing.
ALTER TABLE holders
    ADD COLUMN version text,
    ADD COLUMN started_ms bigint,
    ADD COLUMN runs bigint,
    ADD COLUMN max_runs bigint,
    ADD COLUMN stopping boolean;
