//! Following the log of a thread for one client.
//!
//! A [`Tail`] reads the log as the client takes it. What is added here is of the client: the stop of
//! the host ends its stream, silence becomes a sign of life, and its presence is noted.

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

/// Silence after which a comment is sent unless an app says otherwise: proxies give up after half
/// a minute.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// What to read.
#[derive(Clone, Debug)]
pub struct Follow {
    /// The thread.
    pub thread: ThreadId,
    /// Only events of this run.
    pub run: Option<RunId>,
    /// Only events after this one.
    pub after: u64,
    /// When reading ends. It always ends when the host stops or the thread is deleted.
    pub until: Until,
    /// The reader is a client for which the run works, so that the run may be cancelled when all of
    /// them have left.
    pub audience: Option<Audience>,
}

/// A client for which a run works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audience {
    /// Cancel the run when there was no such client for so long; `None` lets it run.
    pub cancel_after: Option<Duration>,
}

/// What comes next.
pub(super) enum Next {
    /// An event.
    Event(Arc<Event>),
    /// Nothing for a while.
    Silence,
    /// Nothing more, since the log cannot be read. Whether the run goes on is not known.
    Unreadable(Failure),
}

/// Follows a log for a client.
pub(super) struct Follower {
    thread: ThreadId,
    tail: Tail,
    stopping: watch::Receiver<bool>,
    /// Silence after which that is said, so that proxies keep the connection and a client that is
    /// gone is noticed.
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

    /// What comes next; `None` at the end. Nothing comes after [`Next::Unreadable`].
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
                Ok(tail::Next::Event(event)) => return Some(Next::Event(event)),
                Ok(tail::Next::CaughtUp) => {}
                Ok(tail::Next::Idle | tail::Next::Gone | tail::Next::Replaced) => return None,
                Err(failure) => {
                    tracing::warn!(thread = %self.thread, error = %failure, "event stream ends");
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

/// An answer of server-sent events.
pub(super) fn response<E>(
    messages: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
) -> Response
where
    E: Into<axum::BoxError> + 'static,
{
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        // nginx collects answers otherwise.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(messages)).into_response()
}
