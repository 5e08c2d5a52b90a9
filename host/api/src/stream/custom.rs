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
use wattle_graph::limit::Exceeded;
use wattle_graph::mapping::{
    EventContext, ProjectionBudget, StreamMessage, StreamProjection, StreamProjector,
};
use wattle_run::app::App;
use wattle_run::blocking::{are_large_values, block_in_place_in_turn};
use wattle_run::caller_id::CallerId;

use crate::projection::{StateAtEvent, apply_in_turn, is_long_event, run_info};
use crate::response::sse_response;
use crate::stream::client_tail::{ClientTail, TailRequest};
use crate::stream::parts::StreamParts;
use crate::stream::run_encoder::{RunEncoder, encode_stream};

/// Responds with the stream of one run in the format `name` of an app. `last_event_id` is the
/// sequence number of the last event that the client has received.
pub fn respond(
    parts: &StreamParts,
    app: &App,
    (name, projection): (&str, Arc<StreamProjection>),
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
    let encoder = CustomEncoder {
        subject: format!("app `{}`: `streams/{name}.toml`", app.name),
        owner: CallerId::of_app(&app.name),
        projector: StreamProjector::new(projection, run_info),
        state_at_event,
        heartbeat,
        last_event_id,
        is_over: false,
    };
    sse_response(encode_stream(tail, encoder, prelude))
}

struct CustomEncoder {
    /// The app and its file, for errors.
    subject: String,
    /// The app, in whose turns long projections are evaluated.
    owner: CallerId,
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
        if !self.projector.is_on(event) {
            return Vec::new();
        }
        self.messages(event).await.unwrap_or_else(|exceeded| self.abort(exceeded))
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    /// A custom format defines no message for errors of the host.
    fn read_failed(&mut self, _failure: &Failure) -> Option<Vec<Bytes>> {
        None
    }

    /// Frees the copy of the state: many streams may wait for a long time, such as for a person.
    fn release(&mut self) {
        self.state_at_event.release();
    }

    fn heartbeat(&self) -> Bytes {
        self.heartbeat.clone()
    }
}

impl CustomEncoder {
    /// Returns the messages of an event that the client has not received yet.
    async fn messages(&mut self, event: &Event) -> Result<Vec<Bytes>, Exceeded> {
        let (owner, projector) = (self.owner, &mut self.projector);
        let is_long = is_long_event(event);
        let wants_state =
            block_in_place_in_turn(owner, is_long, || projector.wants_state(event)).await;
        let time = self.state_at_event.time(event);
        let state = if wants_state { self.state_at_event.state(owner).await } else { &Value::Null };
        let context = EventContext { time: &time, state };
        let is_received = event.seq <= self.last_event_id;
        let is_long = is_long || are_large_values([state]);
        apply_in_turn(owner, is_long, &mut ProjectionBudget::default(), |budget| {
            let messages = projector.apply(event, context, budget)?;
            Ok(if is_received { Vec::new() } else { format_messages(messages, event.seq) })
        })
        .await
    }

    /// Ends the stream. Returns its last message.
    fn abort(&mut self, exceeded: Exceeded) -> Vec<Bytes> {
        self.is_over = true;
        let failure = exceeded.of(&self.subject).to_failure();
        tracing::warn!(error = %failure, "the stream of an app ended before its run");
        vec![super::error_message(failure)]
    }
}

/// Formats the messages of an event. Each one is freed when it is formatted.
fn format_messages(messages: Vec<StreamMessage>, seq: u64) -> Vec<Bytes> {
    let last = messages.len().saturating_sub(1);
    let messages = messages.into_iter().enumerate();
    messages
        .map(|(index, message)| format_message(&message, (index == last).then_some(seq)))
        .collect()
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
    // A line break may have two characters, which together end one line.
    for line in message.data.replace("\r\n", "\n").split(['\r', '\n']) {
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

    #[test]
    fn each_line_break_ends_one_line() {
        let message = StreamMessage { event: None, data: "a\r\nb\rc\nd\r\n".to_owned() };
        assert_eq!(
            format_message(&message, None),
            "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"
        );
    }
}
