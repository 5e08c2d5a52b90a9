//! `POST /api/chat`: answers the last message of a conversation with a stream.

use wattle_plugin::prelude::{Deserialize, Failure, Request, Response, Value, handler, json, runs};
use wattle_plugin::runs::RunRef;

use crate::message::{self, UiMessage};
use crate::session::{self, Session, snapshot};
use crate::web::{Refusal, answer, found, stream_of};
use crate::{GRAPH, channel};

/// What a page says that wants another answer to the same message.
const REGENERATE: &str = "regenerate-message";

/// What `useChat` sends beside this is left out.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    #[serde(default)]
    session_id: Value,
    #[serde(default)]
    messages: Value,
    #[serde(default)]
    trigger: Value,
}

/// Keeps the messages, starts a run on the session and hands its stream over.
#[handler(POST, "/api/chat")]
pub(crate) fn chat(request: &Request) -> Result<Response, Failure> {
    answer(|| {
        let body: Body = request.json()?;
        let id = body.session_id.as_str().filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| Refusal::invalid("`sessionId` is missing"))?;
        let session = found(request, id)?;
        let mut messages = message::read(&body.messages).map_err(Refusal::invalid)?;
        if session.is_running() {
            return Err(Refusal::busy());
        }
        if body.trigger == REGENERATE {
            message::delete(&session, &messages)?;
        }
        message::add(&session, &messages)?;
        message::replace_those_of_runs(&session.id, &mut messages)?;
        let run = start(&session, &messages)?;
        // So that the session is seen to run from now on, also in a list.
        session::sync(session)?;
        Ok(stream_of(&run)?)
    })
}

fn start(session: &Session, messages: &[UiMessage]) -> Result<RunRef, Failure> {
    let snapshot = snapshot::read(None, &session.id)?.for_run();
    let request = json!({ "messages": messages, "snapshot": snapshot });
    let input = json!({ channel::REQUEST: request });
    runs::Start::graph(GRAPH).thread_id(&session.id).input(input).start()
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Request, Response, Value, json};
    use wattle_plugin::testing::FakeHost;
    use wattle_plugin::web::Body;

    use super::chat;
    use crate::web::testing::{IDLE, RUNNING, sessions};

    fn post(host: &FakeHost, body: &Value) -> Response {
        let request = Request::new("POST", "/api/chat").with_body(body.to_string());
        host.run(|| chat(&request)).unwrap()
    }

    fn hello() -> Value {
        json!([{"id": "u", "role": "user", "parts": [{"type": "text", "text": "hello"}]}])
    }

    #[test]
    fn s3_04_a_message_starts_a_run_on_the_session() {
        let host = sessions().setting("disconnect_grace_ms", 0);
        let body = json!({"sessionId": IDLE, "messages": hello(), "id": "x", "trigger": "y"});
        let response = post(&host, &body);
        assert_eq!(response.status, 200);
        let Body::HandOff(hand_off) = response.body else { panic!("{response:?}") };
        assert_eq!(hand_off.thread_id, IDLE);
        assert_eq!(hand_off.extra["on_disconnect"], "cancel");
        assert_eq!(hand_off.extra["grace_ms"], 0);
        assert_eq!(hand_off.extra["nodes"], json!(["agent"]));
        let started = host.started();
        assert_eq!(started[0].thread_id.as_deref(), Some(IDLE));
        assert_eq!(started[0].input["request"]["messages"], hello());
    }

    #[test]
    fn s3_05_what_is_missing_is_said_as_json() {
        let host = sessions();
        for (body, status) in [
            (json!({"messages": hello()}), 400),
            (json!({"sessionId": 7, "messages": hello()}), 400),
            (json!({"sessionId": "nobody", "messages": hello()}), 404),
            (json!({"sessionId": IDLE}), 400),
            (json!({"sessionId": IDLE, "messages": []}), 400),
            (json!([]), 400),
        ] {
            let response = post(&host, &body);
            assert_eq!(response.status, status, "{body}");
            assert!(response.json_body().unwrap()["error"].is_string());
        }
        assert!(host.started().is_empty());
    }

    #[test]
    fn s3_75_a_session_at_work_takes_no_second_message() {
        let host = sessions();
        let response = post(&host, &json!({"sessionId": RUNNING, "messages": hello()}));
        assert_eq!(response.status, 409);
        assert!(host.started().is_empty());
        let writes = host.statements().into_iter().filter(|it| it.text.starts_with("INSERT"));
        assert_eq!(writes.count(), 0);
    }
}
