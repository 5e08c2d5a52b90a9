//! `/api/v1/reasoning/sessions`: creates and shows sessions.

use wattle_plugin::prelude::{
    Deserialize, Extra, Failure, JsonSchema, Request, Response, Serialize, Value, handler, json,
};
use wattle_plugin::web::refuse;
use wattle_plugin::web::status::BAD_REQUEST;

use crate::session::{self, ClarificationView, PendingClarification, Status, TurnRow, WholeTurn};
use crate::web::{Envelope, ErrorEnvelope, find, respond};

/// Maximum characters of a message. A question has a few sentences, and a longer text makes model
/// calls expensive.
const INPUT_CHARACTERS: usize = 10_000;

/// Maximum size of the turns in a response, in bytes. The whole response may have 4 MiB.
const TURNS_BYTES: usize = 3 << 20;

/// Maximum size of the clarifications in a response, in bytes.
const CLARIFICATIONS_BYTES: usize = 512 << 10;

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
    turn: TurnRow,
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
    turn: Option<TurnRow>,
    #[schemars(with = "Vec<WholeTurn>")]
    turns: Vec<Value>,
    /// The pending clarification.
    clarification: Option<PendingClarification>,
    #[schemars(with = "Vec<ClarificationView>")]
    clarifications: Vec<Value>,
    /// True if the oldest turns or clarifications are left out.
    truncated: bool,
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
        Ok(CreatedSession { session_id, status: turn.status.clone(), turn })
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

/// Responds with a session, its turns with their results, and its clarifications. `truncated` is
/// true if the oldest ones are left out, because the response would be too large.
#[handler(GET, "/api/v1/reasoning/sessions/{session_id}", returns = Envelope<SessionView>,
    error = ErrorEnvelope)]
pub(crate) fn show(request: &Request) -> Result<Response, Failure> {
    respond(request, || {
        let (session, _) = session::sync(request.tenant.as_deref(), find(request)?)?;
        let turn = session::newest_turn(&session.id)?;
        let turns = session::turns(&session.id, TURNS_BYTES)?;
        let asked = session::pending(&session)?;
        let clarifications = session::clarifications(&session.id, CLARIFICATIONS_BYTES)?;
        Ok(SessionView {
            session_id: session.id,
            status: session.status,
            metadata: session.metadata,
            turn: Some(turn),
            turns: turns.items,
            clarification: asked,
            clarifications: clarifications.items,
            truncated: turns.truncated || clarifications.truncated,
            created_at: session.created_at,
            updated_at: session.updated_at,
        })
    })
}
