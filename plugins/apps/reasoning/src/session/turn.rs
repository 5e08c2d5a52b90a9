//! Turns: what one message of the user leads to.

use wattle_plugin::prelude::{Failure, Value, json, params, random, sql};
use wattle_plugin::sql::{Row, Transaction};

use crate::session::status;
use crate::{DATABASE, time};

/// A turn that is there already stays as it is: two requests may find the same run.
const INSERT: &str = "INSERT INTO reasoning_turn \
    (id, session_id, turn_no, status, user_input, created_at, updated_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT DO NOTHING";

const SELECT: &str = "SELECT id, turn_no, status, user_input, result_json, error_json \
    FROM reasoning_turn WHERE session_id = $1 ORDER BY turn_no";

const SET_STATUS: &str = "UPDATE reasoning_turn SET status = $1, updated_at = $2 WHERE id = $3";

const SETTLE: &str = "UPDATE reasoning_turn SET status = $1, result_json = $2, error_json = $3, \
    updated_at = $4 WHERE id = $5";

const MERGE: &str = "UPDATE reasoning_turn SET user_input = $1, status = $2, updated_at = $3 \
    WHERE id = $4";

/// One turn.
#[derive(Debug, Clone)]
pub(crate) struct TurnRow {
    pub(crate) id: String,
    pub(crate) turn_no: i64,
    pub(crate) status: String,
    pub(crate) user_input: String,
    pub(crate) result: Option<Value>,
    pub(crate) error: Option<Value>,
}

impl TurnRow {
    /// A turn that is not in the database yet.
    pub(crate) fn fresh(turn_no: i64, user_input: &str) -> Self {
        Self::known(random::uuid(), turn_no, user_input)
    }

    /// The same with an id from elsewhere.
    pub(crate) fn known(id: String, turn_no: i64, user_input: &str) -> Self {
        let status = status::CREATED.to_owned();
        let user_input = user_input.to_owned();
        Self { id, turn_no, status, user_input, result: None, error: None }
    }

    fn read(row: Row<'_>) -> Result<Self, Failure> {
        Ok(Self {
            id: row.get("id")?,
            turn_no: row.get("turn_no")?,
            status: row.get("status")?,
            user_input: row.get("user_input")?,
            result: row.get("result_json")?,
            error: row.get("error_json")?,
        })
    }

    pub(crate) fn insert(
        &self,
        transaction: &Transaction,
        session_id: &str,
    ) -> Result<(), Failure> {
        let (status, now) = (&self.status, time::now()?);
        let row = params![&self.id, session_id, self.turn_no, status, &self.user_input, now];
        transaction.execute(INSERT, row).map(|_| ())
    }

    /// The turn as the endpoints show it.
    pub(crate) fn view(&self) -> Value {
        json!({ "turn_id": self.id, "turn_no": self.turn_no, "status": self.status,
                "user_input": self.user_input })
    }

    /// The turn with what became of it, for who takes a session up again.
    pub(crate) fn whole(&self) -> Value {
        let mut view = self.view();
        view["result"] = json!(self.result);
        view["error"] = json!(self.error);
        view
    }
}

/// The turns of a session in their order.
pub(crate) fn turns(session_id: &str) -> Result<Vec<TurnRow>, Failure> {
    let rows = sql::database(DATABASE).query(SELECT, params![session_id])?;
    rows.iter().map(TurnRow::read).collect()
}

/// The newest turn of a session; every session has one.
pub(crate) fn newest_turn(session_id: &str) -> Result<TurnRow, Failure> {
    turns(session_id)?
        .pop()
        .ok_or_else(|| Failure::not_found(format!("session `{session_id}` has no turn")))
}

/// The number of a further turn.
pub(crate) fn next_turn_no(newest: &TurnRow) -> i64 {
    newest.turn_no + 1
}

pub(super) fn set_status(
    transaction: &Transaction,
    turn_id: &str,
    status: &str,
) -> Result<(), Failure> {
    transaction.execute(SET_STATUS, params![status, time::now()?, turn_id]).map(|_| ())
}

/// Writes down how a turn ended.
pub(super) fn settle(
    transaction: &Transaction,
    turn_id: &str,
    status: &str,
    result: Option<&Value>,
    error: Option<&Value>,
) -> Result<(), Failure> {
    let (result, error) = (result.map(Value::to_string), error.map(Value::to_string));
    let row = params![status, result, error, time::now()?, turn_id];
    transaction.execute(SETTLE, row).map(|_| ())
}

/// Puts an answer to a clarification under what the user said; the turn can run again.
pub(super) fn merge(
    transaction: &Transaction,
    turn: &TurnRow,
    answer: &str,
) -> Result<(), Failure> {
    let merged = format!("{}\n[clarification] {answer}", turn.user_input);
    let row = params![merged, status::CREATED, time::now()?, &turn.id];
    transaction.execute(MERGE, row).map(|_| ())
}
