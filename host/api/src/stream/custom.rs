//! Encodes a run in a format that an app defines in `streams/<name>.toml`.
//!
//! Messages are numbered and can refer to the state, so the encoder reads the run from its first
//! event and omits messages that the client has already received.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use serde_json::Value;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::failure::Failure;
use wattle_graph::mapping::{EventContext, StreamMessage, StreamProjection, StreamProjector};
use wattle_run::app::App;

use crate::projection::{StateAtEvent, run_info};
use crate::response::sse_response;
use crate::stream::client_tail::{ClientTail, TailRequest};
use crate::stream::parts::StreamParts;
use crate::stream::run_encoder::{RunEncoder, encode_stream};

/// Responds with the stream of one run. `last_event_id` is the sequence number of the last event
/// that the client has received.
pub fn respond(
    parts: &StreamParts,
    app: &App,
    projection: Arc<StreamProjection>,
    request: TailRequest,
    last_event_id: u64,
) -> Response {
    let run = request.run.as_ref().map_or("", |run| run.as_str());
    let run_info = run_info(app, request.thread.as_str(), run);
    let (states, clock) = (parts.engine.states().clone(), &parts.engine.ports().clock);
    let state_at_event = StateAtEvent::new(states, clock.time_zone(), &request.thread);
    let interval = Duration::from_millis(projection.heartbeat.as_ms());
    let tail = ClientTail::new(parts, request, interval);
    let prelude = projection.prelude.iter().map(|prelude| comment(prelude)).collect();
    let heartbeat = comment(&projection.heartbeat_text);
    let projector = StreamProjector::new(projection, run_info);
    let encoder =
        CustomEncoder { projector, state_at_event, heartbeat, last_event_id, is_over: false };
    sse_response(encode_stream(tail, encoder, prelude))
}

struct CustomEncoder {
    projector: StreamProjector,
    state_at_event: StateAtEvent,
    heartbeat: Bytes,
    last_event_id: u64,
    is_over: bool,
}

impl RunEncoder for CustomEncoder {
    async fn encode(&mut self, event: &Event) -> Vec<Bytes> {
        self.state_at_event.apply(event);
        self.is_over = matches!(event.kind, EventKind::RunEnded(_));
        let time = self.state_at_event.time(event);
        let state = if self.projector.wants_state(event) {
            self.state_at_event.state().await
        } else {
            &Value::Null
        };
        let messages = self.projector.apply(event, EventContext { time: &time, state });
        if event.seq <= self.last_event_id {
            return Vec::new();
        }
        let last = messages.len().saturating_sub(1);
        let messages = messages.iter().enumerate();
        messages
            .map(|(index, message)| format_message(message, (index == last).then_some(event.seq)))
            .collect()
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    /// A custom format defines no message for errors.
    fn read_failed(&mut self, _failure: &Failure) -> Option<Vec<Bytes>> {
        None
    }

    fn heartbeat(&self) -> Bytes {
        self.heartbeat.clone()
    }
}

/// Formats a message. Only the last message of an event contains the event's number, so a client
/// that disconnects between two of them receives all of them again.
fn format_message(message: &StreamMessage, seq: Option<u64>) -> Bytes {
    let mut text = String::new();
    if let Some(seq) = seq {
        text.push_str(&format!("id: {seq}\n"));
    }
    if let Some(event) = &message.event {
        text.push_str(&format!("event: {event}\n"));
    }
    for line in message.data.split(['\r', '\n']) {
        text.push_str(&format!("data: {line}\n"));
    }
    text.push('\n');
    text.into()
}

fn comment(text: &str) -> Bytes {
    format!(": {}\n\n", text.replace(['\r', '\n'], " ")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_do_not_end_a_message() {
        let message = StreamMessage { event: Some("a".into()), data: "x\n\nevent: b".into() };
        assert_eq!(
            format_message(&message, Some(7)),
            "id: 7\nevent: a\ndata: x\ndata: \ndata: event: b\n\n"
        );
        assert_eq!(
            format_message(&StreamMessage { event: None, data: String::new() }, None),
            "data: \n\n"
        );
        assert_eq!(comment("a\nb"), ": a b\n\n");
    }
}
