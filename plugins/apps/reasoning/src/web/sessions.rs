//! `/api/v1/reasoning/sessions`: creates and shows sessions.

use wattle_plugin::prelude::{Deserialize, Failure, Request, Response, Value, handler, json};

use crate::session;
use crate::web::{Refusal, answer, find};

/// Maximum characters of a message. A question has a few sentences, and a longer text makes model
/// calls expensive.
const INPUT_CHARACTERS: usize = 10_000;

/// Maximum bytes of the metadata of a session.
const METADATA_BYTES: usize = 16 << 10;

#[derive(Deserialize)]
struct Body {
    user_input: String,
    #[serde(default)]
    metadata: Option<Value>,
}

/// Creates a session with its first turn.
#[handler(POST, "/api/v1/reasoning/sessions")]
pub(crate) fn create(request: &Request) -> Result<Response, Failure> {
    answer(request, || {
        let body: Body = request.json()?;
        let input = input(&body.user_input)?;
        let metadata = metadata(body.metadata)?;
        let (id, turn) = session::create(request.tenant.as_deref(), input, &metadata)?;
        Ok(json!({ "session_id": id, "status": turn.status, "turn": turn.view() }))
    })
}

/// Returns the trimmed input of the user.
pub(super) fn input(text: &str) -> Result<&str, Refusal> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Refusal::invalid("user_input 不能为空"));
    }
    if text.chars().count() > INPUT_CHARACTERS {
        return Err(Refusal::invalid(format!("user_input 不能超过 {INPUT_CHARACTERS} 个字符")));
    }
    Ok(text)
}

fn metadata(metadata: Option<Value>) -> Result<Value, Refusal> {
    match metadata {
        None | Some(Value::Null) => Ok(json!({})),
        Some(object @ Value::Object(_)) if object.to_string().len() <= METADATA_BYTES => Ok(object),
        Some(_) => Err(Refusal::invalid("metadata 必须是不超过 16 KiB 的 JSON 对象")),
    }
}

/// Responds with a session, its turns with their results, and its clarifications.
#[handler(GET, "/api/v1/reasoning/sessions/{session_id}")]
pub(crate) fn show(request: &Request) -> Result<Response, Failure> {
    answer(request, || {
        let (session, _) = session::sync(request.tenant.as_deref(), find(request)?)?;
        let turns = session::turns(&session.id)?;
        let newest = turns.last().map(session::TurnRow::view);
        let turns: Vec<Value> = turns.iter().map(session::TurnRow::whole).collect();
        let asked = session::pending(&session)?.map(|asked| asked.view());
        Ok(json!({
            "session_id": session.id, "status": session.status, "metadata": session.metadata,
            "turn": newest, "turns": turns, "clarification": asked,
            "clarifications": session::asked(&session.id)?,
            "created_at": session.created_at, "updated_at": session.updated_at,
        }))
    })
}
