//! Clarifications: questions to the user, and their answers.

use wattle_plugin::prelude::{
    Deserialize, Failure, JsonSchema, Serialize, Value, clock, json, params, random, sql,
};
use wattle_plugin::sql::{Newest, Transaction};

use crate::audit::{self, Row, Turns};
use crate::session::table::{self, Session, status};
use crate::session::turn::{self, TurnRow};
use crate::{DATABASE, state, time};

const INSERT: &str = "INSERT INTO reasoning_clarification \
    (id, session_id, turn_id, reason, question, status, created_at) \
    VALUES ($1, $2, $3, $4, $5, 'pending', $6)";

const SELECT: &str = "SELECT id, turn_id, reason, question, status FROM reasoning_clarification \
    WHERE session_id = $1 AND status = 'pending'";

const SELECT_ALL: &str = "SELECT id AS clarification_id, turn_id, reason, question, status, \
    answer_json AS answer FROM reasoning_clarification \
    WHERE session_id = $1 ORDER BY created_at DESC, id DESC";

const ANSWER: &str = "UPDATE reasoning_clarification \
    SET status = 'answered', answer_json = $1, answered_at = $2 \
    WHERE id = $3 AND status = 'pending'";

const CANCEL: &str = "UPDATE reasoning_clarification SET status = 'cancelled' \
    WHERE session_id = $1 AND status = 'pending'";

/// The pending clarification as the endpoints show it.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
pub(crate) struct PendingClarification {
    #[serde(rename(serialize = "clarification_id"))]
    pub(crate) id: String,
    /// Text for the user.
    question: String,
    /// Reason for programs, such as `no_attribute_match`.
    reason: String,
    #[schemars(extend("enum" = ["pending", "answered", "cancelled"]))]
    status: String,
    #[serde(skip_serializing)]
    pub(crate) turn_id: String,
}

/// A clarification with its answer.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(crate) struct ClarificationView {
    clarification_id: String,
    turn_id: String,
    /// Reason for programs, such as `no_attribute_match`.
    reason: String,
    /// Text for the user.
    question: String,
    #[schemars(extend("enum" = ["pending", "answered", "cancelled"]))]
    status: String,
    /// The answer as the client sent it.
    #[serde(deserialize_with = "sql::json")]
    answer: Option<Value>,
}

/// Returns the pending clarification of a session, which has at most one.
pub(crate) fn pending(session: &Session) -> Result<Option<PendingClarification>, Failure> {
    if session.status != status::WAITING {
        return Ok(None);
    }
    sql::database(DATABASE).query(SELECT, params![&session.id])?.read_first()
}

/// Returns the newest clarifications of a session in order, as [`ClarificationView`], that fit into
/// `budget` bytes of JSON.
pub(crate) fn clarifications(session_id: &str, mut budget: usize) -> Result<Newest, Failure> {
    let rows = sql::database(DATABASE).query(SELECT_ALL, params![session_id])?;
    rows.newest::<ClarificationView>(&mut budget)
}

/// Stores the clarification with which a run ended.
pub(super) fn ask(
    transaction: &Transaction,
    session_id: &str,
    turn_id: &str,
    asked: &state::Clarification,
) -> Result<(), Failure> {
    let row =
        params![random::uuid(), session_id, turn_id, &asked.reason, &asked.question, time::now()];
    transaction.execute(INSERT, row).map(|_| ())
}

/// Stores an answer and appends it to the input of the turn, which can then run again. Returns
/// false, and changes nothing, if the clarification is no longer pending: only one of several
/// concurrent answers is stored.
pub(crate) fn answer(
    session: &Session,
    turn: &TurnRow,
    asked: &PendingClarification,
    answer: &Value,
    text: &str,
) -> Result<bool, Failure> {
    let transaction = sql::database(DATABASE).begin()?;
    let row = params![answer.to_string(), time::now(), &asked.id];
    if transaction.execute(ANSWER, row)?.rows_affected == 0 {
        transaction.rollback()?;
        return Ok(false);
    }
    turn::merge(&transaction, turn, text)?;
    table::set_status(&transaction, &session.id, status::CREATED)?;
    let payload = json!({ "clarification_id": asked.id, "answer": text });
    let row = Row::of_endpoint("clarification", "clarification_answered", payload, clock::now_ms());
    let turns = Turns { newest: Some(turn.id.clone()), ..Turns::default() };
    audit::append(&transaction, &session.id, &[row], &turns)?;
    transaction.commit()?;
    Ok(true)
}

/// Cancels the pending clarification of a session.
pub(crate) fn cancel_pending(transaction: &Transaction, session_id: &str) -> Result<(), Failure> {
    transaction.execute(CANCEL, params![session_id]).map(|_| ())
}
