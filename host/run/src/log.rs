//! The writer of one thread's event log.
//!
//! Events get their sequence numbers when they happen and are handed to the store in that order.
//! Nothing waits for the disk but [`ThreadLog::barrier`]: it is called before anything leaves the
//! host, so nobody ever sees what a crash could undo, unless a run was started so (durability
//! `async`).

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
    /// What a run that begins by it asks of the pending runs of the thread.
    pub turn: Turn,
}

/// The log of one thread, as the graph in one namespace writes it. Shared by all tasks of the
/// graph; there is one writer per thread.
pub struct ThreadLog {
    writer: Arc<Writer>,
    namespace: Namespace,
    durability: Durability,
    /// The host that writes; `None` if no other host could have the thread.
    holder: Option<Holder>,
    /// The lease of that host.
    leased: Leased,
    /// What the thread takes; `None` if nothing bounds it.
    room: Option<Arc<Room>>,
    /// The blobs of the thread.
    blobs: Arc<Tally>,
    questions: Arc<Questions>,
}

struct Writer {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    thread: ThreadId,
    /// Which of all threads that ever had its id it is.
    born: String,
    /// The lease under which everything is written.
    epoch: Epoch,
    buffer: Mutex<Buffer>,
    /// Held while batches are handed over, so that they arrive in order.
    order: tokio::sync::Mutex<Order>,
}

/// What was handed over last.
struct Order {
    /// Number of the next checkpoint, of whichever graph of the thread. It is given out together
    /// with the place in this order, so that numbers reach the store in order.
    next_checkpoint: CheckpointId,
    last: Option<Shared<Ticket>>,
    /// The facts of the thread that were handed over last, with what was amended.
    record: Option<ThreadRecord>,
    amended: Amendment,
    /// A batch that waits for room in the store. It is kept here, not by who handed it over: that
    /// may be a task that a cancel drops, and its events must not be missing in the log.
    waiting: Option<BoxFuture<'static, Ticket>>,
    /// About how many bytes were handed over since something was last waited for.
    ahead_bytes: u64,
}

impl Order {
    fn new(next_checkpoint: CheckpointId) -> Self {
        let (last, waiting, record, amended) = (None, None, None, Amendment::default());
        Self { next_checkpoint, last, record, amended, waiting, ahead_bytes: 0 }
    }

    /// Waits until the store has what was handed over and, if that is much, until it is durable.
    async fn settle(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            self.last = Some(waiting.await.shared());
            self.waiting = None;
        }
        if self.ahead_bytes > limit::LOG_AHEAD_BYTES {
            // What went wrong shows at the next barrier.
            let _ = durable(self.last.clone()).await;
            self.ahead_bytes = 0;
        }
    }
}

struct Buffer {
    run: RunId,
    next_seq: u64,
    /// The checkpoint of the root graph that the thread stands at.
    base: Option<CheckpointId>,
    events: Vec<Event>,
    held: Held,
}

impl ThreadLog {
    /// The log of a thread, under a lease, that goes on where the thread stands. It writes for the
    /// thread's own graph.
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

    /// The same for a run in which something else waits for the disk than usual.
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The same for a log that may take so many bytes, of which the store has some, and that counts
    /// for a tenant.
    pub(crate) fn with_room(
        mut self,
        allowed: u64,
        stored: u64,
        tenant: Option<Arc<Meter>>,
    ) -> Self {
        self.room = Some(Arc::new(Room::new(allowed, stored, tenant)));
        self
    }

    /// The same for a thread that may have so many open questions.
    pub(crate) fn with_questions(mut self, allowed: u64) -> Self {
        self.questions = Arc::new(Questions::new(allowed));
        self
    }

    /// The same log as a nested graph writes it.
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

    /// The blobs of the thread.
    pub(crate) fn blobs(&self) -> &Arc<Tally> {
        &self.blobs
    }

    /// So many questions of the thread are open.
    pub(crate) fn set_open_questions(&self, open: usize) {
        self.questions.set(open);
    }

    /// Counts a question that is to be asked.
    ///
    /// # Errors
    ///
    /// `limit` if as many are open as may be.
    pub(crate) fn take_question(&self) -> Result<(), Failure> {
        self.questions.take(self.thread())
    }

    /// Whether the thread may still grow. Asked before something begins that makes it grow; what is
    /// under way is written down in any case, and so is how a run ends.
    ///
    /// # Errors
    ///
    /// As [`Self::barrier`].
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

    /// The graph that writes.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The thread.
    pub fn thread(&self) -> &ThreadId {
        &self.writer.thread
    }

    /// The host that writes, under its lease.
    pub(crate) fn holder(&self) -> Option<&Holder> {
        self.holder.as_ref()
    }

    /// Names the thread among all that there ever were. If a crash can undo the run that writes,
    /// it names the run as well.
    pub fn signature(&self) -> String {
        let Writer { thread, born, .. } = self.writer.as_ref();
        if self.runs_ahead() {
            return format!("{thread}@{born}/{}", self.buffer().run);
        }
        format!("{thread}@{born}")
    }

    /// Whether things leave the host before what led to them is durable.
    pub fn runs_ahead(&self) -> bool {
        self.durability == Durability::Async
    }

    /// Sequence number of the newest event.
    pub fn last_seq(&self) -> u64 {
        self.buffer().next_seq - 1
    }

    /// No code that can panic runs under this lock.
    fn buffer(&self) -> MutexGuard<'_, Buffer> {
        self.writer.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that something happened. It reaches the store with the next flush.
    pub fn push(&self, kind: EventKind) -> Event {
        let run = self.buffer().run.clone();
        self.push_of(run, kind)
    }

    /// The same of another run than the one that writes.
    pub fn push_of(&self, run: RunId, kind: EventKind) -> Event {
        let at_ms = self.writer.clock.now_ms();
        let mut buffer = self.buffer();
        let event =
            Event { seq: buffer.next_seq, at_ms, run, namespace: self.namespace.clone(), kind };
        buffer.next_seq += 1;
        buffer.events.push(event.clone());
        event
    }

    /// Hands what has happened to the store, without waiting for the disk.
    pub async fn flush(&self) {
        let mut order = self.writer.order.lock().await;
        order.settle().await;
        self.hand_over(&mut order, Commit::default());
        order.settle().await;
    }

    /// The same of what must not be lost, since it was paid for or cannot be had twice: the store is
    /// to write it at once, but nobody waits.
    pub async fn flush_at_once(&self) {
        self.flush().await;
        let last = self.writer.order.lock().await.last.clone();
        // To ask a ticket is what makes a store hurry.
        drop(last.map(FutureExt::now_or_never));
    }

    /// Hands what has happened to the store, together with new facts and a checkpoint.
    pub async fn commit(&self, commit: Commit) {
        let mut order = self.writer.order.lock().await;
        order.settle().await;
        self.hand_over(&mut order, commit);
        order.settle().await;
    }

    /// Makes a checkpoint under the next number and hands it to the store with what has happened.
    ///
    /// # Errors
    ///
    /// That of `make`. The number is given to the next checkpoint then.
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

    /// Makes a checkpoint of a run that stores only its last one: under the next number, or under
    /// the one that it had before a crash. It is stored by [`Self::store_held`], or once a nested
    /// graph makes one, since numbers reach the store in order.
    ///
    /// # Errors
    ///
    /// As [`Self::checkpoint`].
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
        held.meta.made_seq = Some(known.map_or_else(made, |made| made.seq));
        self.buffer().held.hold(held);
        self.hand_over(&mut order, Commit::default());
        order.settle().await;
        Ok(checkpoint)
    }

    /// Numbers of checkpoints go on behind this one, which was given out and is not stored.
    pub async fn skip_numbers(&self, newest: Option<CheckpointId>) {
        let Some(newest) = newest else { return };
        let mut order = self.writer.order.lock().await;
        order.next_checkpoint = order.next_checkpoint.max(CheckpointId(newest.0 + 1));
    }

    /// Hands the newest checkpoint to the store, with what has happened, if it was kept back.
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

    /// Gives what has happened its place in the order; it is the store's once the order is settled.
    /// Answers whether there was anything. Not `async`: every task and call that waits would be as
    /// large as a batch.
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

    /// Hands what has happened to the store and waits until it is durable.
    ///
    /// # Errors
    ///
    /// That of the first batch that could not be written. Everything after it fails, too, since
    /// the sequence is broken.
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

/// Hands a batch to the store; the answer is a ticket for its durability, not awaited here.
async fn append(store: Arc<dyn Store>, thread: ThreadId, batch: Batch) -> Ticket {
    store.append(&thread, batch).await
}
