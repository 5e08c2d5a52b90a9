//! The table of messages.
//!
//! Messages of a client are stored as sent, except for those of runs: the event log has them, and a
//! client that disconnected during a run knows less.

use std::collections::BTreeMap;

use wattle_plugin::prelude::{
    Deserialize, Extra, Failure, JsonSchema, Serialize, Value, clock, json, params, sql,
};
use wattle_plugin::sql::{Newest, Transaction};

use crate::DATABASE;
use crate::message::{Role, UiMessage};
use crate::session::{Session, plain, utc, whole};

const PUT: &str = "INSERT INTO chat_messages (session_id, external_id, tenant, role, parts, text, \
    seq, source, created_ms, updated_ms) VALUES ($1, $2, $3, $4, $5, $6, \
    (SELECT COALESCE(MAX(seq), 0) + 1 FROM chat_messages WHERE session_id = $1), $7, $8, $8) \
    ON CONFLICT (session_id, external_id) DO UPDATE SET role = excluded.role, \
    parts = excluded.parts, text = excluded.text, source = excluded.source, \
    updated_ms = excluded.updated_ms";

const SELECT: &str = "SELECT external_id AS id, role, parts, created_ms AS created_at \
    FROM chat_messages WHERE session_id = $1 ORDER BY seq DESC";

const SELECT_SAID: &str = "SELECT external_id, parts, seq FROM chat_messages \
    WHERE session_id = $1 AND source = 'run' AND seq > $2 ORDER BY seq";

const SELECT_IDS: &str = "SELECT external_id, source FROM chat_messages WHERE session_id = $1";

const DELETE: &str = "DELETE FROM chat_messages WHERE session_id = $1 AND external_id = $2";

/// A message as the endpoints show it.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all(serialize = "camelCase"))]
pub(crate) struct StoredMessage {
    /// Unique in its session.
    id: String,
    #[schemars(with = "Role")]
    role: String,
    /// Text, reasoning, files and tool calls, in order.
    #[serde(deserialize_with = "sql::json")]
    #[schemars(with = "Vec<Extra>")]
    parts: Value,
    #[serde(deserialize_with = "utc")]
    created_at: String,
}

/// Replaces messages of runs in a request by the stored ones.
pub(crate) fn replace_those_of_runs(
    session_id: &str,
    messages: &mut [UiMessage],
) -> Result<(), Failure> {
    let mut after = 0;
    loop {
        let parameters = params![session_id, after];
        let rows = sql::database(DATABASE).query(SELECT_SAID, parameters)?;
        for row in rows.iter() {
            let (id, parts): (String, Value) = (row.get("external_id")?, row.get("parts")?);
            after = row.get::<i64>("seq")?;
            let message = messages.iter_mut().find(|message| message.id == id);
            if let (Some(message), Value::Array(parts)) = (message, parts) {
                (message.role, message.parts) = (Role::Assistant, parts);
            }
        }
        // The rest of a truncated result is read in the next iteration.
        if !rows.truncated || rows.is_empty() {
            return whole(rows).map(drop);
        }
    }
}

/// Stores the messages of a request. The session must be locked. With `instead`, the messages that
/// the client has dropped are deleted, as when it requests another answer.
pub(crate) fn keep(
    transaction: &Transaction,
    session: &Session,
    messages: &[UiMessage],
    instead: bool,
) -> Result<(), Failure> {
    let rows = whole(transaction.query(SELECT_IDS, params![&session.id])?)?;
    let known = rows
        .iter()
        .map(|row| Ok((row.get("external_id")?, row.get("source")?)))
        .collect::<Result<BTreeMap<String, String>, Failure>>()?;
    let is_sent = |id: &str| messages.iter().any(|message| message.id == id);
    for id in known.keys().filter(|id| instead && !is_sent(id)) {
        transaction.execute(DELETE, params![&session.id, id])?;
    }
    let of_client = |message: &&UiMessage| known.get(&message.id).is_none_or(|it| it == "client");
    for message in messages.iter().filter(of_client) {
        write(transaction, session, message, "client")?;
    }
    Ok(())
}

/// Stores the message of a run. The session must be locked.
pub(crate) fn put(
    transaction: &Transaction,
    session: &Session,
    message: &UiMessage,
) -> Result<(), Failure> {
    write(transaction, session, message, "run")
}

fn write(
    transaction: &Transaction,
    session: &Session,
    message: &UiMessage,
    source: &str,
) -> Result<(), Failure> {
    let row = params![
        &session.id,
        &message.id,
        &session.tenant,
        message.role.name(),
        json!(message.parts).to_string(),
        plain(&message.text()),
        source,
        clock::now_ms(),
    ];
    transaction.execute(PUT, row).map(|_| ())
}

/// Returns the newest messages of a session as the endpoints show them, in order.
pub(crate) fn list(session_id: &str, budget: &mut usize) -> Result<Newest, Failure> {
    sql::database(DATABASE).query(SELECT, params![session_id])?.newest::<StoredMessage>(budget)
}
