//! The writer of one thread's event log.
//!
//! Events get their sequence numbers when they happen and are handed to the store in that order.
//! Nothing waits for the disk but [`ThreadLog::barrier`]: it is called before anything leaves the
//! host, so nobody ever sees what a crash could undo.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::id::{CheckpointId, Namespace, RunId, ThreadId};

use crate::ports::Clock;
use crate::ports::store::{Batch, RunRecord, Store, StoreError, ThreadRecord, Ticket};

/// What goes with the events of a batch.
#[derive(Default)]
pub struct Commit {
    /// New facts of the thread.
    pub record: Option<ThreadRecord>,
    /// New facts of the run.
    pub run: Option<RunRecord>,
    /// A new checkpoint.
    pub checkpoint: Option<Checkpoint>,
    /// An earlier checkpoint to go back to.
    pub current: Option<CheckpointId>,
}

/// The writer of one thread's log. Shared by all tasks of a run; there is one per thread.
pub struct ThreadLog {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    thread: ThreadId,
    buffer: Mutex<Buffer>,
    /// Held while batches are handed over, so that they arrive in order.
    order: tokio::sync::Mutex<Order>,
}

/// What was handed over last.
#[derive(Default)]
struct Order {
    last: Option<Shared<Ticket>>,
    /// A batch that waits for room in the store. It is kept here, not by who handed it over: that
    /// may be a task that a cancel drops, and its events must not be missing in the log.
    waiting: Option<BoxFuture<'static, Ticket>>,
}

impl Order {
    async fn settle(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            self.last = Some(waiting.await.shared());
            self.waiting = None;
        }
    }
}

struct Buffer {
    run: RunId,
    next_seq: u64,
    base: Option<CheckpointId>,
    events: Vec<Event>,
}

impl ThreadLog {
    /// A writer that goes on after `last_seq`, with the thread at checkpoint `base`.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        thread: ThreadId,
        run: RunId,
        last_seq: u64,
        base: Option<CheckpointId>,
    ) -> Self {
        let buffer = Buffer { run, next_seq: last_seq + 1, base, events: Vec::new() };
        Self {
            store,
            clock,
            thread,
            buffer: Mutex::new(buffer),
            order: tokio::sync::Mutex::default(),
        }
    }

    /// The thread.
    pub fn thread(&self) -> &ThreadId {
        &self.thread
    }

    /// Sequence number of the newest event.
    pub fn last_seq(&self) -> u64 {
        self.buffer().next_seq - 1
    }

    /// No code that can panic runs under this lock.
    fn buffer(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that something happened. It reaches the store with the next flush.
    pub fn push(&self, kind: EventKind) -> Event {
        let at_ms = self.clock.now_ms();
        let mut buffer = self.buffer();
        let event = Event {
            seq: buffer.next_seq,
            at_ms,
            run: buffer.run.clone(),
            namespace: Namespace::root(),
            kind,
        };
        buffer.next_seq += 1;
        buffer.events.push(event.clone());
        event
    }

    /// Hands what has happened to the store, without waiting for the disk.
    pub async fn flush(&self) {
        self.commit(Commit::default()).await;
    }

    /// Hands what has happened to the store, together with new facts and a checkpoint.
    pub async fn commit(&self, commit: Commit) {
        let mut order = self.order.lock().await;
        order.settle().await;
        let batch = {
            let mut buffer = self.buffer();
            let events = std::mem::take(&mut buffer.events);
            let base = buffer.base;
            if let Some(at) = commit.checkpoint.as_ref().map(|c| c.meta.id).or(commit.current) {
                buffer.base = Some(at);
            }
            let Commit { record, run, checkpoint, current } = commit;
            Batch { record, run, base, events, checkpoint, current }
        };
        let nothing = batch.events.is_empty()
            && batch.record.is_none()
            && batch.run.is_none()
            && batch.checkpoint.is_none();
        if !nothing {
            let (store, thread) = (self.store.clone(), self.thread.clone());
            order.waiting = Some(Box::pin(hand_over(store, thread, batch)));
            order.settle().await;
        }
    }

    /// Hands what has happened to the store and waits until it is durable.
    ///
    /// # Errors
    ///
    /// That of the first batch that could not be written. Everything after it fails, too, since
    /// the sequence is broken.
    pub async fn barrier(&self) -> Result<(), StoreError> {
        self.flush().await;
        let last = self.order.lock().await.last.clone();
        match last {
            Some(ticket) => ticket.await,
            None => Ok(()),
        }
    }
}

/// Hands a batch to the store; the answer is a ticket for its durability, not awaited here.
async fn hand_over(store: Arc<dyn Store>, thread: ThreadId, batch: Batch) -> Ticket {
    store.append(&thread, batch).await
}
