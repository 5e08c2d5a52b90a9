//! The tail of the log of a thread. The thread need not exist yet.

use std::sync::Arc;

use tokio::sync::watch;
use wattle_graph::event::Event;
use wattle_graph::failure::Failure;
use wattle_graph::id::ThreadId;
use wattle_run::engine::Engine;
use wattle_run::ports::store::ThreadHead;
use wattle_run::tail::{Tail, TailItem, TailQuery, Until};

use crate::wait_response::HEARTBEAT_INTERVAL;

/// The result of waiting for an event.
#[derive(Debug, PartialEq)]
pub(crate) enum ThreadTailItem {
    /// The next event is ready; [`ThreadTail::pop`] takes it.
    Event,
    /// A new thread was created with the id of a deleted thread. The tail reads the log of the new
    /// thread from its first event.
    Replaced,
    /// No event has arrived for the heartbeat interval.
    Heartbeat,
    /// The thread was deleted, or belongs to another tenant. No event follows.
    Gone,
    /// The host is shutting down. No event follows.
    ShuttingDown,
    /// The log cannot be read. No event follows.
    ReadFailed(Failure),
}

/// The tail of the events of all runs of a thread, for a tenant.
pub(crate) struct ThreadTail {
    tenant: Option<String>,
    thread: ThreadId,
    tail: Tail,
    /// Sequence number of the last event that [`Self::pop`] returned, or of the event after which
    /// the log is read.
    position: u64,
    /// The next event, if it was already read.
    next_event: Option<Arc<Event>>,
    stopping: watch::Receiver<bool>,
}

impl ThreadTail {
    /// Creates a tail that reads the events after a sequence number.
    pub(crate) fn new(
        engine: &Engine,
        stopping: &watch::Receiver<bool>,
        tenant: Option<String>,
        thread: &ThreadId,
        after: u64,
    ) -> Self {
        let (thread, until) = (thread.clone(), Until::Deleted);
        let query = TailQuery { thread: thread.clone(), run: None, after, until };
        let tail = engine.tail(query);
        let stopping = stopping.clone();
        Self { tenant, thread, tail, position: after, next_event: None, stopping }
    }

    /// Returns the id of the thread.
    pub(crate) fn id(&self) -> &ThreadId {
        &self.thread
    }

    /// Returns the thread as of the last read that found it.
    pub(crate) fn head(&self) -> Option<&ThreadHead> {
        self.tail.head()
    }

    /// Continues with the event after a sequence number, forward or backward.
    pub(crate) fn seek(&mut self, after: u64) {
        self.tail.seek(after);
        (self.position, self.next_event) = (after, None);
    }

    /// Returns the sequence number of the last event that [`Self::pop`] returned, or of the event
    /// after which the log is read.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Returns the next event without taking it, if it was already read.
    pub(crate) fn peek(&self) -> Option<Arc<Event>> {
        self.next_event.clone()
    }

    /// Takes the next event, if it was already read.
    pub(crate) fn pop(&mut self) -> Option<Arc<Event>> {
        let event = self.next_event.take()?;
        self.position = event.seq;
        Some(event)
    }

    /// Waits for the next item. An event stays in the tail until [`Self::pop`] takes it. This
    /// method is cancel safe.
    pub(crate) async fn next(&mut self) -> ThreadTailItem {
        loop {
            if self.next_event.is_some() {
                return ThreadTailItem::Event;
            }
            if let Some(item) = self.read_next().await {
                return item;
            }
        }
    }

    /// Waits for any item except an event. Events are skipped until [`ThreadTail::seek`].
    pub(crate) async fn wait_without_events(&mut self) -> ThreadTailItem {
        self.tail.seek(u64::MAX);
        self.next_event = None;
        loop {
            if let Some(item) = self.read_next().await {
                return item;
            }
        }
    }

    /// Reads the next item. If there is none, waits for a change of the log, and returns `None`
    /// after a change.
    async fn read_next(&mut self) -> Option<ThreadTailItem> {
        let item = match self.tail.next().await {
            Ok(item) => item,
            Err(failure) => return Some(self.read_failed(failure)),
        };
        if self.is_foreign() {
            return Some(ThreadTailItem::Gone);
        }
        match item {
            TailItem::Event(event) => {
                self.next_event = Some(event);
                Some(ThreadTailItem::Event)
            }
            TailItem::Replaced => {
                self.seek(0);
                Some(ThreadTailItem::Replaced)
            }
            TailItem::Gone if self.head().is_some() => Some(ThreadTailItem::Gone),
            // The thread has never existed, but may be created later.
            TailItem::Gone | TailItem::CaughtUp | TailItem::Idle => self.wait().await,
        }
    }

    /// Returns whether the thread belongs to another tenant.
    fn is_foreign(&self) -> bool {
        self.tenant.is_some() && self.head().is_some_and(|head| head.record.tenant != self.tenant)
    }

    async fn wait(&mut self) -> Option<ThreadTailItem> {
        tokio::select! {
            has_changed = self.tail.wait(HEARTBEAT_INTERVAL) => {
                (!has_changed).then_some(ThreadTailItem::Heartbeat)
            }
            _ = self.stopping.wait_for(|stopping| *stopping) => Some(ThreadTailItem::ShuttingDown),
        }
    }

    pub(crate) fn read_failed(&self, failure: Failure) -> ThreadTailItem {
        tracing::warn!(thread = %self.thread, error = %failure, "thread stream aborted");
        ThreadTailItem::ReadFailed(failure)
    }
}
