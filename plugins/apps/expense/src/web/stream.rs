//! `POST /api/chat/stream`: one message, and everything that happens until the reply, as it
//! happens.

use wattle_plugin::prelude::{Extra, Failure, Request, Response, StreamFormat, handler};
use wattle_plugin::web::HandOff;

use crate::web;

/// Header that names the conversation, so that the next message can go on with it.
const THREAD_HEADER: &str = "x-thread-id";

/// Sends a message to a conversation and streams the run.
#[handler(POST, "/api/chat/stream")]
pub(crate) fn stream(request: &Request) -> Result<Response, Failure> {
    let run = match web::start(request)? {
        Ok(run) => run,
        Err(refusal) => return Ok(refusal),
    };
    let hand_off = HandOff {
        thread_id: run.thread_id.clone(),
        run_id: Some(run.run_id),
        format: StreamFormat::Sse,
        after: None,
        extra: Extra::new(),
    };
    Ok(Response::hand_off_from(hand_off).with_header(THREAD_HEADER, run.thread_id))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::Request;
    use wattle_plugin::testing::FakeHost;
    use wattle_plugin::web::Body;

    use super::stream;

    #[test]
    fn the_host_streams_the_run() {
        let host = FakeHost::new();
        let request = Request::new("POST", "/api/chat/stream").with_body(r#"{"message": "早"}"#);
        let response = host.run(|| stream(&request)).unwrap();
        let Body::HandOff(hand_off) = &response.body else { panic!("no stream: {response:?}") };
        assert_eq!(hand_off.run_id.as_deref(), Some("run-1"));
        assert_eq!(response.headers, [("x-thread-id".to_owned(), hand_off.thread_id.clone())]);
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let request = Request::new("POST", "/api/chat/stream").with_body("{}");
        assert_eq!(FakeHost::new().run(|| stream(&request)).unwrap().status, 400);
    }
}
