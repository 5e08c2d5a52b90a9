//! The table of sessions.

use wattle_plugin::prelude::{Failure, clock, params, random, sql};
use wattle_plugin::prompt::head;
use wattle_plugin::sql::Transaction;

use crate::DATABASE;
use crate::session::{Session, TITLE_CHARS, UNTITLED, owner, plain, whole};

const INSERT: &str = "INSERT INTO sessions \
    (id, tenant, title, title_source, status, created_ms, updated_ms) \
    VALUES ($1, $2, $3, $4, 'IDLE', $5, $5)";

const COLUMNS: &str = "id, tenant, title, status, current_step, failed_step, last_error, run_id, \
    run_cursor, event_cursor, started_ms, completed_ms, cancelled_ms, created_ms, updated_ms";

const TOUCH: &str = "UPDATE sessions SET updated_ms = $1 WHERE id = $2";

const SET_TITLE: &str =
    "UPDATE sessions SET title = $1, title_source = 'user', updated_ms = $2 WHERE id = $3";

const NAME: &str = "UPDATE sessions SET title = $1, title_source = 'video' \
    WHERE id = $2 AND title_source <> 'user'";

const SET_STATUS: &str = "UPDATE sessions SET status = $1, current_step = $2, failed_step = $3, \
    last_error = $4, run_id = $5, run_cursor = $6, started_ms = $7, completed_ms = $8, \
    cancelled_ms = $9, updated_ms = $10 WHERE id = $11";

/// A session whose thread was deleted has no active run.
const FORGET: &str = "UPDATE sessions SET run_cursor = 0, updated_ms = $1, \
    status = CASE WHEN status = 'RUNNING' THEN 'CANCELLED' ELSE status END, current_step = NULL \
    WHERE id = $2";

/// Tables whose rows belong to a session, and then its own row.
const DELETE: [&str; 4] = [
    "DELETE FROM chat_messages WHERE session_id = $1",
    "DELETE FROM session_steps WHERE session_id = $1",
    "DELETE FROM session_state WHERE session_id = $1",
    "DELETE FROM sessions WHERE id = $1",
];

/// Creates a session. A given title is the user's, which no video replaces.
pub(crate) fn create(tenant: Option<&str>, title: Option<&str>) -> Result<Session, Failure> {
    let (id, now) = (random::uuid(), clock::now_ms());
    let (title, source) = match title {
        Some(title) => (plain(title), "user"),
        None => (UNTITLED.to_owned(), "default"),
    };
    let row = params![&id, owner(tenant), &title, source, now];
    sql::database(DATABASE).execute(INSERT, row)?;
    let tenant = owner(tenant).to_owned();
    Ok(Session { id, tenant, title, created_ms: now, updated_ms: now, ..Session::default() })
}

/// Returns a tenant's session by its id.
pub(crate) fn find(tenant: Option<&str>, session_id: &str) -> Result<Option<Session>, Failure> {
    // No session has such an id, and PostgreSQL refuses such a text.
    if session_id.contains('\0') {
        return Ok(None);
    }
    let select = format!("SELECT {COLUMNS} FROM sessions WHERE id = $1 AND tenant = $2");
    sql::database(DATABASE).query(&select, params![session_id, owner(tenant)])?.read_first()
}

/// Returns a tenant's sessions, the newest first.
pub(crate) fn list(tenant: Option<&str>, limit: u32, offset: u32) -> Result<Vec<Session>, Failure> {
    let select = format!(
        "SELECT {COLUMNS} FROM sessions WHERE tenant = $1 \
         ORDER BY created_ms DESC, id LIMIT $2 OFFSET $3"
    );
    let parameters = params![owner(tenant), limit, offset];
    whole(sql::database(DATABASE).query(&select, parameters)?)?.read_all()
}

/// Locks a session until the transaction ends.
pub(crate) fn lock(transaction: &Transaction, session_id: &str) -> Result<(), Failure> {
    transaction.execute(TOUCH, params![clock::now_ms(), session_id]).map(|_| ())
}

/// Sets the title that the user has chosen.
pub(crate) fn set_title(session_id: &str, title: &str) -> Result<(), Failure> {
    let row = params![plain(title), clock::now_ms(), session_id];
    sql::database(DATABASE).execute(SET_TITLE, row).map(|_| ())
}

/// Sets the title of a video, unless the user has chosen another one.
pub(super) fn name(
    transaction: &Transaction,
    session_id: &str,
    video: &str,
) -> Result<(), Failure> {
    let title = plain(video);
    let title = head(title.trim(), TITLE_CHARS);
    if title.is_empty() {
        return Ok(());
    }
    transaction.execute(NAME, params![title, session_id]).map(|_| ())
}

/// Writes the status of a session.
pub(super) fn set_status(transaction: &Transaction, session: &Session) -> Result<(), Failure> {
    let row = params![
        session.status.name(),
        session.current_step.as_ref(),
        session.failed_step.as_ref(),
        session.last_error.as_deref().map(plain),
        session.run_id.as_ref(),
        session.run_cursor.cast_signed(),
        session.started_ms,
        session.completed_ms,
        session.cancelled_ms,
        clock::now_ms(),
        &session.id,
    ];
    transaction.execute(SET_STATUS, row).map(|_| ())
}

/// Resets a session whose thread was deleted.
pub(super) fn forget(transaction: &Transaction, session_id: &str) -> Result<(), Failure> {
    transaction.execute(FORGET, params![clock::now_ms(), session_id]).map(|_| ())
}

/// Deletes a session with all its rows.
pub(crate) fn delete(session_id: &str) -> Result<(), Failure> {
    let transaction = sql::database(DATABASE).begin()?;
    for statement in DELETE {
        transaction.execute(statement, params![session_id])?;
    }
    transaction.commit()
}
