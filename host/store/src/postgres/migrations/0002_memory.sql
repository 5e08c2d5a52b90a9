-- Documents of the long-term memory. Paths are scopes and namespaces, and sort as their parts do.
-- Keys are bytes, because `text` cannot contain NUL.
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
