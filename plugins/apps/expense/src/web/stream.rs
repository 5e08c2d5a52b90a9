//! `POST /api/chat/stream`: sends a message and streams the run.

use wattle_plugin::prelude::{Failure, Request, Response, StreamFormat, Value, handler};
use wattle_plugin::web::{ErrorDocument, HandOff, refuse, respond, status};

use crate::web::{AGENT, ChatRequest, start};

/// Header with the thread id, with which the next message can continue the conversation.
const THREAD_HEADER: &str = "x-thread-id";

/// Sends a message to a conversation and streams the run: as the host's own events, or with
/// `?format=ai-sdk` as a message of the AI SDK.
#[handler(POST, "/api/chat/stream", query(format: Option<String>), body = ChatRequest,
    events = Value, error = ErrorDocument)]
pub(crate) fn stream(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        let format = match request.query("format") {
            None | Some("sse") => StreamFormat::Sse,
            Some("ai-sdk") => StreamFormat::AiSdk,
            Some(_) => return Err(refuse(status::BAD_REQUEST, "format 只能是 sse 或 ai-sdk")),
        };
        let run = start(request)?;
        let hand_off = HandOff::run(&run.thread_id, run.run_id, format).nodes(&[AGENT]);
        Ok(Response::hand_off_from(hand_off).with_header(THREAD_HEADER, run.thread_id))
    })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Request, StreamFormat};
    use wattle_plugin::testing::FakeHost;
    use wattle_plugin::web::Body;

    use super::stream;

    #[test]
    fn response_hands_off_the_run() {
        let host = FakeHost::new();
        let request = Request::new("POST", "/api/chat/stream").with_body(r#"{"message": "早"}"#);
        let response = host.run(|| stream(&request)).unwrap();
        let Body::HandOff(hand_off) = &response.body else { panic!("no stream: {response:?}") };
        assert_eq!(hand_off.run_id.as_deref(), Some("run-1"));
        assert_eq!(response.headers, [("x-thread-id".to_owned(), hand_off.thread_id.clone())]);
    }

    #[test]
    fn query_selects_the_stream_format() {
        let post = |format: &str| {
            let request = Request::new("POST", "/api/chat/stream").with_query("format", format);
            let request = request.with_body(r#"{"message": "早"}"#);
            FakeHost::new().run(|| stream(&request)).unwrap()
        };
        let Body::HandOff(hand_off) = post("ai-sdk").body else { panic!("no stream") };
        assert_eq!(hand_off.format, StreamFormat::AiSdk);
        assert_eq!(hand_off.extra["nodes"], serde_json::json!(["agent"]));
        assert_eq!(post("morse").status, 400);
    }

    #[test]
    fn invalid_messages_are_rejected() {
        let request = Request::new("POST", "/api/chat/stream").with_body("{}");
        assert_eq!(FakeHost::new().run(|| stream(&request)).unwrap().status, 400);
    }
}
