//! `chat_history`: the messages of a session.

use wattle_plugin::prelude::{
    BlobRef, Deserialize, Failure, JsonSchema, Serialize, Value, params, sql,
};
use wattle_plugin::sql::Transaction;

use crate::setting;
use crate::state::ResultReturnResult;
use crate::store::{Page, database};

const INSERT: &str = "INSERT INTO chat_history
    (session_id, role, content, result, result_rows, created_at)
    VALUES ($1, $2, $3, $4, $5, $6)";

const LAST_OF_USER: &str = "SELECT content FROM chat_history
    WHERE session_id = $1 AND role = 'user' ORDER BY id DESC LIMIT $2";

const LIST: &str = "SELECT id, role, content, result, created_at FROM chat_history
    WHERE session_id = $1 ORDER BY id LIMIT $2 OFFSET $3";

const ROWS: &str = "SELECT result, result_rows FROM chat_history
    WHERE session_id = $1 AND id = $2 AND role = 'assistant'";

const LAST_ROLE: &str = "SELECT role FROM chat_history
    WHERE session_id = $1 ORDER BY id DESC LIMIT 1";

const COUNT: &str = "SELECT COUNT(*) AS total FROM chat_history WHERE session_id = $1";

const DELETE: &str = "DELETE FROM chat_history WHERE session_id = $1";

/// A message in a list.
#[derive(Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Message {
    id: i64,
    #[schemars(extend("enum" = ["user", "assistant"]))]
    role: String,
    content: String,
    /// The answer with its first rows; `null` for a message of the user.
    #[serde(deserialize_with = "sql::json")]
    #[schemars(with = "Option<ResultReturnResult>")]
    result: Value,
    created_at: String,
}

/// `role` of the user.
const USER: &str = "user";

/// `role` of the application.
const ASSISTANT: &str = "assistant";

/// An answer with its `ResultReturnResult`, which has only the first rows, and a blob with all rows
/// if there are more.
pub(crate) struct Answer<'a> {
    pub(crate) content: &'a str,
    pub(crate) result: &'a Value,
    pub(crate) rows: Option<&'a BlobRef>,
}

/// Rows of an answer.
pub(crate) enum AnswerRows {
    /// All rows, because the answer shows them.
    Shown(Vec<Value>),
    /// A blob with all rows.
    Kept(BlobRef),
}

/// Adds a message of the user, inside of a transaction.
pub(crate) fn add_message(
    transaction: &Transaction,
    session_id: &str,
    content: &str,
) -> Result<(), Failure> {
    let now = setting::now()?.iso();
    let parameters = params![session_id, USER, content, None::<String>, None::<String>, now];
    transaction.execute(INSERT, parameters).map(|_| ())
}

/// Adds an answer, inside of a transaction.
pub(crate) fn add_answer(
    transaction: &Transaction,
    session_id: &str,
    answer: &Answer<'_>,
) -> Result<(), Failure> {
    let result = answer.result.to_string();
    let rows = answer.rows.map(|blob| blob.as_str().to_owned());
    let now = setting::now()?.iso();
    let parameters = params![session_id, ASSISTANT, answer.content, result, rows, now];
    transaction.execute(INSERT, parameters).map(|_| ())
}

/// Returns the rows of an answer; `None` if there is no such answer.
pub(crate) fn rows(session_id: &str, message: i64) -> Result<Option<AnswerRows>, Failure> {
    let found = database().query(ROWS, params![session_id, message])?;
    let Some(row) = found.first() else { return Ok(None) };
    if let Some(blob) = row.get::<Option<String>>("result_rows")? {
        return Ok(Some(AnswerRows::Kept(BlobRef(blob))));
    }
    let result: Value = row.get::<Option<_>>("result")?.unwrap_or_default();
    let shown = result.pointer("/sql_validate_result/result").and_then(Value::as_array);
    Ok(Some(AnswerRows::Shown(shown.cloned().unwrap_or_default())))
}

/// Returns true if the last message is a question without an answer.
pub(crate) fn is_unanswered(session_id: &str) -> Result<bool, Failure> {
    let rows = database().query(LAST_ROLE, params![session_id])?;
    Ok(rows.first().map(|row| row.get::<String>("role")).transpose()?.as_deref() == Some(USER))
}

/// Returns the last messages of the user, the oldest first.
pub(crate) fn last_of_user(session_id: &str, limit: u32) -> Result<Vec<String>, Failure> {
    let rows = database().query(LAST_OF_USER, params![session_id, limit])?;
    let mut messages: Vec<String> = rows.column("content")?;
    messages.reverse();
    Ok(messages)
}

/// Returns a page of a session's messages, the oldest first.
pub(crate) fn list(session_id: &str, offset: u32, limit: u32) -> Result<Page<Message>, Failure> {
    let messages = database().query(LIST, params![session_id, limit, offset])?;
    let count = database().query(COUNT, params![session_id])?;
    Page::read(&messages, limit, count.one()?.get("total")?)
}

/// Deletes the messages of a session.
pub(crate) fn delete(session_id: &str) -> Result<(), Failure> {
    database().execute(DELETE, params![session_id]).map(|_| ())
}
