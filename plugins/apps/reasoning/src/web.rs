//! The app's HTTP endpoints. Every response is an envelope `{code, message, data, trace_id}`;
//! `code` is 0 on success.

pub(crate) mod cancel;
pub(crate) mod clarify;
mod envelope;
pub(crate) mod run;
pub(crate) mod sessions;
pub(crate) mod tenant_llm;
pub(crate) mod trace;

use wattle_plugin::prelude::{Failure, Request, Value, json};

use self::envelope::{Refusal, answer};
use crate::session::{self, Clarification, Session, TurnRow, status};
use crate::{mcp, model, task};

/// Returns the session that a request names, if it belongs to the request's tenant.
fn find(request: &Request) -> Result<Session, Refusal> {
    let id: String = request.param("session_id")?;
    let tenant = request.tenant.as_deref();
    session::find(tenant, &id)?.ok_or_else(|| Refusal::not_found(format!("没有会话 `{id}`")))
}

/// Returns the response data for a turn that has ended or waits for a clarification.
fn outcome(session: &Session, turn: &TurnRow) -> Result<Value, Refusal> {
    match turn.status.as_str() {
        status::COMPLETED => Ok(json!({
            "session_id": session.id, "status": status::COMPLETED, "turn": turn.view(),
            "result": turn.result, "tasks": task::of_turn(&session.id, &turn.id)?,
        })),
        status::WAITING => match session::pending(session)? {
            Some(asked) => Ok(waiting(session, turn, &asked)),
            None => Err(Refusal::conflict("会话的状态已改变，请重试")),
        },
        status::FAILED => Err(failed(turn.error.as_ref())),
        status::CANCELLED => Err(Refusal::conflict("会话已取消")),
        _ => Err(Refusal::conflict("会话正在运行，请稍后重试")),
    }
}

fn waiting(session: &Session, turn: &TurnRow, asked: &Clarification) -> Value {
    json!({ "session_id": session.id, "status": status::WAITING, "turn": turn.view(),
            "clarification": asked.view() })
}

/// Returns the refusal for a failed turn, with the status that clients of this service expect.
fn failed(error: Option<&Value>) -> Refusal {
    let text = |name: &str| error.and_then(|error| error.get(name)).and_then(Value::as_str);
    let message = text("message").unwrap_or("the run failed");
    match text("code") {
        Some(model::LLM) => Refusal::llm(message),
        Some(mcp::MCP) => Refusal::mcp(message),
        _ => Refusal::from(Failure::internal(message)),
    }
}
