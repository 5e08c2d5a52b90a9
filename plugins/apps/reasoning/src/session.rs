//! Sessions, turns and clarifications in the database.
//!
//! A session is a thread of the host with the same id. A turn is one message of the user, with its
//! result; it takes one or several runs. [`sync()`] reads what a run did from the thread's event
//! log before the tables are read, so the tables are correct also after a crash.

mod clarification;
mod sync;
mod table;
mod turn;

use wattle_plugin::prelude::{Failure, Value, clock, json, params, random, sql};

use self::clarification::cancel_pending;
pub(crate) use self::clarification::{
    ClarificationView, PendingClarification, answer, clarifications, pending,
};
pub(crate) use self::sync::{adopt, sync};
use self::table::{DEFAULT_TENANT, set_status};
pub(crate) use self::table::{Session, Status, find, status};
pub(crate) use self::turn::{TurnRow, WholeTurn, find_turn, newest_turn, next_turn_no, turns};
use crate::audit::{self, Row, Turns};
use crate::{DATABASE, time};

const INSERT: &str = "INSERT INTO reasoning_session \
    (id, tenant, status, metadata_json, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $5)";

/// Creates a session with its first turn.
pub(crate) fn create(
    tenant: Option<&str>,
    user_input: &str,
    metadata: &Value,
) -> Result<(String, TurnRow), Failure> {
    let (session_id, now) = (random::uuid(), time::now());
    let turn = TurnRow::fresh(1, user_input);
    let transaction = sql::database(DATABASE).begin()?;
    let tenant = tenant.unwrap_or(DEFAULT_TENANT);
    let row = params![&session_id, tenant, status::CREATED, metadata.to_string(), &now];
    transaction.execute(INSERT, row)?;
    turn.insert(&transaction, &session_id)?;
    let payload = json!({ "user_input": user_input, "turn_no": 1 });
    let created = Row::of_endpoint("session_create", "session_created", payload, clock::now_ms());
    let turns = Turns { newest: Some(turn.id.clone()), ..Turns::default() };
    audit::append(&transaction, &session_id, &[created], &turns)?;
    transaction.commit()?;
    Ok((session_id, turn))
}

/// Cancels a session without an active run, together with its newest turn and its pending
/// clarification.
pub(crate) fn cancel(session: &Session, turn: &TurnRow) -> Result<(), Failure> {
    let transaction = sql::database(DATABASE).begin()?;
    set_status(&transaction, &session.id, status::CANCELLED)?;
    if matches!(turn.status.as_str(), status::CREATED | status::WAITING | status::RUNNING) {
        turn::set_status(&transaction, &turn.id, status::CANCELLED)?;
    }
    cancel_pending(&transaction, &session.id)?;
    let row = Row::of_endpoint("failed", "session_cancelled", json!({}), clock::now_ms());
    let turns = Turns { newest: Some(turn.id.clone()), ..Turns::default() };
    audit::append(&transaction, &session.id, &[row], &turns)?;
    transaction.commit()
}
