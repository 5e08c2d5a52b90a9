//! The app's HTTP endpoints. Errors are `{"error": "..."}`, in the language of the app's users.

pub(crate) mod bookings;
pub(crate) mod chat;

use wattle_plugin::chat::{Chat, Texts};

/// Maximum characters of a message: far more than the expenses of a day need, and far fewer than a
/// model accepts.
const MESSAGE_CHARS: usize = 4_000;

/// The conversations of the graph in `graph.toml`.
pub(crate) const CHAT: Chat = Chat::graph("expense").message_chars(MESSAGE_CHARS).texts(&TEXTS);

const TEXTS: Texts = Texts {
    malformed: "请求格式不正确",
    empty: "缺少消息内容",
    thread_id: "threadId 不正确",
    format: "format 只能是 sse 或 ai-sdk",
    missing: "对话不存在或已过期",
    busy: "上一条消息还在处理中，请稍后再试",
    waiting: "该对话有待管理员确认的操作，确认后才能继续",
    nothing_to_retry: "没有需要重试的消息",
    too_long: "消息过长，请分几次发送",
    cancelled: "处理已取消",
    unfinished: "这一步没有完成",
    // The app has no list of conversations.
    ..Texts::ENGLISH
};

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Failure, Request, Response, json};
    use wattle_plugin::testing::FakeHost;

    use super::chat::chat;
    use crate::{join, show, stream};

    #[test]
    fn openapi_document_describes_the_endpoints() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        wattle_plugin::testing::check_openapi(file, "expense", crate::WATTLE_HANDLERS);
    }

    #[test]
    fn refusals_have_a_text_for_users() {
        type Handler = fn(&Request) -> Result<Response, Failure>;
        let cases: [(Handler, u16, &str); 4] = [
            (chat, 400, "缺少消息内容"),
            (stream, 400, "缺少消息内容"),
            (show, 404, "对话不存在或已过期"),
            (join, 404, "对话不存在或已过期"),
        ];
        let request = Request::new("POST", "/").with_param("id", "nobody").with_body("{}");
        for (handler, status, text) in cases {
            let response = FakeHost::new().respond(handler, &request);
            assert_eq!(response, (status, json!({ "error": text })));
        }
    }
}
