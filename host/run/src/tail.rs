//! The reader of a log that grows.
//!
//! Streams, subscriptions and waits read the log of a thread in the same way: page by page from a
//! sequence number on, and after the last event they wait for more. A [`Tail`] does that for one
//! thread, or for one run of it:
//!
//! ```no_run
//! # use std::time::Duration;
//! # use wattle_graph::{failure::Failure, id::ThreadId};
//! # use wattle_run::engine::Engine;
//! use wattle_run::tail::{Next, TailQuery, Until};
//!
//! # async fn read(engine: Engine, thread: ThreadId) -> Result<(), Failure> {
//! let mut tail = engine.tail(TailQuery { thread, run: None, after: 0, until: Until::Idle });
//! loop {
//!     match tail.next().await? {
//!         Next::Event(event) => println!("{} {}", event.seq, event.kind.name()),
//!         Next::Idle | Next::Gone | Next::Replaced => return Ok(()),
//!         Next::CaughtUp => {
//!             while !tail.wait(Duration::from_secs(15)).await {
//!                 println!("nothing happens");
//!             }
//!         }
//!     }
//! }
//! # }
//! ```
//!
//! [`Tail::next`] reads and never waits for news; [`Tail::wait`] waits and never reads. So a caller
//! decides what else ends a wait, such as the stop of its host, and everything that was durable
//! before that is still returned.
//!
//! # Guarantees
//!
//! * Each event is returned once, in the order of sequence numbers. News of an event that becomes
//!   durable after a read end the next wait, also if it had not begun by then.
//! * Both methods may be dropped at any point: nothing is lost.
//! * A tail holds one page in memory ([`PAGE_EVENTS`](crate::limit::PAGE_EVENTS)), which it shares
//!   with all tails at the same position of the thread ([`pages`]).
//!
//! A log that does not grow, or that is read as far as it goes, needs no tail: [`range`] reads it
//! in pages of the same size.

pub mod pages;
pub mod range;

use std::collections::VecDeque;
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
    /// Only events of this run.
    pub run: Option<RunId>,
    /// Only events with higher sequence numbers.
    pub after: u64,
    /// Whether the end of the run matters.
    pub until: Until,
}

/// When a tail says that nothing more comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// When the thread is deleted.
    Deleted,
    /// Also when every event was returned and nothing writes more: the run that is read has ended, or
    /// the thread has no run at work and none that is pending and due. A run that was set aside is
    /// not at work.
    Idle,
}

/// What a log has after the last event that a tail returned.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// The next event.
    Event(Arc<Event>),
    /// No event, but more may come.
    CaughtUp,
    /// No event, and nothing writes more. Only with [`Until::Idle`].
    Idle,
    /// The thread does not exist.
    Gone,
    /// The thread was deleted, and another thread has its id. The tail goes on with the first event
    /// of that one.
    Replaced,
}

/// Reads the log of a thread as it grows.
pub struct Tail {
    engine: Engine,
    query: TailQuery,
    reader: pages::Reader,
    news: watch::Receiver<u64>,
    /// The newest page that was read of a thread that existed.
    page: Option<Arc<pages::Page>>,
    /// Events of that page that were not returned yet.
    ready: VecDeque<Arc<Event>>,
    /// The run that is read, if it was pending when the log was read last.
    pending: Option<RunRef>,
}

impl Engine {
    /// Opens a tail of a log.
    pub fn tail(&self, query: TailQuery) -> Tail {
        Tail {
            news: self.watch(&query.thread),
            reader: self.pages().reader(&self.ports().store, &query.thread),
            engine: self.clone(),
            query,
            page: None,
            ready: VecDeque::new(),
            pending: None,
        }
    }
}

impl Tail {
    /// The next event, or why there is none. Calling it again is right after each answer and each
    /// failure: the log is read again.
    ///
    /// # Errors
    ///
    /// Those of the store: the log cannot be read.
    pub async fn next(&mut self) -> Result<Next, Failure> {
        loop {
            while let Some(event) = self.ready.pop_front() {
                self.query.after = event.seq;
                if self.query.run.as_ref().is_none_or(|run| *run == event.run) {
                    return Ok(Next::Event(event));
                }
            }
            // Before the log is read: news of anything that is written later end the next wait.
            self.news.borrow_and_update();
            let page = self.read().await?;
            let Some(head) = &page.head else {
                self.pending = None;
                return Ok(Next::Gone);
            };
            let is_another =
                self.head().is_some_and(|before| before.record.born != head.record.born);
            self.ready = page.events.iter().cloned().collect();
            self.page = Some(page);
            if is_another {
                self.seek(0);
                return Ok(Next::Replaced);
            }
            if self.ready.is_empty() {
                return self.caught_up().await;
            }
        }
    }

    /// Waits for news of the thread, or until the pending run that is read is taken out of its queue.
    /// `false` after `silence` without any.
    pub async fn wait(&mut self, silence: Duration) -> bool {
        let (engine, pending) = (self.engine.clone(), self.pending.clone());
        let leaves = async move {
            match pending {
                Some(run) => drop(engine.begun(&run).await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = leaves => {}
            changed = self.news.changed() => if changed.is_err() {
                // The thread was deleted; the next read tells whether another has its id.
                self.news = self.engine.watch(&self.query.thread);
            },
            () = tokio::time::sleep(silence) => return false,
        }
        true
    }

    /// Goes on with the event after a sequence number, in either direction. No event has the number
    /// [`u64::MAX`]: behind that a tail tells of the thread only, and reads no events.
    pub fn seek(&mut self, after: u64) {
        self.query.after = after;
        self.ready.clear();
    }

    /// The thread as it was when the log was read last and the thread existed; `None` before.
    pub fn head(&self) -> Option<&ThreadHead> {
        self.page.as_ref()?.head.as_ref()
    }

    /// Whether the run that is read, or any run of the thread, was at work by [`Tail::head`].
    pub fn is_at_work(&self) -> bool {
        let TailQuery { run, .. } = &self.query;
        self.head().is_some_and(|ThreadHead { record, .. }| {
            record.status == ThreadStatus::Running && (run.is_none() || *run == record.run)
        })
    }

    /// Reads the next page. A thread whose only run is rolled back is deleted and created again in
    /// two steps, so a thread that has just disappeared is read again after that.
    async fn read(&mut self) -> Result<Arc<pages::Page>, Failure> {
        let page = self.reader.read(self.query.after).await?;
        if page.head.is_some() || self.page.is_none() {
            return Ok(page);
        }
        self.engine.settled(&self.query.thread).await;
        self.reader.read(self.query.after).await
    }

    /// What is true when every event was returned.
    async fn caught_up(&mut self) -> Result<Next, Failure> {
        self.pending = None;
        let TailQuery { thread, run, until, .. } = &self.query;
        let is_at_work = self.is_at_work() && self.engine.set_aside(thread).is_none();
        if *until == Until::Deleted || is_at_work {
            return Ok(Next::CaughtUp);
        }
        let run = run.clone().map(|run| RunRef { thread: thread.clone(), run });
        let is_pending = match &run {
            Some(run) => self.engine.is_pending(run).await?,
            None => self.engine.has_due(thread).await?,
        };
        if !is_pending {
            return Ok(Next::Idle);
        }
        self.pending = run;
        Ok(Next::CaughtUp)
    }
}
