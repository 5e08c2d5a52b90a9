//! Reading a thread's log as it grows.
//!
//! The log is read page by page as the client takes it, so a slow client holds one page in memory,
//! and reading can be taken up at any event.

use std::collections::VecDeque;
use std::fmt::Display;
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::Stream;
use tokio::sync::watch;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::call::runs::{RunRef, Runs};
use wattle_run::engine::Engine;
use wattle_run::ports::store::ThreadStatus;

use crate::state::ApiState;
use crate::stream::presence::Following;

/// Silence after which a comment is sent unless an app says otherwise: proxies give up after half
/// a minute.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// Events read from the log at a time.
const PAGE_EVENTS: usize = 128;

/// What to read.
#[derive(Clone, Debug)]
pub struct Follow {
    /// The thread.
    pub thread: ThreadId,
    /// Only events of this run.
    pub run: Option<RunId>,
    /// Only events after this one.
    pub after: u64,
    /// When reading ends.
    pub until: Until,
    /// The reader is somebody for whom the run works, so that it may be cancelled when all of them
    /// have left.
    pub audience: Option<Audience>,
}

/// A client for which a run works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audience {
    /// Cancel the run when there was no such client for so long; `None` lets it run.
    pub cancel_after: Option<Duration>,
}

/// When reading ends. It always ends when the host stops or the thread is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Not before.
    Stopped,
    /// When the thread no longer runs and every event was read.
    Idle,
}

/// What comes next.
pub(super) enum Next {
    /// An event.
    Event(Box<Event>),
    /// Nothing for a while.
    Silence,
}

/// Why nothing more comes.
enum End {
    /// There is no more, or the host stops.
    Over,
    /// The log cannot be read; whether the run goes on is not known.
    Unreadable,
}

/// Reads a log.
pub(super) struct Follower {
    engine: Engine,
    news: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    page: VecDeque<Event>,
    follow: Follow,
    /// Silence after which that is said, so that proxies keep the connection and a client that is
    /// gone is noticed.
    heartbeat: Duration,
    following: Option<Following>,
}

impl Follower {
    pub(super) fn new(state: &ApiState, follow: Follow, heartbeat: Duration) -> Self {
        let following = follow.audience.zip(follow.run.clone()).map(|(audience, run)| {
            let run = RunRef { thread: follow.thread.clone(), run };
            Following::new(state, run, audience.cancel_after)
        });
        Self {
            following,
            engine: state.engine.clone(),
            news: state.engine.watch(&follow.thread),
            stopping: state.stopping.clone(),
            page: VecDeque::new(),
            follow,
            heartbeat,
        }
    }

    /// What comes next; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Next> {
        let next = self.read_on().await;
        let is_over = match &next {
            Ok(Next::Event(event)) => matches!(event.kind, EventKind::RunEnded(_)),
            Ok(Next::Silence) | Err(End::Unreadable) => false,
            Err(End::Over) => true,
        };
        if let Some(following) = self.following.as_mut().filter(|_| is_over) {
            following.end();
        }
        next.ok()
    }

    async fn read_on(&mut self) -> Result<Next, End> {
        loop {
            while let Some(event) = self.page.pop_front() {
                self.follow.after = event.seq;
                if self.follow.run.as_ref().is_none_or(|run| *run == event.run) {
                    return Ok(Next::Event(Box::new(event)));
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
                return Err(End::Over);
            }
            if let Some(silence) = self.wait().await? {
                return Ok(silence);
            }
        }
    }

    /// Whether the thread runs; it is over with a thread that is gone.
    async fn is_running(&self) -> Result<bool, End> {
        let thread = &self.follow.thread;
        let head = self.engine.ports().store.thread(thread).await;
        let head = head.map_err(|error| unreadable(thread, &error))?.ok_or(End::Over)?;
        Ok(head.record.status == ThreadStatus::Running)
    }

    async fn read(&self) -> Result<VecDeque<Event>, End> {
        let thread = &self.follow.thread;
        let events = self.engine.events(thread, self.follow.after, PAGE_EVENTS).await;
        events.map(VecDeque::from).map_err(|failure| unreadable(thread, &failure))
    }

    /// Waits for news. `Some(Silence)` after a while without any.
    async fn wait(&mut self) -> Result<Option<Next>, End> {
        tokio::select! {
            changed = self.news.changed() => changed.map(|()| None).map_err(|_| End::Over),
            _ = self.stopping.wait_for(|stopping| *stopping) => Err(End::Over),
            () = tokio::time::sleep(self.heartbeat) => Ok(Some(Next::Silence)),
        }
    }
}

fn unreadable(thread: &ThreadId, error: &dyn Display) -> End {
    tracing::warn!(%thread, %error, "event stream ends");
    End::Unreadable
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
