//! Turns: messages of the user, with their results.

use wattle_plugin::prelude::{
    Deserialize, Failure, JsonSchema, Serialize, Value, json, params, random, sql,
};
use wattle_plugin::sql::{Newest, Transaction};

use crate::result::ModelOutput;
use crate::session::table::{Status, status};
use crate::{DATABASE, time};

/// An existing turn is kept, because two requests can find the same run.
const INSERT: &str = "INSERT INTO reasoning_turn \
    (id, session_id, turn_no, status, user_input, created_at, updated_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT DO NOTHING";

const SELECT: &str = "SELECT id AS turn_id, turn_no, status, user_input, \
    result_json AS result, error_json AS error FROM reasoning_turn \
    WHERE session_id = $1 ORDER BY turn_no DESC";

const SELECT_NEWEST: &str = "SELECT id, turn_no, status, user_input, result_json AS result, \
    error_json AS error FROM reasoning_turn WHERE session_id = $1 ORDER BY turn_no DESC LIMIT 1";

const SELECT_ONE: &str = "SELECT id, turn_no, status, user_input, result_json AS result, \
    error_json AS error FROM reasoning_turn WHERE session_id = $1 AND id = $2";

const SET_STATUS: &str = "UPDATE reasoning_turn SET status = $1, updated_at = $2 WHERE id = $3";

const SETTLE: &str = "UPDATE reasoning_turn SET status = $1, result_json = $2, error_json = $3, \
    updated_at = $4 WHERE id = $5";

const FORGET: &str = "UPDATE reasoning_turn SET status = 'failed', error_json = $1, \
    updated_at = $2 WHERE session_id = $3 AND status = 'running' RETURNING id";

const MERGE: &str = "UPDATE reasoning_turn SET user_input = $1, status = $2, updated_at = $3 \
    WHERE id = $4";

/// A turn as the endpoints show it.
// They show the result and the error in other documents.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "TurnView")]
pub(crate) struct TurnRow {
    #[serde(rename(serialize = "turn_id"))]
    pub(crate) id: String,
    pub(crate) turn_no: i64,
    #[schemars(with = "Status")]
    pub(crate) status: String,
    /// Message of the user, with the answers to clarifications as further lines.
    pub(crate) user_input: String,
    #[serde(deserialize_with = "sql::json", skip_serializing)]
    pub(crate) result: Option<Value>,
    #[serde(deserialize_with = "sql::json", skip_serializing)]
    pub(crate) error: Option<Value>,
}

/// A turn with its result and its error.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(crate) struct WholeTurn {
    turn_id: String,
    turn_no: i64,
    #[schemars(with = "Status")]
    status: String,
    /// Message of the user, with the answers to clarifications as further lines.
    user_input: String,
    #[serde(deserialize_with = "sql::json")]
    #[schemars(with = "Option<ModelOutput>")]
    result: Option<Value>,
    #[serde(deserialize_with = "sql::json")]
    #[schemars(with = "Option<TurnError>")]
    error: Option<Value>,
}

/// The failure of a turn.
#[expect(dead_code, reason = "only its schema is used: the table has a document")]
#[derive(JsonSchema)]
struct TurnError {
    code: Option<String>,
    message: Option<String>,
}

impl TurnRow {
    /// Creates a turn with a new id.
    pub(crate) fn fresh(turn_no: i64, user_input: &str) -> Self {
        Self::known(random::uuid(), turn_no, user_input)
    }

    /// Creates a turn with an id from elsewhere.
    pub(crate) fn known(id: String, turn_no: i64, user_input: &str) -> Self {
        let status = status::CREATED.to_owned();
        let user_input = user_input.to_owned();
        Self { id, turn_no, status, user_input, result: None, error: None }
    }

    pub(crate) fn insert(
        &self,
        transaction: &Transaction,
        session_id: &str,
    ) -> Result<(), Failure> {
        let (status, now) = (&self.status, time::now());
        let row = params![&self.id, session_id, self.turn_no, status, &self.user_input, now];
        transaction.execute(INSERT, row).map(|_| ())
    }
}

/// Returns the newest turns of a session in order, as [`WholeTurn`], that fit into `budget` bytes
/// of JSON.
pub(crate) fn turns(session_id: &str, mut budget: usize) -> Result<Newest, Failure> {
    sql::database(DATABASE).query(SELECT, params![session_id])?.newest::<WholeTurn>(&mut budget)
}

/// Returns the newest turn of a session. Every session has a turn.
pub(crate) fn newest_turn(session_id: &str) -> Result<TurnRow, Failure> {
    let newest = sql::database(DATABASE).query(SELECT_NEWEST, params![session_id])?.read_first()?;
    newest.ok_or_else(|| Failure::not_found(format!("session `{session_id}` has no turn")))
}

/// Returns a turn of a session.
pub(crate) fn find_turn(session_id: &str, turn_id: &str) -> Result<Option<TurnRow>, Failure> {
    sql::database(DATABASE).query(SELECT_ONE, params![session_id, turn_id])?.read_first()
}

/// Returns the number of the next turn.
pub(crate) fn next_turn_no(newest: &TurnRow) -> i64 {
    newest.turn_no + 1
}

pub(super) fn set_status(
    transaction: &Transaction,
    turn_id: &str,
    status: &str,
) -> Result<(), Failure> {
    transaction.execute(SET_STATUS, params![status, time::now(), turn_id]).map(|_| ())
}

/// Stores the end of a turn.
pub(super) fn settle(
    transaction: &Transaction,
    turn_id: &str,
    status: &str,
    result: Option<&Value>,
    error: Option<&Value>,
) -> Result<(), Failure> {
    let (result, error) = (result.map(Value::to_string), error.map(Value::to_string));
    let row = params![status, result, error, time::now(), turn_id];
    transaction.execute(SETTLE, row).map(|_| ())
}

/// Fails the turns that are still running although their thread was deleted. Returns their ids.
pub(super) fn forget(transaction: &Transaction, session_id: &str) -> Result<Vec<String>, Failure> {
    let error = json!({ "code": null, "message": "the thread of the run was deleted" });
    let row = params![error.to_string(), time::now(), session_id];
    transaction.execute(FORGET, row)?.returned.column("id")
}

/// Appends the answer to a clarification to the input of a turn, which can then run again.
pub(super) fn merge(
    transaction: &Transaction,
    turn: &TurnRow,
    answer: &str,
) -> Result<(), Failure> {
    let merged = format!("{}\n[clarification] {answer}", turn.user_input);
    let row = params![merged, status::CREATED, time::now(), &turn.id];
    transaction.execute(MERGE, row).map(|_| ())
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{params, sql};
    use wattle_plugin::testing::FakeHost;

    use super::{find_turn, newest_turn, turns};

    /// A host with a session of three turns, of which a result has two at most.
    fn host() -> FakeHost {
        FakeHost::new().sql(|statement| {
            let row = |id: &str, no: i64| params![id, no, "completed", "q", "{}", None::<&str>];
            let mut rows = vec![row("a", 1), row("b", 2), row("c", 3)];
            if let Some(id) = statement.parameters.get(1) {
                rows.retain(|row| row[0] == *id);
            }
            if statement.text.contains("DESC") {
                rows.reverse();
            }
            if statement.text.contains("LIMIT 1") {
                rows.truncate(1);
            }
            let truncated = rows.len() > 2;
            rows.truncate(2);
            let id = if statement.text.contains("AS turn_id") { "turn_id" } else { "id" };
            let columns = [id, "turn_no", "status", "user_input", "result", "error"];
            Ok(sql::Rows { truncated, ..sql::Rows::new(columns, rows) }.into())
        })
    }

    #[test]
    fn turns_of_a_long_session_are_found() {
        host().run(|| {
            assert_eq!(newest_turn("s").unwrap().id, "c");
            assert_eq!(find_turn("s", "c").unwrap().unwrap().turn_no, 3);
            assert!(find_turn("s", "d").unwrap().is_none());
        });
    }

    #[test]
    fn list_of_a_long_session_has_the_newest_turns() {
        for (budget, expected) in [(1_000, vec!["b", "c"]), (100, vec!["c"]), (10, vec![])] {
            let turns = host().run(|| turns("s", budget)).unwrap();
            let ids: Vec<&str> =
                turns.items.iter().filter_map(|turn| turn["turn_id"].as_str()).collect();
            assert_eq!((ids, turns.truncated), (expected, true), "{budget}");
        }
    }
}
