//! The writer of one thread's event log.
//!
//! Events receive their sequence numbers when they happen and reach the store in that order.
//! [`ThreadLog::wait_durable`] waits until the log is durable. The host calls this function before
//! anything leaves the host, so no client or service sees data that a crash could undo, except for
//! runs with durability `async`.

mod batch_size;
mod event_buffer;
mod heartbeat;
mod interrupt_count;
mod log_size;
mod metadata_update;
mod outgoing;
mod output_commit;
mod unpersisted;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Called, Checkpointed, Event, EventKind, InterruptRaised, RunEnded};
use wattle_graph::failure::Failure;
use wattle_graph::id::{CheckpointId, Namespace, RunId, ThreadId};
use wattle_graph::interrupt::Interrupt;

use crate::caller_id::CallerId;
use crate::caps;
use crate::limit;
pub use crate::log::batch_size::event_memory_bytes;
use crate::log::event_buffer::{EventBuffer, TakenEvents};
pub(crate) use crate::log::heartbeat::{Heartbeats, ThreadLease};
use crate::log::interrupt_count::InterruptCount;
use crate::log::log_size::LogSize;
pub(crate) use crate::log::metadata_update::{MetadataUpdate, UpdateOutcome};
use crate::log::outgoing::{AcceptedBatch, OutgoingBatch};
use crate::meter::model_usage::ModelUsage;
use crate::ports::Clock;
use crate::ports::lease::CallLease;
use crate::ports::store::{
    Batch, Durability, LeaseEpoch, LeaseHolder, QueueCondition, RunRecord, StoreError, ThreadHead,
    ThreadRecord, Ticket,
};
use crate::quota::{ThreadBlobs, UsageMeter};
use crate::run_memory::{MemoryCharge, RunMemory};
use crate::state_cache::StateCache;
use crate::unpersisted_events::LoggedCheckpoint;

/// Records and checkpoint that a batch writes with its events.
#[derive(Default)]
pub struct Commit {
    /// The new record of the thread.
    pub record: Option<ThreadRecord>,
    /// The new record of the run.
    pub run: Option<RunRecord>,
    /// A new checkpoint.
    pub checkpoint: Option<Checkpoint>,
    /// An earlier checkpoint that becomes the current one. The events of the batch belong to it.
    pub current: Option<CheckpointId>,
    /// Condition on the pending runs of the thread, for a run that starts with this batch.
    pub queue_condition: QueueCondition,
    /// True to release the lease once the batch is durable. The commit is then the last one of the
    /// log.
    pub releases_lease: bool,
}

/// The log of one thread, for the events of the graph in one namespace. All tasks of the graph
/// share this value. A thread has one writer.
pub struct ThreadLog {
    writer: Arc<LogWriter>,
    namespace: Namespace,
    durability: Durability,
    /// Caller for which the work on the batches counts.
    caller: CallerId,
    /// The host that writes; `None` if no other host can acquire the lease of the thread.
    holder: Option<LeaseHolder>,
    /// The lease of the thread. Effects leave the host only while the lease is valid.
    lease: CallLease,
    /// Size of the thread's log and its limit; `None` without a limit.
    size: Option<Arc<LogSize>>,
    /// Size of the thread's blobs.
    blobs: Arc<ThreadBlobs>,
    interrupt_count: Arc<InterruptCount>,
}

struct LogWriter {
    /// The store, with the cache of the states of written checkpoints.
    states: StateCache,
    clock: Arc<dyn Clock>,
    thread: ThreadId,
    /// Incarnation: distinguishes the thread from deleted threads with the same id.
    incarnation: Arc<str>,
    /// Epoch of the lease under which all batches are written.
    epoch: LeaseEpoch,
    /// The run that writes.
    run: RunId,
    buffer: EventBuffer,
    /// Tokens that the model calls of the run used.
    usage: Mutex<ModelUsage>,
    /// Time for which supersteps waited for the store, in microseconds.
    store_us: AtomicU64,
    /// Held while batches are enqueued, so that they reach the store in order.
    queue: tokio::sync::Mutex<CommitQueue>,
}

/// Queue of batches for the store, in commit order.
struct CommitQueue {
    /// Number of the next checkpoint of any graph of the thread. The number is assigned under the
    /// lock of the queue, so that numbers reach the store in order.
    next_checkpoint: CheckpointId,
    last: Option<Shared<Ticket>>,
    /// The last enqueued record of the thread, including the metadata updates.
    record: Option<ThreadRecord>,
    metadata_update: MetadataUpdate,
    /// Batch that waits for capacity in the store. The queue owns it, because a cancelled caller
    /// may be dropped and its events must still reach the log.
    in_flight: Option<BoxFuture<'static, AcceptedBatch>>,
    /// Approximate size in memory of the batches enqueued since the last wait for durability.
    ahead_bytes: u64,
}

impl CommitQueue {
    fn new(next_checkpoint: CheckpointId) -> Self {
        let (last, in_flight, record, metadata_update) =
            (None, None, None, MetadataUpdate::default());
        Self { next_checkpoint, last, record, metadata_update, in_flight, ahead_bytes: 0 }
    }

    /// Waits until the store has accepted all batches. If their total size exceeds the limit, waits
    /// until they are durable.
    async fn wait_accepted(&mut self) {
        if let Some(waiting) = &mut self.in_flight {
            let AcceptedBatch { ticket, checkpoint_bytes } = waiting.await;
            self.in_flight = None;
            self.last = Some(ticket);
            self.ahead_bytes += checkpoint_bytes;
        }
        if self.ahead_bytes > limit::LOG_AHEAD_BYTES {
            // The next call of [`ThreadLog::wait_durable`] reports the error.
            let _ = wait_ticket(self.last.clone()).await;
            self.ahead_bytes = 0;
        }
    }

    /// Returns the ticket of the last batch that the store has accepted.
    fn last_ticket(&self) -> Shared<Ticket> {
        self.last.clone().unwrap_or_else(|| Ticket::ready(Ok(())).shared())
    }
}

impl ThreadLog {
    /// Creates the log of a thread under a lease. The log continues after the newest event. It
    /// writes events of the root graph, and its work counts for the app.
    pub fn new(
        states: StateCache,
        clock: Arc<dyn Clock>,
        head: &ThreadHead,
        epoch: LeaseEpoch,
        run: RunId,
    ) -> Self {
        let buffer = EventBuffer::new(head.last_seq + 1, head.current);
        let next_checkpoint = CheckpointId(head.last_checkpoint.map_or(1, |id| id.0 + 1));
        let queue = tokio::sync::Mutex::new(CommitQueue::new(next_checkpoint));
        let (thread, incarnation) = (head.record.id.clone(), head.record.incarnation_text().into());
        let (usage, store_us) = (Mutex::default(), AtomicU64::default());
        let writer = LogWriter {
            states,
            clock,
            thread,
            incarnation,
            epoch,
            run,
            buffer,
            usage,
            store_us,
            queue,
        };
        Self {
            writer: Arc::new(writer),
            namespace: Namespace::root(),
            durability: Durability::default(),
            caller: CallerId::of_app(&head.record.app),
            holder: None,
            lease: CallLease::default(),
            size: None,
            blobs: Arc::default(),
            interrupt_count: Arc::new(InterruptCount::new(u64::MAX)),
        }
    }

    /// Sets the durability.
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the caller for which the work on the log counts.
    pub(crate) fn with_caller(mut self, caller: CallerId) -> Self {
        self.caller = caller;
        self
    }

    /// Counts events as memory of a run until the store has accepted them.
    pub(crate) fn with_memory(self, memory: RunMemory) -> Self {
        self.writer.buffer.set_memory(MemoryCharge::new(memory));
        self
    }

    /// Sets the tokens that the model calls of the run have used so far.
    pub(crate) fn with_usage(self, usage: ModelUsage) -> Self {
        *self.writer.usage.lock().unwrap_or_else(PoisonError::into_inner) = usage;
        self
    }

    /// Counts the tokens of a call of the run.
    pub(crate) fn count_usage(&self, called: &Called) {
        self.writer.usage.lock().unwrap_or_else(PoisonError::into_inner).count(called);
    }

    /// Returns the tokens that the model calls of the run have used so far.
    pub(crate) fn usage(&self) -> ModelUsage {
        self.writer.usage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Limits the size of the log to `allowed` bytes. `stored` bytes are in the store already. New
    /// bytes also count for `tenant`.
    pub(crate) fn with_size_limit(
        mut self,
        allowed: u64,
        stored: u64,
        tenant: Option<Arc<UsageMeter>>,
    ) -> Self {
        self.size = Some(Arc::new(LogSize::new(allowed, stored, tenant)));
        self
    }

    /// Limits the number of pending interrupts of the thread.
    pub(crate) fn with_interrupt_limit(mut self, allowed: u64) -> Self {
        self.interrupt_count = Arc::new(InterruptCount::new(allowed));
        self
    }

    /// Returns the same log for the graph in another namespace.
    pub fn for_namespace(&self, namespace: Namespace) -> Self {
        Self {
            writer: self.writer.clone(),
            namespace,
            durability: self.durability,
            caller: self.caller,
            holder: self.holder.clone(),
            lease: self.lease.clone(),
            size: self.size.clone(),
            blobs: self.blobs.clone(),
            interrupt_count: self.interrupt_count.clone(),
        }
    }

    /// Returns the state cache, to which the log adds the states of the checkpoints that it writes.
    pub(crate) fn states(&self) -> &StateCache {
        &self.writer.states
    }

    /// Returns the size of the thread's blobs.
    pub(crate) fn blobs(&self) -> &Arc<ThreadBlobs> {
        &self.blobs
    }

    /// Sets the pending interrupts of the thread, each with the namespace of its graph.
    pub(crate) fn set_pending_interrupts(&self, open: &[(Namespace, Interrupt)]) {
        self.interrupt_count.set(open);
    }

    /// Counts an interrupt that is about to be raised.
    ///
    /// # Errors
    ///
    /// `limit` if the maximum number of interrupts is pending, or if they would take too much
    /// memory.
    pub(crate) fn count_interrupt(&self, raised: &InterruptRaised) -> Result<(), Failure> {
        self.interrupt_count.add(self.thread(), raised)
    }

    /// Checks that the log is below its size limit. Called before an operation that makes the log
    /// grow. The results of running calls and the end of a run are logged in any case.
    ///
    /// # Errors
    ///
    /// See [`Self::wait_durable`].
    pub(crate) async fn check_size(&self) -> Result<Result<(), Failure>, StoreError> {
        let Some(room) = &self.size else { return Ok(Ok(())) };
        let counted = room.bytes();
        if counted < room.allowed {
            return Ok(Ok(()));
        }
        // The store counts only what is durable.
        self.wait_durable().await?;
        let head = self.writer.states.store().thread(self.thread()).await?;
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

    /// Returns the run that writes.
    pub(crate) fn run(&self) -> &RunId {
        &self.writer.run
    }

    /// Returns the host that writes under its lease.
    pub(crate) fn holder(&self) -> Option<&LeaseHolder> {
        self.holder.as_ref()
    }

    /// Identifies the thread among all threads that ever existed. If a crash can undo the run that
    /// writes, the result also identifies the run.
    pub fn incarnation_key(&self) -> String {
        let LogWriter { thread, incarnation, run, .. } = self.writer.as_ref();
        if self.is_async() {
            return format!("{thread}@{incarnation}/{run}");
        }
        format!("{thread}@{incarnation}")
    }

    /// Returns true if effects leave the host before their causes are durable.
    pub fn is_async(&self) -> bool {
        self.durability == Durability::Async
    }

    /// Returns the sequence number of the newest event.
    pub fn last_seq(&self) -> u64 {
        self.writer.buffer.lock().next_seq - 1
    }

    /// Appends an event to the buffer and returns its sequence number. The event reaches the store
    /// with the next flush.
    pub fn push(&self, kind: EventKind) -> u64 {
        self.writer.buffer.push(self.event(&self.writer.run, kind))
    }

    /// Appends an event like [`Self::push`] and returns a copy of it.
    pub(crate) fn push_and_copy(&self, kind: EventKind) -> Event {
        self.writer.buffer.push_and_copy(self.event(&self.writer.run, kind))
    }

    /// Appends an event of a run other than the run that writes.
    pub fn push_for_run(&self, run: &RunId, kind: EventKind) -> u64 {
        self.writer.buffer.push(self.event(run, kind))
    }

    /// Creates an event that has no sequence number yet.
    pub(crate) fn event(&self, run: &RunId, kind: EventKind) -> Event {
        let (at_ms, namespace) = (self.writer.clock.now_ms(), self.namespace.clone());
        Event { seq: 0, at_ms, run: run.clone(), namespace, kind }
    }

    /// Returns true if [`limit::LOG_BUFFER_BYTES`] of log messages are buffered. The code that logs
    /// messages then flushes the log.
    pub(crate) fn is_flush_due(&self) -> bool {
        self.writer.buffer.lock().message_bytes >= limit::LOG_BUFFER_BYTES
    }

    /// Sends the buffered events to the store, without waiting for the disk.
    pub async fn flush(&self) {
        let mut order = self.writer.queue.lock().await;
        order.wait_accepted().await;
        self.enqueue(&mut order, Commit::default());
        order.wait_accepted().await;
    }

    /// Flushes and asks the store to commit immediately, without waiting. Used for results that
    /// cost money or cannot be produced twice.
    pub async fn flush_urgent(&self) {
        self.flush().await;
        let last = self.writer.queue.lock().await.last.clone();
        // Polling a ticket makes the store commit.
        drop(last.map(FutureExt::now_or_never));
    }

    /// Sends the buffered events to the store, together with records and a checkpoint.
    pub async fn commit(&self, commit: Commit) {
        drop(self.commit_with_ticket(commit).await);
    }

    /// Sends like [`Self::commit`]. Returns the ticket of the batch.
    pub(crate) async fn commit_with_ticket(&self, commit: Commit) -> Shared<Ticket> {
        let mut order = self.writer.queue.lock().await;
        order.wait_accepted().await;
        self.enqueue(&mut order, commit);
        order.wait_accepted().await;
        order.last_ticket()
    }

    /// Appends the last events of a run and sends them like [`Self::commit`]. Other callers cannot
    /// send these events before their batch. `reopened` is the event by which the thread returns to
    /// the checkpoint that the commit makes the current one. Returns the ticket of the batch:
    /// batches that are sent after it may fail because the lease has ended.
    pub(crate) async fn commit_last(
        &self,
        reopened: Option<Event>,
        ended: RunEnded,
        commit: Commit,
    ) -> Shared<Ticket> {
        let mut order = self.writer.queue.lock().await;
        order.wait_accepted().await;
        if let Some(reopened) = reopened {
            // Events of other tasks belong to the checkpoint that was the current one so far.
            self.enqueue(&mut order, Commit::default());
            order.wait_accepted().await;
            self.writer.buffer.push(reopened);
        }
        self.push(EventKind::RunEnded(ended));
        self.enqueue(&mut order, commit);
        order.wait_accepted().await;
        order.last_ticket()
    }

    /// Creates a checkpoint with the next number and sends it to the store with the buffered
    /// events.
    ///
    /// # Errors
    ///
    /// Errors of `make`. The number is then assigned to the next checkpoint.
    pub async fn checkpoint<E: Send, M>(
        &self,
        make: impl FnOnce(CheckpointId) -> M + Send,
    ) -> Result<Checkpoint, E>
    where
        M: Future<Output = Result<Checkpoint, E>> + Send,
    {
        let mut order = self.writer.queue.lock().await;
        order.wait_accepted().await;
        self.persist_checkpoint_in(&mut order).await;
        let checkpoint = make(order.next_checkpoint).await?;
        self.push(EventKind::Checkpointed(Checkpointed::from(&checkpoint)));
        let commit = Commit { checkpoint: Some(checkpoint.clone()), ..Commit::default() };
        self.enqueue(&mut order, commit);
        order.wait_accepted().await;
        Ok(checkpoint)
    }

    /// Creates a checkpoint and holds it in memory, for a run that persists only its last
    /// checkpoint. The checkpoint has the next number. If `known` is given, the checkpoint was
    /// created before a crash, and has its former number. [`Self::persist_checkpoint`] persists the
    /// checkpoint. The next checkpoint of a subgraph first persists the held checkpoint, since
    /// checkpoint numbers reach the store in order.
    ///
    /// # Errors
    ///
    /// See [`Self::checkpoint`].
    pub(crate) async fn checkpoint_unpersisted<E: Send, M>(
        &self,
        known: Option<LoggedCheckpoint>,
        make: impl FnOnce(CheckpointId) -> M + Send,
    ) -> Result<Checkpoint, E>
    where
        M: Future<Output = Result<Checkpoint, E>> + Send,
    {
        let mut order = self.writer.queue.lock().await;
        order.wait_accepted().await;
        let number = known.map_or(order.next_checkpoint, |made| made.checkpoint);
        let checkpoint = make(number).await?;
        order.next_checkpoint = order.next_checkpoint.max(CheckpointId(number.0 + 1));
        let made = || self.push(EventKind::Checkpointed(Checkpointed::from(&checkpoint)));
        let mut held = checkpoint.clone();
        held.meta.event_seq = Some(known.map_or_else(made, |made| made.seq));
        let replaced = self.writer.buffer.lock().unpersisted.replace(held);
        // The lock is released before the old values are freed, because that takes a while.
        drop(replaced);
        self.enqueue(&mut order, Commit::default());
        order.wait_accepted().await;
        Ok(checkpoint)
    }

    /// Reserves the checkpoint numbers up to `newest`, which were assigned to unpersisted
    /// checkpoints.
    pub async fn reserve_checkpoint_ids(&self, newest: Option<CheckpointId>) {
        let Some(newest) = newest else { return };
        let mut order = self.writer.queue.lock().await;
        order.next_checkpoint = order.next_checkpoint.max(CheckpointId(newest.0 + 1));
    }

    /// Sends the newest checkpoint to the store with the buffered events, if it is not persisted.
    pub async fn persist_checkpoint(&self) {
        let mut order = self.writer.queue.lock().await;
        order.wait_accepted().await;
        self.persist_checkpoint_in(&mut order).await;
    }

    async fn persist_checkpoint_in(&self, order: &mut CommitQueue) {
        let checkpoint = self.writer.buffer.lock().unpersisted.take();
        if checkpoint.is_some() {
            self.enqueue(order, Commit { checkpoint, ..Commit::default() });
            order.wait_accepted().await;
        }
    }

    /// Moves the buffered events into the queue. Returns true if there were any. The store receives
    /// the events when the caller waits for the queue. The function is not `async`, because the
    /// batch would enlarge the future of every task and call that waits.
    fn enqueue(&self, queue: &mut CommitQueue, commit: Commit) -> bool {
        let Commit { mut record, run, checkpoint, current, queue_condition, releases_lease } =
            commit;
        if let Some(record) = &mut record {
            queue.metadata_update.apply(record);
            queue.record = Some(record.clone());
        }
        let made = checkpoint.as_ref().map(|checkpoint| &checkpoint.meta);
        if let Some(made) = made {
            queue.next_checkpoint = queue.next_checkpoint.max(CheckpointId(made.id.0 + 1));
        }
        let persisted = made.filter(|meta| meta.namespace.is_root()).map(|meta| meta.id);
        let taken = self.writer.buffer.take(persisted, current);
        let TakenEvents { events, after_seq, base, bytes: event_bytes, memory } = taken;
        let batch = Batch {
            epoch: Some(self.writer.epoch),
            record,
            run,
            base,
            events,
            after_seq: Some(after_seq),
            checkpoint,
            current,
            queue_condition,
            releases_lease,
        };
        let nothing = batch.events.is_empty()
            && batch.record.is_none()
            && batch.run.is_none()
            && batch.checkpoint.is_none();
        if !nothing {
            queue.ahead_bytes += event_bytes;
            let LogWriter { states, thread, incarnation, .. } = self.writer.as_ref();
            let outgoing = OutgoingBatch {
                caller: self.caller,
                states: states.clone(),
                thread: thread.clone(),
                incarnation: incarnation.clone(),
                size: self.size.clone(),
                batch: Box::new(batch),
                memory,
            };
            queue.in_flight = Some(Box::pin(outgoing.send()));
        }
        !nothing
    }

    /// Flushes and waits until the log is durable.
    ///
    /// # Errors
    ///
    /// The error of the newest batch. This batch also fails if earlier events could not be written,
    /// because every batch continues from the newest event before it.
    pub async fn wait_durable(&self) -> Result<(), StoreError> {
        self.flush().await;
        let last = self.writer.queue.lock().await.last.clone();
        wait_ticket(last).await
    }

    /// Waits like [`Self::wait_durable`] after a superstep. The time counts for
    /// [`Self::store_us`].
    ///
    /// # Errors
    ///
    /// See [`Self::wait_durable`].
    pub(crate) async fn wait_superstep_durable(&self) -> Result<(), StoreError> {
        let waiting = Instant::now();
        let durable = self.wait_durable().await;
        let us = waiting.elapsed().as_micros() as u64;
        self.writer.store_us.fetch_add(us, Ordering::Relaxed);
        durable
    }

    /// Returns the time for which supersteps have waited for the store, in microseconds.
    pub(crate) fn store_us(&self) -> u64 {
        self.writer.store_us.load(Ordering::Relaxed)
    }
}

async fn wait_ticket(last: Option<Shared<Ticket>>) -> Result<(), StoreError> {
    match last {
        Some(ticket) => ticket.await,
        None => Ok(()),
    }
}
