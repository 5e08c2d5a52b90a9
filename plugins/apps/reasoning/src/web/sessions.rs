//! `/api/v1/reasoning/sessions`: creates and shows sessions.

use wattle_plugin::prelude::{
    Deserialize, Extra, Failure, JsonSchema, Request, Response, Serialize, Value, handler, json,
};
use wattle_plugin::web::refuse;
use wattle_plugin::web::status::BAD_REQUEST;

use crate::session::{self, ClarificationView, PendingClarification, Status, TurnView, WholeTurn};
use crate::web::{Envelope, ErrorEnvelope, find, respond};

/// Maximum characters of a message. A question has a few sentences, and a longer text makes model
/// calls expensive.
const INPUT_CHARACTERS: usize = 10_000;

/// Maximum bytes of the metadata of a session.
const METADATA_BYTES: usize = 16 << 10;

/// The first message of a session.
#[derive(Deserialize, JsonSchema)]
struct NewSession {
    user_input: String,
    #[serde(default)]
    #[schemars(with = "Option<Extra>")]
    metadata: Option<Value>,
}

/// A new session with its first turn.
#[derive(Serialize, JsonSchema)]
struct CreatedSession {
    session_id: String,
    #[schemars(with = "Status")]
    status: String,
    turn: TurnView,
}

/// A session, its turns with their results, and its clarifications.
#[derive(Serialize, JsonSchema)]
struct SessionView {
    session_id: String,
    #[schemars(with = "Status")]
    status: String,
    #[schemars(with = "Extra")]
    metadata: Value,
    /// The newest turn.
    turn: Option<TurnView>,
    turns: Vec<WholeTurn>,
    /// The pending clarification.
    clarification: Option<PendingClarification>,
    clarifications: Vec<ClarificationView>,
    created_at: String,
    updated_at: String,
}

/// Creates a session with its first turn.
#[handler(POST, "/api/v1/reasoning/sessions", body = NewSession,
    returns = Envelope<CreatedSession>, error = ErrorEnvelope)]
pub(crate) fn create(request: &Request) -> Result<Response, Failure> {
    respond(request, || {
        let body: NewSession = request.json()?;
        let input = input(&body.user_input)?;
        let metadata = metadata(body.metadata)?;
        let (session_id, turn) = session::create(request.tenant.as_deref(), input, &metadata)?;
        Ok(CreatedSession { session_id, status: turn.status.clone(), turn: turn.view() })
    })
}

/// Returns the trimmed input of the user.
pub(super) fn input(text: &str) -> Result<&str, Failure> {
    let text = text.trim();
    if text.is_empty() {
        return Err(refuse(BAD_REQUEST, "user_input 不能为空"));
    }
    if text.chars().count() > INPUT_CHARACTERS {
        return Err(refuse(BAD_REQUEST, format!("user_input 不能超过 {INPUT_CHARACTERS} 个字符")));
    }
    Ok(text)
}

fn metadata(metadata: Option<Value>) -> Result<Value, Failure> {
    match metadata {
        None | Some(Value::Null) => Ok(json!({})),
        Some(object @ Value::Object(_)) if object.to_string().len() <= METADATA_BYTES => Ok(object),
        Some(_) => Err(refuse(BAD_REQUEST, "metadata 必须是不超过 16 KiB 的 JSON 对象")),
    }
}

/// Responds with a session, its turns with their results, and its clarifications.
#[handler(GET, "/api/v1/reasoning/sessions/{session_id}", returns = Envelope<SessionView>,
    error = ErrorEnvelope)]
pub(crate) fn show(request: &Request) -> Result<Response, Failure> {
    respond(request, || {
        let (session, _) = session::sync(request.tenant.as_deref(), find(request)?)?;
        let turns = session::turns(&session.id)?;
        let asked = session::pending(&session)?.map(|asked| asked.view());
        let clarifications = session::asked(&session.id)?;
        Ok(SessionView {
            session_id: session.id,
            status: session.status,
            metadata: session.metadata,
            turn: turns.last().map(session::TurnRow::view),
            turns: turns.iter().map(session::TurnRow::whole).collect(),
            clarification: asked,
            clarifications,
            created_at: session.created_at,
            updated_at: session.updated_at,
        })
    })
}
