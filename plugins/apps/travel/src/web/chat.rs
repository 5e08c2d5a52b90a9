//! `POST /api/chat`: answers the last message of a conversation with a stream.

use wattle_plugin::prelude::{
    Deserialize, Extra, Failure, JsonSchema, Request, Response, Value, code, handler, json, log,
    runs, sql,
};
use wattle_plugin::runs::RunRef;
use wattle_plugin::web::{refuse, respond, status};

use crate::message::{self, Role, UiMessage};
use crate::session::{self, Session, snapshot};
use crate::web::{BUSY, ErrorDocument, found, stream_of};
use crate::{DATABASE, GRAPH, channel};

/// Value of `trigger` with which a page requests another answer to the same message.
const REGENERATE: &str = "regenerate-message";

/// Maximum size of a body, in bytes. Pages send the whole conversation each time, with the outputs
/// of tools.
const BODY_BYTES: usize = 8 << 20;

/// Maximum size of the stored messages, in bytes. A run gets all of them at once.
const MESSAGES_BYTES: usize = 3 << 20;

/// A conversation of `useChat`, whose further fields are ignored.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ChatRequest {
    #[serde(default)]
    #[schemars(!default, with = "String")]
    session_id: Value,
    #[serde(default)]
    #[schemars(!default, with = "Vec<Message>")]
    messages: Value,
    /// `regenerate-message` requests another answer to the last message.
    #[serde(default)]
    #[schemars(!default, with = "Option<String>")]
    trigger: Value,
}

/// A message.
#[derive(JsonSchema)]
#[schemars(rename = "UiMessage")]
#[expect(dead_code, reason = "only its schema is used: the SDK reads the message")]
struct Message {
    /// Unique in its session.
    id: String,
    role: Role,
    /// Text, reasoning, files and tool calls, in order.
    parts: Vec<Extra>,
}

/// Stores the messages, starts a run on the session and hands its stream off.
#[handler(POST, "/api/chat", body = ChatRequest, events = Value, error = ErrorDocument)]
pub(crate) fn chat(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        if request.body.len() > BODY_BYTES {
            let why = format!("the body is larger than {BODY_BYTES} bytes; begin a new session");
            return Err(refuse(status::PAYLOAD_TOO_LARGE, why));
        }
        let body: ChatRequest = request.json()?;
        let id = body.session_id.as_str().filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| refuse(status::BAD_REQUEST, "`sessionId` is missing"))?;
        let session = found(request, id)?;
        let mut messages = message::read(&body.messages)?;
        check_size(&messages)?;
        if session.is_running() {
            return Err(Failure::new(code::BUSY, BUSY));
        }
        let sent = messages.clone();
        message::replace_those_of_runs(&session.id, &mut messages)?;
        let input = input(&session, message::lean(messages))?;
        let run = keep_and_start(&session, &sent, body.trigger == REGENERATE, input)?;
        // From now on the session is shown as running, also in a list.
        session::sync(session)?;
        stream_of(&run)
    })
}

/// Checks the size of a conversation, which is stored whole or not at all.
fn check_size(messages: &[UiMessage]) -> Result<(), Failure> {
    if json!(messages).to_string().len() <= MESSAGES_BYTES {
        return Ok(());
    }
    let why = format!("the messages have more than {MESSAGES_BYTES} bytes; begin a new session");
    Err(refuse(status::PAYLOAD_TOO_LARGE, why))
}

/// Returns the input of a run.
fn input(session: &Session, messages: Vec<UiMessage>) -> Result<Value, Failure> {
    check_size(&messages)?;
    let snapshot = snapshot::read(None, &session.id)?.for_run();
    let request = json!({ "messages": messages, "snapshot": snapshot });
    Ok(json!({ channel::REQUEST: request }))
}

/// Stores the messages and starts a run, or does neither: a refused request changes nothing. A run
/// whose messages cannot be stored is cancelled. Other requests see the messages only when the run
/// exists, and before its answer is stored.
fn keep_and_start(
    session: &Session,
    messages: &[UiMessage],
    instead: bool,
    input: Value,
) -> Result<RunRef, Failure> {
    let transaction = sql::database(DATABASE).begin()?;
    session::lock(&transaction, &session.id)?;
    let started = message::keep(&transaction, session, messages, instead)
        .and_then(|()| runs::Start::graph(GRAPH).thread_id(&session.id).input(input).start());
    let (failure, undone) = match started {
        Ok(run) => match transaction.commit() {
            Ok(()) => return Ok(run),
            Err(failure) => (failure, runs::cancel(&run)),
        },
        Err(failure) => (failure, transaction.rollback()),
    };
    if let Err(other) = undone {
        log::error!("undo a refused message: {other}");
    }
    Err(failure)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Failure, Request, Response, Value, code, json};
    use wattle_plugin::testing::FakeHost;
    use wattle_plugin::web::Body;

    use super::{BODY_BYTES, MESSAGES_BYTES, chat};
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
    fn s3_05_invalid_requests_get_a_json_error() {
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
    fn s3_75_a_running_session_takes_no_second_message() {
        let host = sessions();
        let response = post(&host, &json!({"sessionId": RUNNING, "messages": hello()}));
        assert_eq!(response.status, 409);
        assert!(host.started().is_empty());
        let writes = host.statements().into_iter().filter(|it| it.text.starts_with("INSERT"));
        assert_eq!(writes.count(), 0);
    }
    #[test]
    fn s3_75_a_run_that_does_not_start_changes_nothing() {
        let failures = [
            (Failure::new(code::BUSY, "a run is under way"), 409),
            (Failure::new(code::UNAVAILABLE, "the host stops").with_status(503), 503),
        ];
        for (failure, status) in failures {
            let host = sessions().starts(move |_| Err(failure.clone()));
            let body = json!({"sessionId": IDLE, "messages": hello(),
                "trigger": "regenerate-message"});
            assert_eq!(post(&host, &body).status, status);
            let statements = host.statements();
            let writes = statements.iter().filter(|it| !it.text.starts_with("SELECT"));
            let outside = writes.filter(|it| !it.in_transaction).collect::<Vec<_>>();
            assert!(outside.is_empty(), "{outside:?}");
            assert_eq!(statements.last().map(|it| it.text.as_str()), Some("ROLLBACK"));
        }
    }

    #[test]
    fn s3_05_a_conversation_is_bounded_in_all_its_parts() {
        let host = sessions();
        let long = "x".repeat(MESSAGES_BYTES / 2);
        let text = |role: &str, id: &str| {
            json!({"id": id, "role": role,
            "parts": [{"type": "text", "text": long}]})
        };
        for role in ["assistant", "system"] {
            let messages = json!([text(role, "a"), text(role, "b"), hello()[0]]);
            let response = post(&host, &json!({"sessionId": IDLE, "messages": messages}));
            assert_eq!(response.status, 413, "{role}");
        }
        let ignored = json!({"sessionId": IDLE, "messages": hello(), "x": "y".repeat(BODY_BYTES)});
        assert_eq!(post(&host, &ignored).status, 413);
        let part = |output: &Value| {
            json!({"id": "a", "role": "assistant", "parts": [
            {"type": "tool-crawl_youtube_videos", "toolCallId": "c", "input": {},
                "state": "output-available", "output": output}]})
        };
        let crawled = json!({"videos": vec![json!({"subtitles": long}); 4]});
        let messages = json!([part(&crawled), hello()[0]]);
        assert_eq!(post(&host, &json!({"sessionId": IDLE, "messages": messages})).status, 200);
        let input = host.started()[0].input.to_string();
        assert!(input.len() < 10_000, "the snapshot has the subtitles");
    }
}
