//! `GET /api/threads/{id}`: a conversation for a page that opens it.
//! `GET /api/threads/{id}/stream`: the stream of its active run.

use serde::Serialize;
use wattle_plugin::prelude::{
    Failure, JsonSchema, Request, Response, StreamFormat, Value, handler,
};
use wattle_plugin::web::{ErrorDocument, HandOff, respond, status};

use crate::MESSAGES;
use crate::shown::{self, UiMessage};
use crate::web::{AGENT, find};

/// Status of a thread with an active run.
const RUNNING: &str = "running";

/// A conversation.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ThreadDocument {
    thread_id: String,
    /// `running` during a run.
    status: String,
    messages: Vec<UiMessage>,
}

/// Responds with the messages of a conversation in the form of the AI SDK. Messages of the active
/// run are omitted, because its stream has them from the beginning.
#[handler(GET, "/api/threads/{id}", returns = ThreadDocument, error = ErrorDocument)]
pub(crate) fn thread(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        let thread = find(&request.param::<String>("id")?)?;
        let messages = thread.state.get(MESSAGES).unwrap_or(&Value::Null);
        let messages = shown::messages(messages, thread.status != RUNNING);
        let body = ThreadDocument { thread_id: thread.thread_id, status: thread.status, messages };
        Ok(Response::json(200, &body)?.with_header("cache-control", "no-store"))
    })
}

/// Streams the active run from its beginning. Responds with 204 if there is none.
#[handler(GET, "/api/threads/{id}/stream", events = Value, returns(204), error = ErrorDocument)]
pub(crate) fn resume(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        let thread = find(&request.param::<String>("id")?)?;
        match thread.run_id.filter(|_| thread.status == RUNNING) {
            Some(run) => {
                let hand_off = HandOff::run(thread.thread_id, run, StreamFormat::AiSdk);
                Ok(Response::hand_off_from(hand_off.nodes(&[AGENT])))
            }
            None => Ok(Response::empty(status::NO_CONTENT)),
        }
    })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Request, Response, json};
    use wattle_plugin::runs::Thread;
    use wattle_plugin::testing::FakeHost;
    use wattle_plugin::web::Body;

    use super::{resume, thread};

    fn host() -> FakeHost {
        let state = json!({"messages": [{"id": "u", "role": "user", "content": "早"},
            {"id": "a", "role": "assistant", "content": "早上好"}]});
        let mut running = Thread::new("busy", "expense", "running", state.clone());
        running.run_id = Some("run-1".to_owned());
        FakeHost::new()
            .thread(Thread::new("idle", "expense", "idle", state.clone()))
            .thread(Thread::new("other", "travel", "idle", state))
            .thread(running)
    }

    fn request(id: &str) -> Request {
        Request::new("GET", "/api/threads/x").with_param("id", id)
    }

    fn get(id: &str) -> Response {
        host().run(|| thread(&request(id))).unwrap()
    }

    #[test]
    fn messages_of_an_active_run_are_omitted() {
        let body = get("idle").json_body().unwrap();
        assert_eq!((&body["threadId"], &body["status"]), (&json!("idle"), &json!("idle")));
        assert_eq!(body["messages"].as_array().unwrap().len(), 2);
        let body = get("busy").json_body().unwrap();
        assert_eq!(body["status"], "running");
        assert_eq!(body["messages"].as_array().unwrap().len(), 1, "{body}");
        for id in ["nobody", "other"] {
            assert_eq!(get(id).status, 404, "{id}");
        }
    }

    #[test]
    fn stream_hands_off_the_active_run() {
        let get = |id: &str| host().run(|| resume(&request(id))).unwrap();
        assert_eq!((get("idle").status, get("nobody").status), (204, 404));
        let Body::HandOff(hand_off) = get("busy").body else { panic!("no stream") };
        assert_eq!(hand_off.run_id.as_deref(), Some("run-1"));
        assert_eq!(hand_off.extra["nodes"], json!(["agent"]));
    }
}
