//! The app's HTTP endpoints. Every response is an envelope `{code, message, data, trace_id}`;
//! `code` is 0 on success.

pub(crate) mod cancel;
pub(crate) mod clarify;
mod envelope;
pub(crate) mod run;
pub(crate) mod sessions;
pub(crate) mod tenant_llm;
pub(crate) mod trace;

use wattle_plugin::prelude::{Failure, JsonSchema, Request, Serialize, Value};
use wattle_plugin::web::refuse;
use wattle_plugin::web::status::{CONFLICT, NOT_FOUND};

use self::envelope::{BUSY, Envelope, ErrorEnvelope, respond};
use crate::result::ModelOutput;
use crate::session::{self, PendingClarification, Session, Status, TurnRow, status};
use crate::task::{self, TaskView};
use crate::{mcp, model};

/// A turn that has ended or waits for a clarification.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Outcome {
    Completed(CompletedTurn),
    Waiting(WaitingTurn),
}

/// A turn with its result.
#[derive(Serialize, JsonSchema)]
struct CompletedTurn {
    session_id: String,
    #[schemars(with = "Status")]
    status: &'static str,
    turn: TurnRow,
    #[schemars(with = "Option<ModelOutput>")]
    result: Option<Value>,
    tasks: Vec<TaskView>,
}

/// A turn that waits for a clarification.
#[derive(Serialize, JsonSchema)]
struct WaitingTurn {
    session_id: String,
    #[schemars(with = "Status")]
    status: &'static str,
    turn: TurnRow,
    clarification: PendingClarification,
}

/// Returns the session that a request names, if it belongs to the request's tenant.
fn find(request: &Request) -> Result<Session, Failure> {
    let id: String = request.param("session_id")?;
    let tenant = request.tenant.as_deref();
    let none = || refuse(NOT_FOUND, format!("没有会话 `{id}`"));
    session::find(tenant, &id)?.ok_or_else(none)
}

/// Returns the response data for a turn that has ended or waits for a clarification.
fn outcome(session: &Session, mut turn: TurnRow) -> Result<Outcome, Failure> {
    match turn.status.as_str() {
        status::COMPLETED => Ok(Outcome::Completed(CompletedTurn {
            session_id: session.id.clone(),
            status: status::COMPLETED,
            result: turn.result.take(),
            tasks: task::of_turn(&session.id, &turn.id)?,
            turn,
        })),
        status::WAITING => match session::pending(session)? {
            Some(asked) => Ok(waiting(session, turn, asked)),
            None => Err(refuse(CONFLICT, "会话的状态已改变，请重试")),
        },
        status::FAILED => Err(failed(turn.error.as_ref())),
        status::CANCELLED => Err(refuse(CONFLICT, "会话已取消")),
        _ => Err(refuse(CONFLICT, BUSY)),
    }
}

fn waiting(session: &Session, turn: TurnRow, clarification: PendingClarification) -> Outcome {
    let (session_id, status) = (session.id.clone(), status::WAITING);
    Outcome::Waiting(WaitingTurn { session_id, status, turn, clarification })
}

/// Returns the failure of a turn. Its code determines the status that clients of this service
/// expect.
fn failed(error: Option<&Value>) -> Failure {
    let text = |name: &str| error.and_then(|error| error.get(name)).and_then(Value::as_str);
    let message = text("message").unwrap_or("the run failed");
    match text("code") {
        Some(code @ (model::LLM | mcp::MCP)) => Failure::new(code, message),
        _ => Failure::internal(message),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn openapi_document_describes_the_endpoints() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        wattle_plugin::testing::check_openapi(file, "reasoning", crate::WATTLE_HANDLERS);
    }
}
