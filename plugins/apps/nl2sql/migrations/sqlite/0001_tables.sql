-- Sessions, what was said in them, how each question went, and files that can be downloaded.
-- Times are ISO 8601 texts with offset; rows are ordered by their ids.

CREATE TABLE chat_session (
    session_id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    admin_id BIGINT NOT NULL,
    title TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);

CREATE INDEX chat_session_owner ON chat_session (tenant, admin_id, updated_at);

CREATE TABLE chat_history (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES chat_session (session_id) ON DELETE CASCADE,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    content TEXT NOT NULL,
    -- The ResultReturnResult of an answer, with the first rows only.
    result TEXT,
    created_at TEXT NOT NULL
);

CREATE INDEX chat_history_session ON chat_history (session_id, id);

CREATE TABLE workflow_log (
    run_id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    admin_id BIGINT NOT NULL,
    message TEXT NOT NULL,
    intent TEXT,
    -- success, partial_success, failed; error if the workflow did not come to an answer.
    final_status TEXT NOT NULL,
    reason_code TEXT,
    error_step TEXT,
    error_message TEXT,
    retry_count BIGINT NOT NULL,
    row_count BIGINT NOT NULL,
    executed_sql TEXT NOT NULL,
    created_at TEXT NOT NULL
);

CREATE INDEX workflow_log_session ON workflow_log (session_id);

CREATE TABLE chat_download (
    file TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES chat_session (session_id) ON DELETE CASCADE,
    blob TEXT NOT NULL,
    row_count BIGINT NOT NULL,
    created_ms BIGINT NOT NULL
);
