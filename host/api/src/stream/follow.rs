//! Reads the log of a thread for one client.
//!
//! A [`Tail`] reads the log at the pace of the client. `Follower` adds the handling of the
//! connection: a shutdown of the host ends the stream, an idle stream gets heartbeats, and the
//! client counts as a follower of its run.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::Stream;
use tokio::sync::watch;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::failure::Failure;
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::hostcall::runs::RunRef;
use wattle_run::tail::{self, Tail, TailQuery, Until};

use crate::state::ApiState;
use crate::stream::presence::Following;

/// Default interval without an event after which a heartbeat is sent. Proxies close idle
/// connections after about 30 seconds.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// Selects the events to read.
#[derive(Clone, Debug)]
pub struct Follow {
    /// Thread whose log is read.
    pub thread: ThreadId,
    /// Only events of this run; `None` for all.
    pub run: Option<RunId>,
    /// Only events after this sequence number.
    pub after: u64,
    /// Condition that ends the stream. A shutdown of the host and the deletion of the thread always
    /// end it.
    pub until: Until,
    /// Policy for the run when its last follower disconnects. With `None`, the client does not
    /// count as a follower.
    pub audience: Option<Audience>,
}

/// The policy for a run whose last follower disconnects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audience {
    /// Time without a follower after which the run is cancelled; `None` lets the run continue.
    pub cancel_after: Option<Duration>,
}

/// The next item of a stream.
pub(super) enum Next {
    /// An event.
    Event(Arc<Event>),
    /// No event for the heartbeat interval.
    Silence,
    /// Error that ends the stream: the log cannot be read. The run may still be running.
    Unreadable(Failure),
}

/// Reads a log for a client.
pub(super) struct Follower {
    thread: ThreadId,
    tail: Tail,
    stopping: watch::Receiver<bool>,
    /// Interval without an event after which a heartbeat is sent. A heartbeat keeps the connection
    /// open through proxies, and detects a disconnected client.
    heartbeat: Duration,
    following: Option<Following>,
}

impl Follower {
    pub(super) fn new(state: &ApiState, follow: Follow, heartbeat: Duration) -> Self {
        let Follow { thread, run, after, until, audience } = follow;
        let following = audience.zip(run.clone()).map(|(audience, run)| {
            let run = RunRef { thread: thread.clone(), run };
            Following::new(state, run, audience.cancel_after)
        });
        let query = TailQuery { thread: thread.clone(), run, after, until };
        let tail = state.engine.tail(query);
        Self { thread, tail, stopping: state.stopping.clone(), heartbeat, following }
    }

    /// Returns the next item; `None` at the end of the stream. [`Next::Unreadable`] is the last
    /// item.
    pub(super) async fn next(&mut self) -> Option<Next> {
        let next = self.read_on().await;
        let is_over = match &next {
            Some(Next::Event(event)) => matches!(event.kind, EventKind::RunEnded(_)),
            Some(Next::Silence | Next::Unreadable(_)) => false,
            None => true,
        };
        if let Some(following) = self.following.as_mut().filter(|_| is_over) {
            following.end();
        }
        next
    }

    async fn read_on(&mut self) -> Option<Next> {
        loop {
            match self.tail.next().await {
                Ok(tail::TailItem::Event(event)) => return Some(Next::Event(event)),
                Ok(tail::TailItem::CaughtUp) => {}
                Ok(tail::TailItem::Idle | tail::TailItem::Gone | tail::TailItem::Replaced) => {
                    return None;
                }
                Err(failure) => {
                    tracing::warn!(thread = %self.thread, error = %failure, "event stream aborted");
                    return Some(Next::Unreadable(failure));
                }
            }
            tokio::select! {
                is_news = self.tail.wait(self.heartbeat) => if !is_news {
                    return Some(Next::Silence);
                },
                _ = self.stopping.wait_for(|stopping| *stopping) => return None,
            }
        }
    }
}

/// Returns a response of server-sent events.
pub(super) fn response<E>(
    messages: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
) -> Response
where
    E: Into<axum::BoxError> + 'static,
{
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        // nginx buffers responses by default.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(messages)).into_response()
}
