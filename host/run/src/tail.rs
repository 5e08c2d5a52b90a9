//! The reader of a log that grows.
//!
//! Streams, subscriptions and waits read the log of a thread in the same way: page by page from a
//! sequence number on, and after the last event they wait for more. A [`Tail`] does this for a
//! thread or for one of its runs:
//!
//! ```no_run
//! # use std::time::Duration;
//! # use wattle_graph::{failure::Failure, id::ThreadId};
//! # use wattle_run::engine::Engine;
//! use wattle_run::tail::{TailItem, TailQuery, Until};
//!
//! # async fn read(engine: Engine, thread: ThreadId) -> Result<(), Failure> {
//! let mut tail = engine.tail(TailQuery { thread, run: None, after: 0, until: Until::Idle });
//! loop {
//!     match tail.next().await? {
//!         TailItem::Event(event) => println!("{} {}", event.seq, event.kind.name()),
//!         TailItem::Idle | TailItem::Gone | TailItem::Replaced => return Ok(()),
//!         TailItem::CaughtUp => {
//!             while !tail.wait(Duration::from_secs(15)).await {
//!                 println!("nothing happens");
//!             }
//!         }
//!     }
//! }
//! # }
//! ```
//!
//! [`Tail::next`] reads and never waits for new events; [`Tail::wait`] waits and never reads. The
//! caller can therefore end a wait for its own reasons, such as a shutdown, and still read every
//! event that was durable before.
//!
//! # Guarantees
//!
//! * Each event is returned once, in the order of sequence numbers. An event that becomes durable
//!   after a read ends the next wait, even if the wait starts later.
//! * Both methods are cancel safe: dropping their futures loses no event.
//! * A tail holds the events of one page that it has not returned
//!   ([`PAGE_EVENTS`](crate::limit::PAGE_EVENTS),
//!   [`PAGE_EVENT_BYTES`](crate::limit::PAGE_EVENT_BYTES)), and shares the page with all tails at
//!   the same position of the thread ([`pages`]). All pages have a limit of memory together, beyond
//!   which a page has one event.
//!
//! A log that does not grow, or that is read only to its current end, needs no tail: [`range`]
//! reads it in pages of the same size.

pub mod pages;
pub mod range;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use wattle_graph::event::Event;
use wattle_graph::failure::Failure;
use wattle_graph::id::{RunId, ThreadId};

use crate::engine::Engine;
use crate::hostcall::runs::RunRef;
use crate::ports::store::{ThreadHead, ThreadStatus};

/// What a tail reads.
#[derive(Clone, Debug)]
pub struct TailQuery {
    /// The thread. It need not exist yet.
    pub thread: ThreadId,
    /// Reads only events of this run.
    pub run: Option<RunId>,
    /// Reads only events with higher sequence numbers.
    pub after: u64,
    /// When the tail ends.
    pub until: Until,
}

/// When a tail reports that no more events follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// When the thread is deleted.
    Deleted,
    /// When the thread is deleted, or when every event was returned and no run writes more: the run
    /// that is read has ended, or the thread has no active run and no pending run that is due. The
    /// run of a thread that is set aside is not active.
    Idle,
}

/// The result of [`Tail::next`].
#[derive(Clone, Debug, PartialEq)]
pub enum TailItem {
    /// The next event.
    Event(Arc<Event>),
    /// No event at present, but more may follow.
    CaughtUp,
    /// No event, and no run writes more. Only with [`Until::Idle`].
    Idle,
    /// The thread does not exist.
    Gone,
    /// The thread was deleted, and another thread has its id. The tail continues with the first
    /// event of the other thread.
    Replaced,
}

/// Reads the log of a thread as it grows.
pub struct Tail {
    engine: Engine,
    query: TailQuery,
    reader: pages::PageReader,
    changes: watch::Receiver<u64>,
    /// The thread as of the last read at which it existed.
    head: Option<Arc<ThreadHead>>,
    /// The page whose events are being returned.
    ready: Option<ReadyPage>,
    /// The run that is read, if it was pending at the last read.
    pending: Option<RunRef>,
}

/// A page with events that were not returned yet.
struct ReadyPage {
    page: Arc<pages::EventPage>,
    /// Number of events that were returned.
    returned: usize,
}

impl Engine {
    /// Opens a tail of a log.
    pub fn tail(&self, query: TailQuery) -> Tail {
        Tail {
            changes: self.watch(&query.thread),
            reader: self.pages().reader(&self.ports().store, &query.thread),
            engine: self.clone(),
            query,
            head: None,
            ready: None,
            pending: None,
        }
    }
}

impl Tail {
    /// Returns the next event, or why there is none. The method may be called again after every
    /// result and every failure; it then reads the log again.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn next(&mut self) -> Result<TailItem, Failure> {
        loop {
            while let Some(event) = self.take_ready() {
                self.query.after = event.seq;
                if self.query.run.as_ref().is_none_or(|run| *run == event.run) {
                    return Ok(TailItem::Event(event));
                }
            }
            // Changes are marked as seen before the read, so that anything written later ends the
            // next wait.
            self.changes.borrow_and_update();
            let page = self.read().await?;
            let Some(head) = &page.head else {
                self.pending = None;
                return Ok(TailItem::Gone);
            };
            let is_another = self
                .head()
                .is_some_and(|before| before.record.incarnation != head.record.incarnation);
            self.head = Some(head.clone());
            if is_another {
                self.seek(0);
                return Ok(TailItem::Replaced);
            }
            if page.events.is_empty() {
                return self.caught_up().await;
            }
            self.ready = Some(ReadyPage { page, returned: 0 });
        }
    }

    /// Takes the next event that was read. Leaves the page with its last event: while a client does
    /// not read its stream, the tail keeps no page that it does not need.
    fn take_ready(&mut self) -> Option<Arc<Event>> {
        let ready = self.ready.as_mut()?;
        let event = ready.page.events.get(ready.returned).cloned();
        ready.returned += 1;
        if ready.returned >= ready.page.events.len() {
            self.ready = None;
            self.reader.leave();
        }
        event
    }

    /// Waits for a change of the thread, or until the pending run that is read leaves its queue.
    /// Returns false if nothing happens for `silence`.
    pub async fn wait(&mut self, silence: Duration) -> bool {
        let (engine, pending) = (self.engine.clone(), self.pending.clone());
        let leaves = async move {
            match pending {
                Some(run) => drop(engine.wait_started(&run).await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = leaves => {}
            changed = self.changes.changed() => if changed.is_err() {
                // The thread was deleted. The next read shows whether another thread has its id.
                self.changes = self.engine.watch(&self.query.thread);
            },
            () = tokio::time::sleep(silence) => return false,
        }
        true
    }

    /// Continues with the event after a sequence number, forward or backward. No event has the
    /// sequence number [`u64::MAX`]: after this number, a tail reports only changes of the thread
    /// and reads no events.
    pub fn seek(&mut self, after: u64) {
        self.query.after = after;
        self.ready = None;
    }

    /// Returns the thread as of the last read at which it existed, or `None` before such a read.
    pub fn head(&self) -> Option<&ThreadHead> {
        self.head.as_deref()
    }

    /// Returns true if the run that is read, or any run of the thread, was active according to
    /// [`Tail::head`].
    pub fn is_run_active(&self) -> bool {
        let TailQuery { run, .. } = &self.query;
        self.head().is_some_and(|ThreadHead { record, .. }| {
            record.status == ThreadStatus::Running && (run.is_none() || *run == record.run)
        })
    }

    /// Reads the next page. The rollback of a thread's only run deletes the thread and creates it
    /// again, in two steps. A thread that has just disappeared is therefore read again after the
    /// rollback.
    async fn read(&mut self) -> Result<Arc<pages::EventPage>, Failure> {
        let page = self.reader.read(self.query.after).await?;
        if page.head.is_some() || self.head.is_none() {
            return Ok(page);
        }
        self.engine.wait_unlocked(&self.query.thread).await;
        self.reader.read(self.query.after).await
    }

    /// Returns the result after the last event.
    async fn caught_up(&mut self) -> Result<TailItem, Failure> {
        self.pending = None;
        let TailQuery { thread, run, until, .. } = &self.query;
        let is_at_work = self.is_run_active() && self.engine.set_aside(thread).is_none();
        if *until == Until::Deleted || is_at_work {
            return Ok(TailItem::CaughtUp);
        }
        let run = run.clone().map(|run| RunRef { thread: thread.clone(), run });
        let is_pending = match &run {
            Some(run) => self.engine.is_pending(run).await?,
            None => self.engine.has_due(thread).await?,
        };
        if !is_pending {
            return Ok(TailItem::Idle);
        }
        self.pending = run;
        Ok(TailItem::CaughtUp)
    }
}
