-- Sessions with their messages, steps and snapshots. What runs did is folded in from the event
-- logs of their threads. Times are milliseconds since 1970, documents JSON texts.

CREATE TABLE sessions (
    -- Also the id of the thread.
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    title TEXT NOT NULL,
    -- Who gave the title: a title of a person is never replaced by that of a video.
    title_source TEXT NOT NULL CHECK (title_source IN ('default', 'video', 'user')),
    status TEXT NOT NULL
        CHECK (status IN ('IDLE', 'RUNNING', 'COMPLETED', 'ERROR', 'CANCELLED')),
    current_step TEXT,
    failed_step TEXT,
    last_error TEXT,
    -- The newest run.
    run_id TEXT,
    -- The event before the first one of the run that is under way; the cursor if none is.
    run_cursor BIGINT NOT NULL DEFAULT 0,
    -- The last event of the thread's log that is in the tables.
    event_cursor BIGINT NOT NULL DEFAULT 0,
    -- When the first run began.
    started_ms BIGINT,
    completed_ms BIGINT,
    cancelled_ms BIGINT,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL
);

CREATE INDEX sessions_newest ON sessions (tenant, created_ms);

CREATE TABLE chat_messages (
    session_id TEXT NOT NULL REFERENCES sessions (id),
    -- The id that the chat page knows.
    external_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant')),
    parts TEXT NOT NULL,
    -- The text parts alone.
    text TEXT NOT NULL,
    -- Order in the session.
    seq BIGINT NOT NULL,
    -- Who wrote it: what a run said is not for a client to change.
    source TEXT NOT NULL CHECK (source IN ('client', 'run')),
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    PRIMARY KEY (session_id, external_id)
);

CREATE TABLE session_steps (
    -- Task and number of the call.
    id TEXT NOT NULL,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    tenant TEXT NOT NULL,
    run_id TEXT NOT NULL,
    -- One of the names in `tool::NAMES`, checked by the program.
    tool_name TEXT NOT NULL,
    tool_call_id TEXT,
    status TEXT NOT NULL CHECK (status IN ('RUNNING', 'SUCCESS', 'ERROR', 'CANCELLED')),
    input TEXT,
    -- Without the page, which is in the snapshot.
    output TEXT,
    error_message TEXT,
    duration_ms BIGINT,
    -- Order in the session: the event with which it began.
    seq BIGINT NOT NULL,
    started_ms BIGINT NOT NULL,
    completed_ms BIGINT,
    PRIMARY KEY (session_id, id)
);

CREATE TABLE session_state (
    session_id TEXT PRIMARY KEY REFERENCES sessions (id),
    tenant TEXT NOT NULL,
    -- video, videos, images, imageMode, imagePlan
    context TEXT,
    blocks TEXT,
    spot_blocks TEXT,
    tool_outputs TEXT,
    handbook_html TEXT,
    -- videoUrl and thumbnailUrl of the video that the page is about.
    handbook_video TEXT,
    -- Counts the pages that the tool made, not those that a person edited.
    handbook_version BIGINT NOT NULL DEFAULT 0,
    preview_path TEXT,
    updated_ms BIGINT NOT NULL
);
