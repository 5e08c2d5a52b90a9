-- Numbers that identify threads in all other tables. A deleted or rewritten thread gets a new
-- number, so that leftover rows never become rows of another thread.
CREATE SEQUENCE thread_numbers;

-- Lease epochs, increasing over all hosts.
CREATE SEQUENCE epochs;

-- The last heartbeat of each host.
CREATE TABLE holders (
    holder bytea PRIMARY KEY,
    beat timestamptz NOT NULL
);

-- One row per thread. A row without a record only has the lease of a thread that does not exist.
-- Every write to a thread locks its row first.
CREATE TABLE threads (
    id bytea PRIMARY KEY,
    number bigint NOT NULL,
    holder bytea,
    epoch bigint,
    record bytea,
    app text,
    status text,
    tenant bytea,
    updated_ms bigint,
    expires_ms bigint,
    ttl_ends_ms bigint,
    last_seq bigint NOT NULL DEFAULT 0,
    last_checkpoint bigint,
    current bigint,
    pruned_seq bigint NOT NULL DEFAULT 0,
    -- The newest seal, and the seal before the oldest batch that is kept.
    seal bytea,
    pruned_seal bytea,
    -- Position of the newest batch. Bytes of all batches with their values.
    last_place bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX threads_by_update ON threads (updated_ms DESC, id) WHERE record IS NOT NULL;
CREATE INDEX threads_by_expiry ON threads (expires_ms) WHERE expires_ms IS NOT NULL;
CREATE INDEX threads_by_ttl ON threads (ttl_ends_ms) WHERE ttl_ends_ms IS NOT NULL;

CREATE TABLE runs (
    id bytea PRIMARY KEY,
    thread bigint NOT NULL,
    place bigint GENERATED ALWAYS AS IDENTITY,
    record bytea NOT NULL
);
CREATE INDEX runs_by_thread ON runs (thread, place);

-- Appended batches in order. `events` and `meta` (`CheckpointMeta`) are packed JSON.
CREATE TABLE batches (
    thread bigint NOT NULL,
    place bigint NOT NULL,
    after_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    base bigint,
    checkpoint bigint,
    namespace bytea,
    events bytea,
    meta bytea,
    seal bytea NOT NULL,
    PRIMARY KEY (thread, place)
);
CREATE UNIQUE INDEX batches_by_seq ON batches (thread, last_seq) WHERE events IS NOT NULL;
CREATE UNIQUE INDEX batches_by_checkpoint ON batches (thread, checkpoint)
    WHERE checkpoint IS NOT NULL;
CREATE INDEX batches_by_base ON batches (thread, base, place)
    WHERE base IS NOT NULL AND events IS NOT NULL;

-- Values of channels. A row is a full value, or a list delta: the items that follow the first
-- `keep` items of version `base`. `root` is the version of the full value of the delta chain, which
-- equals `version` in the row of the full value. All versions of a chain lie between `root` and the
-- newest version of the chain. `place` is the position of the batch that wrote the value.
CREATE TABLE channel_values (
    thread bigint NOT NULL,
    channel bytea NOT NULL,
    version bigint NOT NULL,
    place bigint NOT NULL,
    value bytea NOT NULL,
    base bigint,
    keep bigint,
    root bigint NOT NULL,
    -- For a list: the number of its items, the number and the bytes of the list deltas since the
    -- full value, and the bytes of the full value.
    items bigint,
    tails bigint NOT NULL DEFAULT 0,
    tail_bytes bigint NOT NULL DEFAULT 0,
    whole_bytes bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (thread, channel, version)
);
CREATE INDEX channel_values_by_place ON channel_values (thread, place);
-- Values are compressed before they are stored.
ALTER TABLE channel_values ALTER value SET STORAGE EXTERNAL;
ALTER TABLE batches ALTER events SET STORAGE EXTERNAL, ALTER meta SET STORAGE EXTERNAL;

-- Blobs that a thread mentions.
CREATE TABLE mentions (
    thread bigint NOT NULL,
    blob bytea NOT NULL,
    PRIMARY KEY (thread, blob)
);
CREATE INDEX mentions_by_blob ON mentions (blob);

-- Blobs, in chunks.
CREATE TABLE blobs (
    blob bytea PRIMARY KEY,
    size bigint NOT NULL,
    media_type text NOT NULL,
    put timestamptz NOT NULL
);
CREATE TABLE blob_chunks (
    blob bytea NOT NULL,
    chunk bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (blob, chunk)
);
ALTER TABLE blob_chunks ALTER bytes SET STORAGE EXTERNAL;
