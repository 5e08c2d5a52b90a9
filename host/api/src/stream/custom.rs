//! A run's log in an app's own form, as `streams/<name>.toml` describes it.
//!
//! Messages are numbered and may refer to the state, so the run is always read from its first
//! event; what the client has seen already is left out.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use serde_json::Value;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::mapping::{Message, Moment, RunStream, StreamMapping};
use wattle_run::app::App;

use crate::projection::{Past, subject};
use crate::state::ApiState;
use crate::stream::follow::{Follow, Follower, Next, response};

/// Answers with the stream of one run; `seen` is the last event that the client knows.
pub fn answer(
    state: &ApiState,
    app: &App,
    mapping: Arc<StreamMapping>,
    follow: Follow,
    seen: u64,
) -> Response {
    let run = follow.run.as_ref().map_or("", |run| run.as_str());
    let subject = subject(app, follow.thread.as_str(), run);
    let ports = state.engine.ports();
    let own = Own {
        past: Past::new(ports.store.clone(), ports.clock.time_zone(), &follow.thread),
        ready: mapping.prelude.iter().map(|prelude| comment(prelude)).collect(),
        silence: comment(&mapping.heartbeat_text),
        seen,
        is_over: false,
        follower: Follower::new(state, follow, Duration::from_millis(mapping.heartbeat.as_ms())),
        form: RunStream::new(mapping, subject),
    };
    response(stream::unfold(own, |mut own| async move {
        let message = own.next().await?;
        Some((Ok::<_, Infallible>(message), own))
    }))
}

struct Own {
    follower: Follower,
    form: RunStream,
    past: Past,
    /// Messages that are ready to be sent.
    ready: VecDeque<Bytes>,
    silence: Bytes,
    seen: u64,
    is_over: bool,
}

impl Own {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            if self.is_over {
                return None;
            }
            match self.follower.next().await? {
                Next::Event(event) => self.take(&event).await,
                Next::Silence => return Some(self.silence.clone()),
            }
        }
    }

    async fn take(&mut self, event: &Event) {
        self.past.see(event);
        self.is_over = matches!(event.kind, EventKind::RunEnded(_));
        let time = self.past.time(event);
        let state =
            if self.form.wants_state(event) { self.past.state().await } else { &Value::Null };
        let messages = self.form.apply(event, Moment { time: &time, state });
        if event.seq > self.seen {
            let last = messages.len().saturating_sub(1);
            let messages = messages.into_iter().enumerate();
            self.ready.extend(
                messages
                    .map(|(index, message)| wire(&message, (index == last).then_some(event.seq))),
            );
        }
    }
}

/// A message on the wire. Only the last message of an event carries its number: a client that
/// broke off in the middle gets all of the event again.
fn wire(message: &Message, seq: Option<u64>) -> Bytes {
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
    fn texts_cannot_leave_their_message() {
        let message = Message { event: Some("a".into()), data: "x\n\nevent: b".into() };
        assert_eq!(wire(&message, Some(7)), "id: 7\nevent: a\ndata: x\ndata: \ndata: event: b\n\n");
        assert_eq!(wire(&Message { event: None, data: String::new() }, None), "data: \n\n");
        assert_eq!(comment("a\nb"), ": a b\n\n");
    }
}
