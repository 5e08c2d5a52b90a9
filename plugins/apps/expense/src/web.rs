//! The app's HTTP endpoints. Errors are `{"error": "..."}`, in the language of the app's users.

pub(crate) mod bookings;
pub(crate) mod chat;
pub(crate) mod stream;
pub(crate) mod thread;

use serde::Deserialize;
use wattle_plugin::prelude::{Failure, JsonSchema, Request, Value, code, json, log, runs};
use wattle_plugin::runs::{RunRef, Thread};
use wattle_plugin::web::{refuse, status};

use crate::{GRAPH, MESSAGES, talk};

/// Node whose completions are streamed to clients.
const AGENT: &str = "agent";

/// Maximum characters of a message: far more than the expenses of a day need, and far fewer than a
/// model accepts.
const MESSAGE_CHARS: usize = 4_000;

/// A message, or the request to reply to the last message again (`retry`).
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ChatRequest {
    /// Conversation of the message; a new one without it.
    #[serde(default)]
    thread_id: Option<String>,
    #[serde(default)]
    message: String,
    /// Requests a reply to the last message after a failed run, in place of a new message.
    #[serde(default)]
    retry: bool,
}

/// Starts a run with the message of a request.
fn start(request: &Request) -> Result<RunRef, Failure> {
    let body: ChatRequest =
        request.json().map_err(|_| refuse(status::BAD_REQUEST, "请求格式不正确"))?;
    let thread_id = body.thread_id.filter(|id| !id.is_empty());
    if body.retry {
        return retry(thread_id.as_deref());
    }
    let message = body.message.trim();
    if message.is_empty() {
        return Err(refuse(status::BAD_REQUEST, "缺少消息内容"));
    }
    if message.chars().count() > MESSAGE_CHARS {
        return Err(refuse(status::PAYLOAD_TOO_LARGE, "消息过长，请分几次发送"));
    }
    let input = json!({ MESSAGES: [{ "role": "user", "content": message }] });
    let mut start = runs::Start::graph(GRAPH).input(input);
    if let Some(thread_id) = thread_id {
        start = start.thread_id(thread_id);
    }
    start.start().map_err(refused)
}

/// Starts a run without a new message: an expense that is sent twice could be booked twice.
fn retry(thread_id: Option<&str>) -> Result<RunRef, Failure> {
    let thread = find(thread_id.ok_or_else(missing)?)?;
    if talk::is_answered(thread.state.get(MESSAGES).unwrap_or(&Value::Null)) {
        return Err(refuse(status::CONFLICT, "没有需要重试的消息"));
    }
    runs::Start::graph(GRAPH).thread_id(thread.thread_id).start().map_err(refused)
}

/// Returns the conversation with this thread id, if the app has it.
fn find(thread_id: &str) -> Result<Thread, Failure> {
    let thread = match runs::thread(thread_id) {
        Err(failure) if failure.code == code::INVALID => None,
        found => found?,
    };
    thread.filter(|thread| thread.graph == GRAPH).ok_or_else(missing)
}

fn missing() -> Failure {
    refuse(status::NOT_FOUND, "对话不存在或已过期")
}

/// Returns the failure of a run that could not start, for users.
fn refused(failure: Failure) -> Failure {
    log::debug!("start a run: {failure}");
    match failure.code.as_str() {
        code::BUSY => refuse(status::CONFLICT, "上一条消息还在处理中，请稍后再试"),
        code::CONFLICT => refuse(status::CONFLICT, "该对话有待确认的操作，请先处理"),
        code::NOT_FOUND => missing(),
        code::INVALID => refuse(status::BAD_REQUEST, "threadId 不正确"),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn openapi_document_describes_the_endpoints() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        wattle_plugin::testing::check_openapi(file, "expense", crate::WATTLE_HANDLERS);
    }
}
