//! The app's HTTP endpoints. Errors are `{"error": "..."}`, in the language of the app's users.

pub(crate) mod bookings;
pub(crate) mod chat;
pub(crate) mod stream;
pub(crate) mod thread;

use serde::{Deserialize, Serialize};
use wattle_plugin::prelude::{
    Failure, JsonSchema, Request, Response, Value, code, json, log, runs,
};
use wattle_plugin::runs::{RunRef, Thread};

use crate::{GRAPH, MESSAGES, talk};

/// Node whose completions are streamed to clients.
const AGENT: &str = "agent";

const ACCEPTED: u16 = 202;
const BAD_REQUEST: u16 = 400;
const NOT_FOUND: u16 = 404;
const CONFLICT: u16 = 409;
const TOO_LARGE: u16 = 413;
const UNPROCESSABLE: u16 = 422;
const BAD_GATEWAY: u16 = 502;

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

/// The reason of a refused request, for users.
#[derive(Serialize, JsonSchema)]
struct ErrorDocument {
    error: String,
}

/// Starts a run with the message of a request, or returns the response that rejects it.
fn start(request: &Request) -> Result<Result<RunRef, Response>, Failure> {
    let Ok(body) = request.json::<ChatRequest>() else {
        return error(BAD_REQUEST, "请求格式不正确").map(Err);
    };
    let thread_id = body.thread_id.filter(|id| !id.is_empty());
    if body.retry {
        return retry(thread_id);
    }
    let message = body.message.trim();
    if message.is_empty() {
        return error(BAD_REQUEST, "缺少消息内容").map(Err);
    }
    if message.chars().count() > MESSAGE_CHARS {
        return error(TOO_LARGE, "消息过长，请分几次发送").map(Err);
    }
    let input = json!({ MESSAGES: [{ "role": "user", "content": message }] });
    let mut start = runs::Start::graph(GRAPH).input(input);
    if let Some(thread_id) = thread_id {
        start = start.thread_id(thread_id);
    }
    started(start)
}

/// Starts a run without a new message: an expense that is sent twice could be booked twice.
fn retry(thread_id: Option<String>) -> Result<Result<RunRef, Response>, Failure> {
    let thread = thread_id.as_deref().map(find).transpose()?.flatten();
    let Some(thread) = thread else {
        return error(NOT_FOUND, "对话不存在或已过期").map(Err);
    };
    if talk::is_answered(thread.state.get(MESSAGES).unwrap_or(&Value::Null)) {
        return error(CONFLICT, "没有需要重试的消息").map(Err);
    }
    started(runs::Start::graph(GRAPH).thread_id(thread.thread_id))
}

fn started(start: runs::Start) -> Result<Result<RunRef, Response>, Failure> {
    match start.start() {
        Ok(run) => Ok(Ok(run)),
        Err(failure) => refused(failure).map(Err),
    }
}

/// Returns the conversation with this thread id, or `None` if the app has none.
fn find(thread_id: &str) -> Result<Option<Thread>, Failure> {
    match runs::thread(thread_id) {
        Ok(thread) => Ok(thread.filter(|thread| thread.graph == GRAPH)),
        Err(failure) if failure.code == code::INVALID => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Returns the response for a run that could not start.
fn refused(failure: Failure) -> Result<Response, Failure> {
    log::debug!("start a run: {failure}");
    match failure.code.as_str() {
        code::BUSY => error(CONFLICT, "上一条消息还在处理中，请稍后再试"),
        code::CONFLICT => error(CONFLICT, "该对话有待确认的操作，请先处理"),
        code::NOT_FOUND => error(NOT_FOUND, "对话不存在或已过期"),
        code::INVALID => error(BAD_REQUEST, "threadId 不正确"),
        _ => Err(failure),
    }
}

fn error(status: u16, text: &str) -> Result<Response, Failure> {
    Response::json(status, &ErrorDocument { error: text.to_owned() })
}

#[cfg(test)]
mod tests {
    #[test]
    fn openapi_document_describes_the_endpoints() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        wattle_plugin::testing::check_openapi(file, "expense", crate::WATTLE_HANDLERS);
    }
}
