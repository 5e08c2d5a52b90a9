-- Sessions with their turns, clarifications and tasks, and the audit trail.
-- Times are texts such as 2025-01-15T02:30:45.000Z, documents are JSON texts.

CREATE TABLE reasoning_session (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    status TEXT NOT NULL
        CHECK (status IN ('created', 'running', 'waiting_clarification', 'completed', 'failed', 'cancelled')),
    metadata_json TEXT NOT NULL,
    -- The last event of the thread's log that is in the audit trail.
    event_cursor INTEGER NOT NULL DEFAULT 0,
    -- Rows of the audit trail.
    trace_count INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);

CREATE TABLE reasoning_turn (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES reasoning_session (id),
    turn_no INTEGER NOT NULL,
    status TEXT NOT NULL,
    -- With answers to clarifications as further lines.
    user_input TEXT NOT NULL,
    result_json TEXT,
    error_json TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    UNIQUE (session_id, turn_no)
);

CREATE TABLE reasoning_clarification (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES reasoning_session (id),
    turn_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    question TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'answered', 'cancelled')),
    answer_json TEXT,
    created_at TEXT NOT NULL,
    answered_at TEXT
);

CREATE INDEX reasoning_clarification_session ON reasoning_clarification (session_id, status);

-- Written by the run itself, which may also work for no session: no reference.
CREATE TABLE reasoning_task (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    task_type TEXT NOT NULL CHECK (task_type IN ('capability', 'object_property')),
    ontology_code TEXT NOT NULL,
    resource_code TEXT NOT NULL,
    resource_name TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('running', 'completed', 'failed')),
    executor TEXT,
    result_json TEXT,
    error TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);

CREATE INDEX reasoning_task_session ON reasoning_task (session_id, created_at);

-- One row a run: which turn it works for, what it was given, and what it decided.
CREATE TABLE reasoning_context (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES reasoning_session (id),
    turn_id TEXT NOT NULL,
    input TEXT NOT NULL,
    context_json TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);

CREATE INDEX reasoning_context_session ON reasoning_context (session_id);

CREATE TABLE reasoning_trace_event (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES reasoning_session (id),
    -- 1, 2, 3 and so on in a session.
    seq INTEGER NOT NULL,
    turn_id TEXT,
    step TEXT NOT NULL,
    event_type TEXT NOT NULL,
    payload_json TEXT NOT NULL,
    created_at TEXT NOT NULL,
    UNIQUE (session_id, seq)
);
