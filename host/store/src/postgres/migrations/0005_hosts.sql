-- What a host tells of itself beside its heartbeat. A host of an older version tells nothing.
ALTER TABLE holders
    ADD COLUMN version text,
    ADD COLUMN started_ms bigint,
    ADD COLUMN runs bigint,
    ADD COLUMN max_runs bigint,
    ADD COLUMN stopping boolean;
