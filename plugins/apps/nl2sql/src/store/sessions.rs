//! `chat_session`: owners and titles of sessions.

use wattle_plugin::prelude::{Deserialize, Failure, JsonSchema, Serialize, params};
use wattle_plugin::sql::Transaction;

use crate::owner::Owner;
use crate::setting;
use crate::store::{Page, database};

/// Number of characters of the first message that become the title.
const TITLE_CHARACTERS: usize = 40;

/// Status of a request for a session of another owner, equal to that for a missing session.
const NOT_FOUND: u16 = 404;

const INSERT: &str = "INSERT INTO chat_session
    (session_id, tenant, admin_id, title, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (session_id) DO NOTHING";

const TOUCH: &str = "UPDATE chat_session SET updated_at = $2 WHERE session_id = $1";

const SELECT: &str = "SELECT tenant, admin_id FROM chat_session WHERE session_id = $1";

const LIST: &str = "SELECT s.session_id, s.title, s.created_at, s.updated_at,
    (SELECT COUNT(*) FROM chat_history AS h WHERE h.session_id = s.session_id) AS message_count
    FROM chat_session AS s WHERE s.tenant = $1 AND s.admin_id = $2
    ORDER BY s.updated_at DESC, s.session_id LIMIT $3 OFFSET $4";

const COUNT: &str =
    "SELECT COUNT(*) AS total FROM chat_session WHERE tenant = $1 AND admin_id = $2";

const DELETE: &str = "DELETE FROM chat_session WHERE session_id = $1";

/// A session in a list.
#[derive(Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Session {
    session_id: String,
    title: String,
    created_at: String,
    updated_at: String,
    message_count: i64,
}

/// Creates a session if it does not exist, and refuses a session of another owner.
pub(crate) fn open(session_id: &str, owner: &Owner, message: &str) -> Result<(), Failure> {
    let now = setting::now()?.iso();
    let parameters = params![session_id, &owner.tenant, owner.admin_id, title(message), &now, &now];
    database().execute(INSERT, parameters)?;
    require(session_id, owner)
}

/// Refuses a session of another owner.
pub(crate) fn require(session_id: &str, owner: &Owner) -> Result<(), Failure> {
    let rows = database().query(SELECT, params![session_id])?;
    let is_own = match rows.first() {
        Some(row) => {
            row.get::<String>("tenant")? == owner.tenant
                && row.get::<i64>("admin_id")? == owner.admin_id
        }
        None => false,
    };
    if is_own {
        return Ok(());
    }
    Err(Failure::not_found(format!("会话 `{session_id}` 不存在")).with_status(NOT_FOUND))
}

/// Creates a session inside of a transaction if it does not exist, and updates the time of its last
/// use.
pub(crate) fn touch(
    transaction: &Transaction,
    session_id: &str,
    owner: &Owner,
    message: &str,
) -> Result<(), Failure> {
    let now = setting::now()?.iso();
    let parameters = params![session_id, &owner.tenant, owner.admin_id, title(message), &now, &now];
    transaction.execute(INSERT, parameters)?;
    transaction.execute(TOUCH, params![session_id, &now])?;
    Ok(())
}

/// Returns a page of an owner's sessions, the last used first.
pub(crate) fn list(owner: &Owner, offset: u32, limit: u32) -> Result<Page<Session>, Failure> {
    let parameters = params![&owner.tenant, owner.admin_id, limit, offset];
    let sessions = database().query(LIST, parameters)?;
    let count = database().query(COUNT, params![&owner.tenant, owner.admin_id])?;
    Page::read(&sessions, limit, count.one()?.get("total")?)
}

/// Deletes a session with its history and downloads.
pub(crate) fn delete(session_id: &str) -> Result<(), Failure> {
    database().execute(DELETE, params![session_id]).map(|_| ())
}

fn title(message: &str) -> String {
    message.chars().take(TITLE_CHARACTERS).collect()
}
