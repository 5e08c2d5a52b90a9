//! `chat_history`: what was said in a session.

use wattle_plugin::prelude::{Failure, Serialize, Value, params};
use wattle_plugin::sql::{Row, Transaction};

use crate::date;
use crate::store::database;

const INSERT: &str = "INSERT INTO chat_history (session_id, role, content, result, created_at)
    VALUES ($1, $2, $3, $4, $5)";

const LAST_OF_USER: &str = "SELECT content FROM chat_history
    WHERE session_id = $1 AND role = 'user' ORDER BY id DESC LIMIT $2";

const LIST: &str = "SELECT id, role, content, result, created_at FROM chat_history
    WHERE session_id = $1 ORDER BY id LIMIT $2 OFFSET $3";

const COUNT: &str = "SELECT COUNT(*) AS total FROM chat_history WHERE session_id = $1";

const DELETE: &str = "DELETE FROM chat_history WHERE session_id = $1";

/// One message in a list.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Message {
    id: i64,
    role: String,
    content: String,
    result: Value,
    created_at: String,
}

/// Who says something.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Role {
    User,
    Assistant,
}

/// Adds a message inside a transaction.
pub(crate) fn add(
    transaction: &Transaction,
    session_id: &str,
    role: Role,
    content: &str,
    result: Option<&Value>,
) -> Result<(), Failure> {
    let role = match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let result = result.map(Value::to_string);
    let parameters = params![session_id, role, content, result, date::now()?.iso()];
    transaction.execute(INSERT, parameters).map(|_| ())
}

/// The last things the user said, the oldest first.
pub(crate) fn last_of_user(session_id: &str, limit: u32) -> Result<Vec<String>, Failure> {
    let rows = database().query(LAST_OF_USER, params![session_id, limit])?;
    let mut messages: Vec<String> = rows.column("content")?;
    messages.reverse();
    Ok(messages)
}

/// Messages of a session, the oldest first, and how many there are.
pub(crate) fn list(
    session_id: &str,
    offset: u32,
    limit: u32,
) -> Result<(Vec<Message>, i64), Failure> {
    let rows = database().query(LIST, params![session_id, limit, offset])?;
    let messages = rows.iter().map(read).collect::<Result<_, _>>()?;
    let count = database().query(COUNT, params![session_id])?;
    Ok((messages, count.one()?.get("total")?))
}

/// Forgets what was said in a session.
pub(crate) fn delete(session_id: &str) -> Result<(), Failure> {
    database().execute(DELETE, params![session_id]).map(|_| ())
}

fn read(row: Row<'_>) -> Result<Message, Failure> {
    let result: Option<String> = row.get("result")?;
    Ok(Message {
        id: row.get("id")?,
        role: row.get("role")?,
        content: row.get("content")?,
        result: result.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
        created_at: row.get("created_at")?,
    })
}
