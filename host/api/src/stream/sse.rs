//! The host's own server-sent events: one message for each event of the log.

use std::convert::Infallible;

use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use wattle_graph::event::{Event, EventKind};

use crate::state::ApiState;
use crate::stream::follow::{Follow, Follower, HEARTBEAT, Next, response};
use crate::stream::whole::SILENCE;

/// Answers with the stream.
pub fn answer(state: &ApiState, follow: Follow) -> Response {
    let follower = Follower::new(state, follow, HEARTBEAT);
    response(stream::unfold(follower, |mut follower| async move {
        let message = match follower.next().await? {
            Next::Event(event) => message(&event),
            Next::Silence => SILENCE,
        };
        Some((Ok::<_, Infallible>(message), follower))
    }))
}

/// One event on the wire. JSON has no line breaks of its own, so one `data` line is enough.
fn message(event: &Event) -> Bytes {
    let data = serde_json::to_string(event).unwrap_or_else(|error| {
        // Events come out of JSON, so this cannot be; the reader still sees that one is missing.
        serde_json::json!({ "seq": event.seq, "type": "unreadable", "message": error.to_string() })
            .to_string()
    });
    format!("id: {}\nevent: {}\ndata: {data}\n\n", event.seq, name(&event.kind)).into()
}

/// The type of an event as its JSON says it.
fn name(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::RunStarted(_) => "run_started",
        EventKind::RunEnded(_) => "run_ended",
        EventKind::TaskStarted(_) => "task_started",
        EventKind::TaskFinished(_) => "task_finished",
        EventKind::TaskFailed(_) => "task_failed",
        EventKind::CallStarted(_) => "call_started",
        EventKind::Streamed(_) => "streamed",
        EventKind::Called(_) => "called",
        EventKind::Asked(_) => "asked",
        EventKind::Answered(_) => "answered",
        EventKind::Checkpointed(_) => "checkpointed",
        EventKind::Reopened(_) => "reopened",
        EventKind::Custom(_) => "custom",
        EventKind::Progress(_) => "progress",
        EventKind::Log(_) => "log",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::event::{RunEnded, RunStatus};
    use wattle_graph::id::{Namespace, RunId};

    use super::*;

    #[test]
    fn a_message_has_number_type_and_document() {
        let event = Event {
            seq: 7,
            at_ms: 1000,
            run: RunId::new("r").unwrap(),
            namespace: Namespace::root(),
            kind: EventKind::RunEnded(RunEnded {
                status: RunStatus::Completed,
                failure: None,
                drained: false,
            }),
        };
        let text = String::from_utf8(message(&event).to_vec()).unwrap();
        assert_eq!(
            text,
            "id: 7\nevent: run_ended\ndata: {\"seq\":7,\"at_ms\":1000,\"run\":\"r\",\
             \"type\":\"run_ended\",\"status\":\"completed\"}\n\n"
        );
    }

    #[test]
    fn pieces_of_an_answer_are_sent_under_their_type() {
        let document = json!({
            "seq": 8, "at_ms": 1000, "run": "r", "type": "streamed", "task": "t", "node": "agent",
            "scope": [1], "call": 0, "deltas": [{ "kind": "text", "text": "hi" }],
        });
        let event: Event = serde_json::from_value(document.clone()).unwrap();
        let text = String::from_utf8(message(&event).to_vec()).unwrap();
        let data = text.strip_prefix("id: 8\nevent: streamed\ndata: ").unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(data.trim_end()).unwrap(), document);
    }
}
