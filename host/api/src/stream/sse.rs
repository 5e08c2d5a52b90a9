//! The event log as server-sent events: one message for each event.

use std::convert::Infallible;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use tokio::time::Instant;
use wattle_graph::event::Event;
use wattle_run::blocking::block_in_place_in_turn;
use wattle_run::caller_id::CallerId;

use crate::projection::is_long_event;
use crate::response::sse_response;
use crate::stream::client_tail::{ClientTail, ClientTailItem, HEARTBEAT_INTERVAL, TailRequest};
use crate::stream::event_view::EventView;
use crate::stream::parts::StreamParts;
use crate::stream::run_encoder::HEARTBEAT_COMMENT;

/// Responds with the stream of the events that `view` includes.
pub fn respond(parts: &StreamParts, request: TailRequest, view: EventView) -> Response {
    let owner = request.owner;
    let tail = ClientTail::new(parts, request, HEARTBEAT_INTERVAL);
    let messages = EventMessages { owner, tail, view, sent_at: Instant::now() };
    let body = stream::unfold(Some(messages), |messages| async move {
        let mut messages = messages?;
        let (message, is_last) = messages.next().await?;
        Some((Ok::<_, Infallible>(message), (!is_last).then_some(messages)))
    });
    sse_response(Body::from_stream(body))
}

/// The messages of a stream.
struct EventMessages {
    owner: CallerId,
    tail: ClientTail,
    view: EventView,
    /// Time of the last message.
    sent_at: Instant,
}

impl EventMessages {
    /// Returns the next message, and true if it is the last one; `None` at the end of the stream.
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        let message = loop {
            match self.tail.next().await? {
                ClientTailItem::Event(event) if self.view.includes(&event.kind) => {
                    let encode = || event_message(&event, &self.view);
                    let is_long = is_long_event(&event);
                    break (block_in_place_in_turn(self.owner, is_long, encode).await, false);
                }
                // If the view omits many events, the client still gets heartbeats.
                ClientTailItem::Event(_) if self.sent_at.elapsed() < HEARTBEAT_INTERVAL => {}
                ClientTailItem::Event(_) | ClientTailItem::Heartbeat => {
                    break (HEARTBEAT_COMMENT, false);
                }
                ClientTailItem::ReadFailed(failure) => break (super::error_message(failure), true),
            }
        };
        self.sent_at = Instant::now();
        Some(message)
    }
}

/// Formats an event. JSON text has no line breaks, so the message needs only one `data` line.
fn event_message(event: &Event, view: &EventView) -> Bytes {
    let data = view.json(event).unwrap_or_else(|error| {
        // Not reachable, because events are read from JSON. The message would tell the client that
        // an event is missing.
        serde_json::json!({ "seq": event.seq, "type": "unreadable", "message": error.to_string() })
            .to_string()
    });
    format!("id: {}\nevent: {}\ndata: {data}\n\n", event.seq, event.kind.name()).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::event::{EventKind, RunEnded, RunStatus};
    use wattle_graph::id::{Namespace, RunId};

    use super::*;

    #[test]
    fn http_docs_list_every_event_type() {
        let page = include_str!("../../../docs/http.md");
        for name in EventKind::NAMES {
            assert!(page.contains(&format!("`{name}`")), "host/docs/http.md lacks `{name}`");
        }
    }

    #[test]
    fn message_contains_sequence_number_type_and_event_as_json() {
        let event = Event {
            seq: 7,
            at_ms: 1000,
            run: RunId::new("r").unwrap(),
            namespace: Namespace::root(),
            kind: EventKind::RunEnded(RunEnded {
                status: RunStatus::Completed,
                failure: None,
                drained: false,
                principal: None,
                store_us: 0,
            }),
        };
        let text =
            String::from_utf8(event_message(&event, &EventView::default()).to_vec()).unwrap();
        assert_eq!(
            text,
            "id: 7\nevent: run_ended\ndata: {\"seq\":7,\"at_ms\":1000,\"run\":\"r\",\
             \"type\":\"run_ended\",\"status\":\"completed\"}\n\n"
        );
    }

    #[test]
    fn events_of_time_travel_are_sent_under_their_types() {
        let digest = "0".repeat(64);
        for kind in [
            json!({ "type": "forked", "from": 3 }),
            json!({ "type": "settled", "task": "t", "call": 0, "decision": { "kind": "fail" },
                "by": "policy" }),
            json!({ "type": "migrated", "from": digest, "to": digest }),
        ] {
            let mut document = json!({ "seq": 9, "at_ms": 1000, "run": "r" });
            document.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
            let event: Event = serde_json::from_value(document).unwrap();
            let text =
                String::from_utf8(event_message(&event, &EventView::default()).to_vec()).unwrap();
            let start = format!("id: 9\nevent: {}\ndata: ", kind["type"].as_str().unwrap());
            assert!(text.starts_with(&start), "{text}");
        }
    }

    #[test]
    fn internal_state_of_elicitations_is_not_sent() {
        let elicited = json!({ "round": 0, "digest": "0".repeat(64), "server": "s", "tool": "book",
            "asked": { "questions": {}, "state": "opaque" } });
        let document = json!({
            "seq": 8, "at_ms": 1000, "run": "r", "type": "asked", "interrupt": "i", "task": "t",
            "node": "n", "call": 0, "payload": { "message": "Sure?" }, "elicited": elicited,
        });
        let event: Event = serde_json::from_value(document).unwrap();
        let text =
            String::from_utf8(event_message(&event, &EventView::default()).to_vec()).unwrap();
        assert!(text.contains("Sure?") && !text.contains("elicited"), "{text}");
    }

    #[test]
    fn outlines_are_sent_under_the_types_of_their_events() {
        let document = json!({ "seq": 4, "at_ms": 1000, "run": "r", "type": "answered",
            "interrupt": "i", "task": "t", "answer": "yes" });
        let event: Event = serde_json::from_value(document).unwrap();
        let view = EventView::new(None, true).unwrap();
        let text = String::from_utf8(event_message(&event, &view).to_vec()).unwrap();
        assert_eq!(
            text,
            "id: 4\nevent: answered\ndata: {\"seq\":4,\"at_ms\":1000,\"run\":\"r\",\
             \"type\":\"answered\",\"interrupt\":\"i\",\"task\":\"t\",\
             \"answer\":{\"bytes\":5,\"value\":\"yes\"}}\n\n"
        );
    }

    #[test]
    fn deltas_are_sent_under_their_type() {
        let document = json!({
            "seq": 8, "at_ms": 1000, "run": "r", "type": "streamed", "task": "t", "node": "agent",
            "scope": [1], "call": 0, "deltas": [{ "kind": "text", "text": "hi" }],
        });
        let event: Event = serde_json::from_value(document.clone()).unwrap();
        let text =
            String::from_utf8(event_message(&event, &EventView::default()).to_vec()).unwrap();
        let data = text.strip_prefix("id: 8\nevent: streamed\ndata: ").unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(data.trim_end()).unwrap(), document);
    }
}
