//! The writer of one thread's event log.
//!
//! Events receive their sequence numbers when they happen and reach the store in that order.
//! [`ThreadLog::barrier`] waits until the log is durable. It is called before anything leaves the
//! host, so no client or service sees data that a crash could undo, except for runs with durability
//! `async`.

mod amend;
mod effect;
mod held;
mod open;
mod room;
mod term;
mod weight;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Checkpointed, Event, EventKind};
use wattle_graph::failure::Failure;
use wattle_graph::id::{CheckpointId, Namespace, RunId, ThreadId};

use crate::caps;
use crate::limit;
pub(crate) use crate::log::amend::{Amended, Amendment};
use crate::log::held::Held;
use crate::log::open::Questions;
use crate::log::room::Room;
pub(crate) use crate::log::term::{Tenure, Term};
use crate::ports::Clock;
use crate::ports::lease::Leased;
use crate::ports::store::{
    Batch, Durability, Epoch, Holder, RunRecord, Store, StoreError, ThreadHead, ThreadRecord,
    Ticket, Turn,
};
use crate::quota::{Meter, Tally};
use crate::replay::Made;

/// Records and checkpoint that a batch writes with its events.
#[derive(Default)]
pub struct Commit {
    /// The new record of the thread.
    pub record: Option<ThreadRecord>,
    /// The new record of the run.
    pub run: Option<RunRecord>,
    /// A new checkpoint.
    pub checkpoint: Option<Checkpoint>,
    /// An earlier checkpoint that becomes the current one.
    pub current: Option<CheckpointId>,
    /// Condition on the pending runs of the thread, for a run that starts with this batch.
    pub turn: Turn,
}

/// The log of one thread, as written by the graph in one namespace. All tasks of the graph share
/// it. A thread has one writer.
pub struct ThreadLog {
    writer: Arc<Writer>,
    namespace: Namespace,
    durability: Durability,
    /// The host that writes; `None` if no other host can take the thread.
    holder: Option<Holder>,
    /// The lease of the thread. Effects leave the host only while it is valid.
    leased: Leased,
    /// Size of the thread's log and its limit; `None` without a limit.
    room: Option<Arc<Room>>,
    /// Size of the thread's blobs.
    blobs: Arc<Tally>,
    questions: Arc<Questions>,
}

struct Writer {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    thread: ThreadId,
    /// Incarnation: distinguishes the thread from deleted threads with the same id.
    born: String,
    /// Epoch of the lease under which all batches are written.
    epoch: Epoch,
    buffer: Mutex<Buffer>,
    /// Held while batches are enqueued, so that they reach the store in order.
    order: tokio::sync::Mutex<Order>,
}

/// Queue of batches for the store, in commit order.
struct Order {
    /// Number of the next checkpoint of any graph of the thread. It is assigned under the lock of
    /// the queue, so that numbers reach the store in order.
    next_checkpoint: CheckpointId,
    last: Option<Shared<Ticket>>,
    /// The last enqueued record of the thread, with the metadata updates.
    record: Option<ThreadRecord>,
    amended: Amendment,
    /// Batch that waits for capacity in the store. The queue owns it, because a cancelled caller
    /// may be dropped and its events must still reach the log.
    waiting: Option<BoxFuture<'static, Ticket>>,
    /// Approximate size of the batches enqueued since the last wait for durability.
    ahead_bytes: u64,
}

impl Order {
    fn new(next_checkpoint: CheckpointId) -> Self {
        let (last, waiting, record, amended) = (None, None, None, Amendment::default());
        Self { next_checkpoint, last, record, amended, waiting, ahead_bytes: 0 }
    }

    /// Waits until the store has accepted all batches. If their total size exceeds the limit, waits
    /// until they are durable.
    async fn settle(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            self.last = Some(waiting.await.shared());
            self.waiting = None;
        }
        if self.ahead_bytes > limit::LOG_AHEAD_BYTES {
            // The next call of [`ThreadLog::barrier`] reports the error.
            let _ = durable(self.last.clone()).await;
            self.ahead_bytes = 0;
        }
    }
}

struct Buffer {
    run: RunId,
    next_seq: u64,
    /// The current checkpoint of the root graph.
    base: Option<CheckpointId>,
    events: Vec<Event>,
    held: Held,
}

impl ThreadLog {
    /// Creates the log of a thread under a lease. It continues after the newest event and writes
    /// for the root graph.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        head: &ThreadHead,
        epoch: Epoch,
        run: RunId,
    ) -> Self {
        let (next_seq, base) = (head.last_seq + 1, head.current);
        let next_checkpoint = CheckpointId(head.last_checkpoint.map_or(1, |id| id.0 + 1));
        let buffer =
            Mutex::new(Buffer { run, next_seq, base, events: Vec::new(), held: Held::at(base) });
        let order = tokio::sync::Mutex::new(Order::new(next_checkpoint));
        let ThreadRecord { id: thread, born, created_ms, .. } = head.record.clone();
        let born = born.map_or_else(|| created_ms.to_string(), |born| born.to_string());
        let writer = Arc::new(Writer { store, clock, thread, born, epoch, buffer, order });
        Self {
            writer,
            namespace: Namespace::root(),
            durability: Durability::default(),
            holder: None,
            leased: Leased::default(),
            room: None,
            blobs: Arc::default(),
            questions: Arc::new(Questions::new(u64::MAX)),
        }
    }

    /// Sets the durability.
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Limits the size of the log to `allowed` bytes. `stored` bytes are in the store already. New
    /// bytes also count for `tenant`.
    pub(crate) fn with_room(
        mut self,
        allowed: u64,
        stored: u64,
        tenant: Option<Arc<Meter>>,
    ) -> Self {
        self.room = Some(Arc::new(Room::new(allowed, stored, tenant)));
        self
    }

    /// Limits the number of pending interrupts of the thread.
    pub(crate) fn with_questions(mut self, allowed: u64) -> Self {
        self.questions = Arc::new(Questions::new(allowed));
        self
    }

    /// Returns the same log for the graph in another namespace.
    pub fn within(&self, namespace: Namespace) -> Self {
        Self {
            writer: self.writer.clone(),
            namespace,
            durability: self.durability,
            holder: self.holder.clone(),
            leased: self.leased.clone(),
            room: self.room.clone(),
            blobs: self.blobs.clone(),
            questions: self.questions.clone(),
        }
    }

    /// Returns the size of the thread's blobs.
    pub(crate) fn blobs(&self) -> &Arc<Tally> {
        &self.blobs
    }

    /// Sets the number of pending interrupts of the thread.
    pub(crate) fn set_open_questions(&self, open: usize) {
        self.questions.set(open);
    }

    /// Counts an interrupt that is about to be raised.
    ///
    /// # Errors
    ///
    /// `limit` if the maximum number of interrupts is pending.
    pub(crate) fn take_question(&self) -> Result<(), Failure> {
        self.questions.take(self.thread())
    }

    /// Checks that the log is below its size limit. Called before anything starts that makes the
    /// log grow. The results of running calls and the end of a run are logged in any case.
    ///
    /// # Errors
    ///
    /// See [`Self::barrier`].
    pub(crate) async fn check_room(&self) -> Result<Result<(), Failure>, StoreError> {
        let Some(room) = &self.room else { return Ok(Ok(())) };
        let counted = room.taken();
        if counted < room.allowed {
            return Ok(Ok(()));
        }
        // The store counts only what is durable.
        self.barrier().await?;
        let head = self.writer.store.thread(self.thread()).await?;
        let stored = head.map_or(0, |head| head.log_bytes);
        room.correct(counted, stored);
        if stored < room.allowed {
            return Ok(Ok(()));
        }
        Ok(Err(caps::log_full(self.thread(), stored, room.allowed)))
    }

    /// Returns the namespace of the graph that writes.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Returns the id of the thread.
    pub fn thread(&self) -> &ThreadId {
        &self.writer.thread
    }

    /// Returns the host that writes under its lease.
    pub(crate) fn holder(&self) -> Option<&Holder> {
        self.holder.as_ref()
    }

    /// Identifies the thread among all threads that ever existed. If a crash can undo the run that
    /// writes, the result also identifies the run.
    pub fn signature(&self) -> String {
        let Writer { thread, born, .. } = self.writer.as_ref();
        if self.runs_ahead() {
            return format!("{thread}@{born}/{}", self.buffer().run);
        }
        format!("{thread}@{born}")
    }

    /// Returns true if effects leave the host before their causes are durable.
    pub fn runs_ahead(&self) -> bool {
        self.durability == Durability::Async
    }

    /// Returns the sequence number of the newest event.
    pub fn last_seq(&self) -> u64 {
        self.buffer().next_seq - 1
    }

    /// No code that can panic runs under this lock.
    fn buffer(&self) -> MutexGuard<'_, Buffer> {
        self.writer.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an event to the buffer. It reaches the store with the next flush.
    pub fn push(&self, kind: EventKind) -> Event {
        let run = self.buffer().run.clone();
        self.push_of(run, kind)
    }

    /// Appends an event of another run than the one that writes.
    pub fn push_of(&self, run: RunId, kind: EventKind) -> Event {
        let at_ms = self.writer.clock.now_ms();
        let mut buffer = self.buffer();
        let event =
            Event { seq: buffer.next_seq, at_ms, run, namespace: self.namespace.clone(), kind };
        buffer.next_seq += 1;
        buffer.events.push(event.clone());
        event
    }

    /// Sends the buffered events to the store, without waiting for the disk.
    pub async fn flush(&self) {
        let mut order = self.writer.order.lock().await;
        order.settle().await;
        self.hand_over(&mut order, Commit::default());
        order.settle().await;
    }

    /// Flushes and asks the store to commit immediately, without waiting. Used for results that
    /// cost money or cannot be produced twice.
    pub async fn flush_at_once(&self) {
        self.flush().await;
        let last = self.writer.order.lock().await.last.clone();
        // Polling a ticket makes the store commit.
        drop(last.map(FutureExt::now_or_never));
    }

    /// Sends the buffered events to the store, together with records and a checkpoint.
    pub async fn commit(&self, commit: Commit) {
        let mut order = self.writer.order.lock().await;
        order.settle().await;
        self.hand_over(&mut order, commit);
        order.settle().await;
    }

    /// Creates a checkpoint with the next number and sends it to the store with the buffered
    /// events.
    ///
    /// # Errors
    ///
    /// Errors of `make`. The number is then assigned to the next checkpoint.
    pub async fn checkpoint<E: Send>(
        &self,
        make: impl FnOnce(CheckpointId) -> Result<Checkpoint, E> + Send,
    ) -> Result<Checkpoint, E> {
        let mut order = self.writer.order.lock().await;
        order.settle().await;
        self.store_held_in(&mut order).await;
        let checkpoint = make(order.next_checkpoint)?;
        self.push(EventKind::Checkpointed(Checkpointed::from(&checkpoint.meta)));
        let commit = Commit { checkpoint: Some(checkpoint.clone()), ..Commit::default() };
        self.hand_over(&mut order, commit);
        order.settle().await;
        Ok(checkpoint)
    }

    /// Creates a checkpoint and holds it in memory, for a run that persists only its last
    /// checkpoint. The checkpoint has the next number. If `known` is given, the checkpoint was
    /// created before a crash, and has its former number. [`Self::store_held`] persists the
    /// checkpoint. The next checkpoint of a subgraph persists it first, since checkpoint numbers
    /// reach the store in order.
    ///
    /// # Errors
    ///
    /// See [`Self::checkpoint`].
    pub(crate) async fn hold<E: Send>(
        &self,
        known: Option<Made>,
        make: impl FnOnce(CheckpointId) -> Result<Checkpoint, E> + Send,
    ) -> Result<Checkpoint, E> {
        let mut order = self.writer.order.lock().await;
        order.settle().await;
        let number = known.map_or(order.next_checkpoint, |made| made.checkpoint);
        let checkpoint = make(number)?;
        order.next_checkpoint = order.next_checkpoint.max(CheckpointId(number.0 + 1));
        let made = || self.push(EventKind::Checkpointed(Checkpointed::from(&checkpoint.meta))).seq;
        let mut held = checkpoint.clone();
        held.meta.event_seq = Some(known.map_or_else(made, |made| made.seq));
        self.buffer().held.hold(held);
        self.hand_over(&mut order, Commit::default());
        order.settle().await;
        Ok(checkpoint)
    }

    /// Reserves the checkpoint numbers up to `newest`, which were assigned to unpersisted
    /// checkpoints.
    pub async fn skip_numbers(&self, newest: Option<CheckpointId>) {
        let Some(newest) = newest else { return };
        let mut order = self.writer.order.lock().await;
        order.next_checkpoint = order.next_checkpoint.max(CheckpointId(newest.0 + 1));
    }

    /// Sends the newest checkpoint to the store with the buffered events, if it is not persisted.
    pub async fn store_held(&self) {
        let mut order = self.writer.order.lock().await;
        order.settle().await;
        self.store_held_in(&mut order).await;
    }

    async fn store_held_in(&self, order: &mut Order) {
        let checkpoint = self.buffer().held.take();
        if checkpoint.is_some() {
            self.hand_over(order, Commit { checkpoint, ..Commit::default() });
            order.settle().await;
        }
    }

    /// Moves the buffered events into the queue. Returns true if there were any. The store receives
    /// them when the queue is drained. The function is not `async`, because the batch would enlarge
    /// the future of every task and call that waits.
    fn hand_over(&self, order: &mut Order, commit: Commit) -> bool {
        let batch = {
            let mut buffer = self.buffer();
            let events = std::mem::take(&mut buffer.events);
            let base = buffer.base;
            let made = commit.checkpoint.as_ref().map(|checkpoint| &checkpoint.meta);
            let at = made.filter(|meta| meta.namespace.is_root()).map(|meta| meta.id);
            if let Some(at) = at {
                buffer.held.note(at);
            }
            if let Some(at) = at.or(commit.current) {
                buffer.base = Some(at);
            }
            let Commit { mut record, run, checkpoint, current, turn } = commit;
            if let Some(record) = &mut record {
                order.amended.apply(record);
                order.record = Some(record.clone());
            }
            let epoch = Some(self.writer.epoch);
            Batch { epoch, record, run, base, events, checkpoint, current, turn }
        };
        if let Some(made) = &batch.checkpoint {
            order.next_checkpoint = order.next_checkpoint.max(CheckpointId(made.meta.id.0 + 1));
        }
        let nothing = batch.events.is_empty()
            && batch.record.is_none()
            && batch.run.is_none()
            && batch.checkpoint.is_none();
        if !nothing {
            let bytes = weight::weight(&batch);
            order.ahead_bytes += bytes;
            if let Some(room) = &self.room {
                room.take(bytes);
            }
            let (store, thread) = (self.writer.store.clone(), self.writer.thread.clone());
            order.waiting = Some(Box::pin(append(store, thread, batch)));
        }
        !nothing
    }

    /// Flushes and waits until the log is durable.
    ///
    /// # Errors
    ///
    /// Error of the first batch that could not be written. All later batches fail too, since the
    /// sequence is broken.
    pub async fn barrier(&self) -> Result<(), StoreError> {
        self.flush().await;
        let last = self.writer.order.lock().await.last.clone();
        durable(last).await
    }
}

async fn durable(last: Option<Shared<Ticket>>) -> Result<(), StoreError> {
    match last {
        Some(ticket) => ticket.await,
        None => Ok(()),
    }
}

/// Sends a batch to the store. The returned ticket resolves when the batch is durable.
async fn append(store: Arc<dyn Store>, thread: ThreadId, batch: Batch) -> Ticket {
    store.append(&thread, batch).await
}
