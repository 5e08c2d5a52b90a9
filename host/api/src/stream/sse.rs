//! The host's own server-sent events: one message for each event of the log.
//!
//! The stream reads the log page by page as the client takes it, so a slow client holds one page
//! in memory, and it can be taken up at any event.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::stream;
use tokio::sync::watch;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::call::runs::Runs;
use wattle_run::engine::Engine;
use wattle_run::ports::store::ThreadStatus;

use crate::state::ApiState;

/// Events read from the log at a time.
const PAGE_EVENTS: usize = 128;

/// Silence after which a comment is sent, so that proxies keep the connection and a client that
/// is gone is noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// What to stream.
#[derive(Clone, Debug)]
pub struct Follow {
    /// The thread.
    pub thread: ThreadId,
    /// Only events of this run.
    pub run: Option<RunId>,
    /// Only events after this one.
    pub after: u64,
    /// When the stream ends.
    pub until: Until,
}

/// When a stream ends. It always ends when the host stops or the thread is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Not before.
    Stopped,
    /// When the thread no longer runs and every event was sent.
    Idle,
}

/// Answers with the stream.
pub fn answer(state: &ApiState, follow: Follow) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        // nginx collects answers otherwise.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let follower = Follower {
        engine: state.engine.clone(),
        news: state.engine.watch(&follow.thread),
        stopping: state.stopping.clone(),
        page: VecDeque::new(),
        follow,
    };
    let messages = stream::unfold(follower, |mut follower| async move {
        let message = follower.next().await?;
        Some((Ok::<_, Infallible>(message), follower))
    });
    (headers, Body::from_stream(messages)).into_response()
}

struct Follower {
    engine: Engine,
    news: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    page: VecDeque<Event>,
    follow: Follow,
}

impl Follower {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            while let Some(event) = self.page.pop_front() {
                self.follow.after = event.seq;
                if self.follow.run.as_ref().is_none_or(|run| *run == event.run) {
                    return Some(message(&event));
                }
            }
            // Before the log is read: whatever is written after that wakes the wait below.
            self.news.borrow_and_update();
            let running = self.is_running().await?;
            self.page = self.read().await?;
            if !self.page.is_empty() {
                continue;
            }
            if self.follow.until == Until::Idle && !running {
                return None;
            }
            if let Some(comment) = self.wait().await? {
                return Some(comment);
            }
        }
    }

    /// Whether the thread runs; `None` ends the stream, since the thread is gone.
    async fn is_running(&self) -> Option<bool> {
        let thread = &self.follow.thread;
        match self.engine.ports().store.thread(thread).await {
            Ok(Some(head)) => Some(head.record.status == ThreadStatus::Running),
            Ok(None) => None,
            Err(error) => {
                tracing::warn!(%thread, %error, "event stream ends");
                None
            }
        }
    }

    async fn read(&self) -> Option<VecDeque<Event>> {
        let thread = &self.follow.thread;
        match self.engine.events(thread, self.follow.after, PAGE_EVENTS).await {
            Ok(events) => Some(events.into()),
            Err(error) => {
                tracing::warn!(%thread, %error, "event stream ends");
                None
            }
        }
    }

    /// Waits for news. `Some(comment)` after a while without any; `None` ends the stream.
    async fn wait(&mut self) -> Option<Option<Bytes>> {
        tokio::select! {
            changed = self.news.changed() => changed.ok().map(|()| None),
            _ = self.stopping.wait_for(|stopping| *stopping) => None,
            () = tokio::time::sleep(HEARTBEAT) => Some(Some(Bytes::from_static(b":\n\n"))),
        }
    }
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
    use wattle_graph::event::{RunEnded, RunStatus};
    use wattle_graph::id::Namespace;

    use super::*;

    #[test]
    fn a_message_has_number_type_and_document() {
        let event = Event {
            seq: 7,
            at_ms: 1000,
            run: RunId::new("r").unwrap(),
            namespace: Namespace::root(),
            kind: EventKind::RunEnded(RunEnded { status: RunStatus::Completed, failure: None }),
        };
        let text = String::from_utf8(message(&event).to_vec()).unwrap();
        assert_eq!(
            text,
            "id: 7\nevent: run_ended\ndata: {\"seq\":7,\"at_ms\":1000,\"run\":\"r\",\
             \"type\":\"run_ended\",\"status\":\"completed\"}\n\n"
        );
    }
}
