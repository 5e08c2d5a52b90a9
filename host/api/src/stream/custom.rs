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

use crate::projection::{Past, subject};
use crate::state::ApiState;
use crate::stream::follow::{Follow, Follower, response};
use crate::stream::whole::{Form, messages};

/// Responds with the stream of one run. `seen` is the sequence number of the last event that the
/// client has received.
pub fn answer(
    state: &ApiState,
    app: &App,
    mapping: Arc<StreamProjection>,
    follow: Follow,
    seen: u64,
) -> Response {
    let run = follow.run.as_ref().map_or("", |run| run.as_str());
    let subject = subject(app, follow.thread.as_str(), run);
    let (states, clock) = (state.engine.states().clone(), &state.engine.ports().clock);
    let past = Past::new(states, clock.time_zone(), &follow.thread);
    let heartbeat = Duration::from_millis(mapping.heartbeat.as_ms());
    let follower = Follower::new(state, follow, heartbeat);
    let ready = mapping.prelude.iter().map(|prelude| comment(prelude)).collect();
    let silence = comment(&mapping.heartbeat_text);
    let stream = StreamProjector::new(mapping, subject);
    let form = Own { stream, past, silence, seen, is_over: false };
    response(messages(follower, form, ready))
}

struct Own {
    stream: StreamProjector,
    past: Past,
    silence: Bytes,
    seen: u64,
    is_over: bool,
}

impl Form for Own {
    async fn take(&mut self, event: &Event) -> Vec<Bytes> {
        self.past.see(event);
        self.is_over = matches!(event.kind, EventKind::RunEnded(_));
        let time = self.past.time(event);
        let state =
            if self.stream.wants_state(event) { self.past.state().await } else { &Value::Null };
        let messages = self.stream.apply(event, EventContext { time: &time, state });
        if event.seq <= self.seen {
            return Vec::new();
        }
        let last = messages.len().saturating_sub(1);
        let messages = messages.iter().enumerate();
        messages
            .map(|(index, message)| wire(message, (index == last).then_some(event.seq)))
            .collect()
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    /// A custom format defines no message for errors.
    fn unreadable(&mut self, _failure: &Failure) -> Option<Vec<Bytes>> {
        None
    }

    fn silence(&self) -> Bytes {
        self.silence.clone()
    }
}

/// Formats a message. Only the last message of an event contains the event's number, so a client
/// that disconnects between two of them receives all of them again.
fn wire(message: &StreamMessage, seq: Option<u64>) -> Bytes {
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
        assert_eq!(wire(&message, Some(7)), "id: 7\nevent: a\ndata: x\ndata: \ndata: event: b\n\n");
        assert_eq!(wire(&StreamMessage { event: None, data: String::new() }, None), "data: \n\n");
        assert_eq!(comment("a\nb"), ": a b\n\n");
    }
}
