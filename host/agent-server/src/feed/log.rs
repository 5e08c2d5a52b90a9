//! Reading the log of a whole thread, which may not be there yet.

use std::sync::Arc;

use tokio::sync::watch;
use wattle_graph::event::Event;
use wattle_graph::failure::Failure;
use wattle_graph::id::ThreadId;
use wattle_run::ports::store::ThreadHead;
use wattle_run::tail::{Next, Tail, TailQuery, Until};

use crate::agents::Agents;
use crate::follow::HEARTBEAT;

/// What there is.
#[derive(Debug, PartialEq)]
pub(crate) enum Ready {
    /// An event.
    Event,
    /// Another thread has the id now, whose log begins anew.
    Anew,
    /// Nothing for a while.
    Silence,
    /// Nothing more: the thread was deleted, or it is somebody else's.
    Gone,
    /// Nothing more from this host, which stops.
    Stopping,
    /// Nothing more, since the log cannot be read.
    Unreadable(Failure),
}

/// Reads the events of all runs of a thread for a tenant.
pub(crate) struct ThreadLog {
    tenant: Option<String>,
    thread: ThreadId,
    tail: Tail,
    /// The last event that was taken; 0 before the first.
    position: u64,
    /// The event that is ready.
    ready: Option<Arc<Event>>,
    stopping: watch::Receiver<bool>,
}

impl ThreadLog {
    /// Reads from the event on that comes after one.
    pub(crate) fn new(
        agents: &Agents,
        tenant: Option<String>,
        thread: &ThreadId,
        after: u64,
    ) -> Self {
        let (thread, until) = (thread.clone(), Until::Deleted);
        let query = TailQuery { thread: thread.clone(), run: None, after, until };
        let tail = agents.engine().tail(query);
        let stopping = agents.api().stopping.clone();
        Self { tenant, thread, tail, position: after, ready: None, stopping }
    }

    /// The thread.
    pub(crate) fn id(&self) -> &ThreadId {
        &self.thread
    }

    /// The thread as it was when it existed and was looked at last.
    pub(crate) fn head(&self) -> Option<&ThreadHead> {
        self.tail.head()
    }

    /// Reads from the first event on.
    pub(crate) fn rewind(&mut self) {
        self.tail.seek(0);
        (self.position, self.ready) = (0, None);
    }

    /// The last event that was taken; 0 before the first.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The event that is ready.
    pub(crate) fn next(&self) -> Option<Arc<Event>> {
        self.ready.clone()
    }

    /// Takes the event that is ready.
    pub(crate) fn pop(&mut self) -> Option<Arc<Event>> {
        let event = self.ready.take()?;
        self.position = event.seq;
        Some(event)
    }

    /// Waits for an event. Nothing is lost if that is given up.
    pub(crate) async fn ready(&mut self) -> Ready {
        loop {
            if self.ready.is_some() {
                return Ready::Event;
            }
            if let Some(ready) = self.look().await {
                return ready;
            }
        }
    }

    /// Waits for anything but events. Events are read again after [`ThreadLog::rewind`] only.
    pub(crate) async fn idle(&mut self) -> Ready {
        self.tail.seek(u64::MAX);
        self.ready = None;
        loop {
            if let Some(ready) = self.look().await {
                return ready;
            }
        }
    }

    /// Reads on, or waits for news where there is nothing to read.
    async fn look(&mut self) -> Option<Ready> {
        let next = match self.tail.next().await {
            Ok(next) => next,
            Err(failure) => return Some(self.unreadable(failure)),
        };
        if self.is_foreign() {
            return Some(Ready::Gone);
        }
        match next {
            Next::Event(event) => {
                self.ready = Some(event);
                Some(Ready::Event)
            }
            Next::Replaced => {
                self.rewind();
                Some(Ready::Anew)
            }
            Next::Gone if self.head().is_some() => Some(Ready::Gone),
            // It may come yet.
            Next::Gone | Next::CaughtUp | Next::Idle => self.wait().await,
        }
    }

    /// Whether the thread is somebody else's.
    fn is_foreign(&self) -> bool {
        self.tenant.is_some() && self.head().is_some_and(|head| head.record.tenant != self.tenant)
    }

    async fn wait(&mut self) -> Option<Ready> {
        tokio::select! {
            is_news = self.tail.wait(HEARTBEAT) => (!is_news).then_some(Ready::Silence),
            _ = self.stopping.wait_for(|stopping| *stopping) => Some(Ready::Stopping),
        }
    }

    fn unreadable(&self, failure: Failure) -> Ready {
        tracing::warn!(thread = %self.thread, error = %failure, "the stream of a thread ends");
        Ready::Unreadable(failure)
    }
}
