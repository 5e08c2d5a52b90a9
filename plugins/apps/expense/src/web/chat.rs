//! `POST /api/chat`: sends a message and responds with the reply and its steps.

use wattle_plugin::chat::{ChatError, ChatRequest, Reply, Waiting};
use wattle_plugin::prelude::{Failure, Request, Response, code, handler};
use wattle_plugin::web::status::{BAD_GATEWAY, UNPROCESSABLE_ENTITY};
use wattle_plugin::web::{ErrorDocument, respond};

use crate::web::CHAT;

/// Sends a message to a conversation and waits for the reply.
#[handler(POST, "/api/chat", body = ChatRequest, returns = Reply, returns(202) = Waiting,
    error = ChatError)]
pub(crate) fn chat(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        let run = CHAT.send(request)?;
        CHAT.wait(&run)?.respond(describe)
    })
}

/// Returns the status and the message for a failed run. The thread is kept, so the next message
/// continues the conversation.
fn describe(failure: &Failure) -> (u16, &'static str) {
    match failure.code.as_str() {
        code::LIMIT => (UNPROCESSABLE_ENTITY, "处理步骤过多，请把内容分成几条发送"),
        code::RATE_LIMITED => (BAD_GATEWAY, "AI 服务繁忙，请稍后再试"),
        _ => (BAD_GATEWAY, "AI 服务暂时不可用，请稍后再试"),
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Failure, Request, code, json};
    use wattle_plugin::runs::Outcome;
    use wattle_plugin::testing::FakeHost;

    use super::chat;

    #[test]
    fn failed_runs_have_a_message_and_keep_the_thread() {
        for (code, status, text) in [
            (code::LIMIT, 422, "处理步骤过多，请把内容分成几条发送"),
            (code::RATE_LIMITED, 502, "AI 服务繁忙，请稍后再试"),
            (code::UNAVAILABLE, 502, "AI 服务暂时不可用，请稍后再试"),
        ] {
            let outcome = Outcome::Failed(Failure::new(code, "why"));
            let host = FakeHost::new().outcome(outcome, json!({}));
            let request = Request::new("POST", "/api/chat").with_body(r#"{"message": "早"}"#);
            let body = json!({"threadId": "thread-1", "error": text, "steps": []});
            assert_eq!(host.respond(chat, &request), (status, body));
        }
    }
}
