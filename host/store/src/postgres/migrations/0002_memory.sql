-- What agents remember over all threads. Paths are scopes and namespaces in the order of their
-- parts; keys are bytes, since text holds no NUL.
CREATE TABLE memory (
    path bytea NOT NULL,
    key bytea NOT NULL,
    created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL,
    expires_ms bigint,
    refresh_ms bigint,
    document text NOT NULL,
    PRIMARY KEY (path, key)
);

CREATE INDEX memory_expiries ON memory (expires_ms) WHERE expires_ms IS NOT NULL;
