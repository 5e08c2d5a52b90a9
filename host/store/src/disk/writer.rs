//! The writer thread: takes the batches in the queue and commits them together.
//!
//! While one commit is written to the disk, the next batches collect in the queue, so the more runs
//! there are, the more batches share a flush (group commit). Batches that no caller awaits collect
//! for the commit delay. Every other change of the file goes through the same queue, so the change
//! sees everything that was queued before it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use redb::{Durability, WriteTransaction};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};
use wattle_graph::id::{AppName, GraphName, RunId, ThreadId};
use wattle_run::ports::store::{Batch, LeaseEpoch, RunRecord, StoreError};

use crate::commit_delay::FlushRequests;
use crate::disk::changed_keys::ChangedKeys;
use crate::disk::commit_group::CommitGroup;
use crate::disk::encode::EncodedBatch;
use crate::disk::leases::{LeaseTable, ThreadWrite};
use crate::disk::open;
use crate::disk::orphans::Orphans;
use crate::disk::snapshot::Snapshot;
use crate::disk::stager::{MAX_CACHED_THREADS, Stager};
use crate::disk::table::{FORMAT, META};
use crate::disk::write_set::WriteSet;
use crate::error::{backend, redb_error};
use crate::file::guarded;
use crate::file::handle::{Handle, SharedFile};
use crate::file::kind::META_FORMAT;
use crate::lock::lock;
use crate::pending::PendingRuns;
use crate::recent_write::RecentWrite;
use crate::watch::WatchRegistry;

/// Capacity of the queue. Callers wait while the queue is full. Also the maximum number of batches
/// in a commit: in measurements, groups of 512 batches came close to the throughput of the disk,
/// and larger groups only added latency.
pub(crate) const QUEUE_CAPACITY: usize = 1024;

/// Bytes of log entries at which a commit group is closed, so that a few large values do not delay
/// the small values behind them.
const MAX_GROUP_BYTES: usize = 8 * 1024 * 1024;

const OP_COMMIT: &str = "commit";

const OP_CHECK_WRITABLE: &str = "verify that its file can be written";

/// Minimum delay between two attempts to reopen a file that failed.
const MIN_REOPEN_DELAY: Duration = Duration::from_secs(1);

/// Minimum ratio of the delay before an attempt to reopen a file to the duration of the previous
/// attempt. Each attempt reads the whole file.
const REOPEN_DELAY_FACTOR: u32 = 10;

type ReplySender = oneshot::Sender<Result<(), StoreError>>;

/// A command to the writer thread.
pub(crate) enum Command {
    /// A write that shares a commit with the other writes of its commit group.
    Append(QueuedWrite),
    /// A closure that the writer thread runs between two commits.
    Run(WriterTask),
}

/// A queued write.
pub(crate) struct QueuedWrite {
    /// Number of the write, assigned by [`FlushRequests`].
    pub(crate) number: u64,
    pub(crate) thread: ThreadWrite,
    pub(crate) op: WriteOp,
    pub(crate) reply: ReplySender,
}

/// The kind of a queued write.
pub(crate) enum WriteOp {
    /// See [`Store::append`](wattle_run::ports::Store::append).
    Batch(Box<QueuedBatch>),
    /// See [`Store::enqueue`](wattle_run::ports::Store::enqueue).
    Enqueue(Box<RunRecord>, Option<(AppName, GraphName)>),
    /// See [`Store::dequeue`](wattle_run::ports::Store::dequeue).
    Dequeue(RunId, Option<Box<RunRecord>>),
}

impl WriteOp {
    /// Returns the lease that ends once the write is durable.
    fn released_lease(&self) -> Option<LeaseEpoch> {
        match self {
            Self::Batch(queued) => queued.batch.epoch.filter(|_| queued.batch.releases_lease),
            Self::Enqueue(..) | Self::Dequeue(..) => None,
        }
    }
}

/// A queued batch.
pub(crate) struct QueuedBatch {
    pub(crate) batch: Batch,
    /// The encoded batch, or why it cannot be stored. Staging sets this field to `None`. A batch
    /// that is staged again is encoded again.
    pub(crate) encoded: Option<Result<EncodedBatch, String>>,
}

/// A closure that the writer runs between two commits.
pub(crate) type WriterTask = Box<dyn FnOnce(&mut Writer) + Send>;

/// The state of the writer thread.
pub(crate) struct Writer {
    pub(crate) file: Arc<SharedFile>,
    pub(crate) stager: Stager,
    pub(crate) leases: Arc<LeaseTable>,
    pub(crate) watches: Arc<WatchRegistry>,
    pub(crate) pending: Arc<Mutex<PendingRuns>>,
    pub(crate) orphans: Orphans,
    /// The keys that commits change, for lists.
    pub(crate) changed_keys: Arc<ChangedKeys>,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) flush_requests: Arc<FlushRequests>,
    /// How long batches that no caller awaits wait for other batches.
    pub(crate) commit_delay: Duration,
    /// The failure of the file, until the file can be written again.
    pub(crate) file_failure: Option<FileFailure>,
    /// Threads whose newest batch was not written, with the reason.
    pub(crate) failed_threads: HashMap<ThreadId, StoreError>,
    /// The newest successful write.
    pub(crate) recent_write: RecentWrite,
}

/// A failure of the file.
pub(crate) struct FileFailure {
    error: StoreError,
    since: Instant,
    next_attempt: Instant,
}

/// A write of the open commit group, which was staged or refused.
pub(crate) struct GroupedWrite {
    pub(crate) queued_write: QueuedWrite,
    result: Result<u64, StoreError>,
}

/// A commit that failed.
pub(crate) struct CommitError {
    pub(crate) error: StoreError,
    /// Whether nothing of the commit is in the file. Otherwise the outcome of the commit is
    /// unknown.
    is_unwritten: bool,
}

impl Writer {
    /// Runs until the last sender is dropped and the queue is empty.
    pub(crate) fn run(mut self) {
        let mut next = self.next();
        while let Some(command) = next.take() {
            match command {
                Command::Append(first) => next = self.commit_group(first),
                Command::Run(task) => task(&mut self),
            }
            if self.has_due_orphans() {
                // `reclaim_some` logs its errors.
                drop(self.reclaim_some());
            }
            next = next.or_else(|| self.next());
        }
    }

    /// Returns the next command. Reclaims orphaned thread numbers while the queue is empty.
    fn next(&mut self) -> Option<Command> {
        while self.has_due_orphans() {
            match self.commands.try_recv() {
                Ok(command) => return Some(command),
                Err(TryRecvError::Empty) => drop(self.reclaim_some()),
                Err(TryRecvError::Disconnected) => return None,
            }
        }
        self.commands.blocking_recv()
    }

    /// Commits a write together with the writes after it in the queue. Stops at a command of
    /// another kind and returns that command.
    fn commit_group(&mut self, first: QueuedWrite) -> Option<Command> {
        if let Err(error) = self.reopen_if_failed() {
            if matches!(first.op, WriteOp::Batch(_)) {
                self.note_unwritten(first.thread.thread(), &error);
            }
            // The ticket may have been dropped.
            let _ = first.reply.send(Err(error));
            return None;
        }
        let handle = self.file.handle();
        let mut group = CommitGroup::new(handle.clone());
        let (mut oldest, until) = (first.number, Instant::now() + self.commit_delay);
        let mut grouped = vec![self.add_to_group(&mut group, first)];
        let mut other = None;
        while grouped.len() < QUEUE_CAPACITY && group.write_set.log_bytes < MAX_GROUP_BYTES {
            match self.commands.try_recv() {
                Ok(Command::Append(queued_write)) => {
                    oldest = oldest.min(queued_write.number);
                    grouped.push(self.add_to_group(&mut group, queued_write));
                }
                Ok(command) => {
                    other = Some(command);
                    break;
                }
                Err(TryRecvError::Empty) if self.park_for_more(oldest, until) => {}
                Err(_) => break,
            }
        }
        let committed =
            self.ensure_not_failed().and_then(|()| commit(&handle, &group, &self.changed_keys));
        // The file can be reopened only after the handle and the group are dropped.
        drop((handle, group));
        match committed {
            Ok(is_written) => self.complete_committed(grouped, is_written),
            Err(CommitError { error, is_unwritten: true }) => {
                tracing::warn!(
                    %error, batches = grouped.len(),
                    "commit failed, committing its batches one by one"
                );
                self.reset_after_failure(&error);
                self.commit_each(grouped);
            }
            Err(CommitError { error, is_unwritten: false }) => {
                self.reset_after_failure(&error);
                self.fail_group(grouped, &error);
            }
        }
        other
    }

    /// Parks the writer thread until `until` if no caller awaits a batch numbered `oldest` or
    /// higher. Returns `false` without parking if a caller waits, if orphaned thread numbers can be
    /// reclaimed, or if the time has passed. The thread may wake up early.
    fn park_for_more(&self, oldest: u64, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        // The caller of a deletion waits until the frames are reclaimed.
        if left.is_zero() || self.has_due_orphans() || self.flush_requests.is_requested(oldest) {
            return false;
        }
        thread::park_timeout(left);
        true
    }

    pub(crate) fn add_to_group(
        &mut self,
        group: &mut CommitGroup,
        mut queued_write: QueuedWrite,
    ) -> GroupedWrite {
        let thread = queued_write.thread.thread();
        let result = guarded(OP_COMMIT, || match &mut queued_write.op {
            WriteOp::Batch(queued) => self.stage_batch(group, thread, queued),
            WriteOp::Enqueue(run, requested) => self.enqueue(group, run, requested.as_ref()),
            WriteOp::Dequeue(run, ended) => self.dequeue(group, thread, run, ended.as_deref()),
        });
        if let Err(error @ (StoreError::Backend { .. } | StoreError::Corrupt { .. })) = &result {
            self.file.note_failure(error);
        }
        GroupedWrite { queued_write, result }
    }

    /// Refuses the commit if a read failed with a file error after the group was opened: redb then
    /// accepts no more commits.
    fn ensure_not_failed(&self) -> Result<(), CommitError> {
        if self.file.has_failed() {
            return Err(CommitError { error: read_failure_error(), is_unwritten: true });
        }
        Ok(())
    }

    fn stage_batch(
        &mut self,
        group: &mut CommitGroup,
        thread: &ThreadId,
        QueuedBatch { batch, encoded }: &mut QueuedBatch,
    ) -> Result<u64, StoreError> {
        self.leases.with(|leases| leases.check_epoch(thread, batch.epoch))?;
        self.check_queue_condition(group, thread, batch)?;
        let encoded = encoded.take().unwrap_or_else(|| EncodedBatch::of(thread, batch));
        let seq = match self.stager.stage_batch(group, thread, batch, encoded) {
            // The cause of the conflict is not another writer: an earlier batch of the thread was
            // not written.
            Err(StoreError::Conflict { .. }) if self.failed_threads.contains_key(thread) => {
                return Err(self.failed_threads[thread].clone());
            }
            staged => staged?,
        };
        self.failed_threads.remove(thread);
        self.leases.with(|leases| leases.note_append(thread, batch.epoch));
        self.remove_started(group, batch);
        Ok(seq)
    }

    /// Completes the tickets of a group that was committed or had nothing to write.
    pub(crate) fn complete_committed(&mut self, grouped: Vec<GroupedWrite>, is_written: bool) {
        if is_written {
            self.recent_write.record();
        }
        self.complete_tickets(grouped, &Ok(()));
    }

    /// Records that the newest batch of a thread was not written. Later batches that continue this
    /// batch fail with the same reason.
    fn note_unwritten(&mut self, thread: &ThreadId, error: &StoreError) {
        if self.failed_threads.len() >= MAX_CACHED_THREADS {
            self.failed_threads.clear();
        }
        let message = format!("an earlier batch of the thread was not written: {error}");
        self.failed_threads.insert(thread.clone(), backend(OP_COMMIT, message));
    }

    /// Fails the tickets of batches that were not written.
    pub(crate) fn fail_group(&mut self, grouped: Vec<GroupedWrite>, error: &StoreError) {
        tracing::error!(%error, batches = grouped.len(), "checkpoint store: commit failed");
        for grouped in grouped.iter().filter(|grouped| grouped.result.is_ok()) {
            self.note_unwritten(grouped.queued_write.thread.thread(), error);
        }
        self.complete_tickets(grouped, &Err(error.clone()));
    }

    fn complete_tickets(&mut self, grouped: Vec<GroupedWrite>, committed: &Result<(), StoreError>) {
        let mut newest = Vec::with_capacity(grouped.len());
        let mut damaged = Vec::new();
        for GroupedWrite { queued_write: QueuedWrite { mut thread, op, reply, .. }, result } in
            grouped
        {
            let result = result.and_then(|seq| committed.clone().map(|()| seq));
            if result.is_ok()
                && let Some(epoch) = op.released_lease()
            {
                self.leases.with(|leases| leases.release(thread.thread(), epoch));
            }
            thread.end();
            let result = match result {
                Ok(seq) => {
                    newest.push((thread, seq));
                    Ok(())
                }
                Err(error @ StoreError::Corrupt { .. }) => {
                    damaged.push((thread, reply, error));
                    continue;
                }
                Err(error) => Err(error),
            };
            // The ticket may have been dropped.
            let _ = reply.send(result);
        }
        for (thread, seq) in newest {
            self.watches.publish(thread.thread(), seq);
        }
        for (thread, reply, error) in damaged {
            // The thread is set aside before the error is sent, so that the receiver of the error
            // finds it set aside.
            self.set_aside_if_damaged(thread.thread());
            let _ = reply.send(Err(error));
        }
    }

    /// Clears the caches after a failed commit, since staged writes are not in the file. redb
    /// serves no more reads from a file that failed, so a read-only view replaces it until the file
    /// is open again.
    pub(crate) fn reset_after_failure(&mut self, error: &StoreError) {
        self.stager.clear_cache();
        self.changed_keys.suspend();
        self.leases.set_failed(true);
        let now = Instant::now();
        self.file_failure =
            Some(FileFailure { error: error.clone(), since: now, next_attempt: now });
        // If the file cannot be reopened, the next write returns the error.
        if self.reopen_if_failed().is_err() {
            self.orphans.fail_waiters(error);
            self.reload_pending();
        }
    }

    /// Reopens the file if it failed and an attempt is due.
    pub(crate) fn reopen_if_failed(&mut self) -> Result<(), StoreError> {
        if self.file.take_failure() && self.file_failure.is_none() {
            self.reset_after_failure(&read_failure_error());
        }
        let Some(failure) = &mut self.file_failure else {
            return Ok(());
        };
        let started = Instant::now();
        if started < failure.next_attempt {
            return Err(failure.error.clone());
        }
        // The file may still be writable, since the batch alone may have failed.
        let opened = probe_and_read_counters(&self.file).or_else(|_| {
            self.file.reopen()?;
            probe_and_read_counters(&self.file)
        });
        match opened {
            Ok((last_entry, last_thread_no)) => {
                let seconds = failure.since.elapsed().as_secs();
                tracing::info!(seconds, "checkpoint store can be written again");
                self.file_failure = None;
                self.changed_keys.resume();
                self.leases.set_failed(false);
                self.recent_write.record();
                self.stager.reset(last_entry + 1, last_thread_no);
                self.reload_pending();
                Ok(())
            }
            Err(error) => {
                let delay = MIN_REOPEN_DELAY.max(started.elapsed() * REOPEN_DELAY_FACTOR);
                failure.next_attempt = Instant::now() + delay;
                tracing::warn!(
                    %error, reason = %failure.error, pause_ms = delay.as_millis(),
                    "checkpoint store cannot be written, reopening it later; is the disk full?"
                );
                let refusal = Err(failure.error.clone());
                if let Err(error) = self.file.read_only() {
                    tracing::error!(%error, "checkpoint store cannot be read");
                }
                refusal
            }
        }
    }

    /// Reads the pending runs from the file again, since staged changes of pending runs are not in
    /// the file.
    fn reload_pending(&self) {
        match guarded("read", || Snapshot::newest(&self.file)?.pending_runs()) {
            Ok(read) => *lock(&self.pending) = read,
            Err(error) => tracing::error!(%error, "pending runs cannot be read"),
        }
    }

    /// Verifies that the file can be written.
    pub(crate) fn check_writable(&mut self) -> Result<(), StoreError> {
        self.reopen_if_failed()?;
        if self.recent_write.is_recent() {
            return Ok(());
        }
        let handle = self.file.handle();
        let probed = guarded(OP_CHECK_WRITABLE, || write_probe(&handle));
        drop(handle);
        match probed {
            Ok(()) => self.recent_write.record(),
            Err(error) => {
                tracing::error!(%error, "checkpoint store cannot be written");
                self.reset_after_failure(&error);
                // `reset_after_failure` may have reopened the file.
                self.reopen_if_failed()?;
            }
        }
        Ok(())
    }
}

/// Builds the error for a file that failed at a read.
fn read_failure_error() -> StoreError {
    backend("read", "an earlier read of its file failed, and the file has not been reopened yet")
}

/// Verifies that the file can be written. Returns the number of the last log entry and the highest
/// thread number.
fn probe_and_read_counters(file: &SharedFile) -> Result<(u64, u64), StoreError> {
    let handle = file.handle();
    guarded(OP_CHECK_WRITABLE, || write_probe(&handle))?;
    open::read_counters(handle.writable()?)
}

/// Writes a value that the file already contains, and flushes the file.
fn write_probe(handle: &Handle) -> Result<(), StoreError> {
    let mut transaction =
        handle.writable()?.begin_write().map_err(redb_error(OP_CHECK_WRITABLE))?;
    transaction.set_durability(Durability::Immediate).map_err(redb_error(OP_CHECK_WRITABLE))?;
    let write = || -> Result<(), redb::Error> {
        transaction.open_table(META)?.insert(META_FORMAT, FORMAT)?;
        Ok(())
    };
    write().map_err(redb_error(OP_CHECK_WRITABLE))?;
    transaction.commit().map_err(redb_error(OP_CHECK_WRITABLE))
}

/// Commits the staged writes. Returns `false` if there are none.
pub(crate) fn commit(
    handle: &Handle,
    group: &CommitGroup,
    changed_keys: &ChangedKeys,
) -> Result<bool, CommitError> {
    if group.write_set.heads.is_empty() && group.write_set.pending.is_empty() {
        return Ok(false);
    }
    let _open = changed_keys.begin(&group.write_set);
    let transaction = guarded(OP_COMMIT, || write(handle, &group.write_set))
        .map_err(|error| CommitError { error, is_unwritten: true })?;
    guarded(OP_COMMIT, || transaction.commit().map_err(redb_error(OP_COMMIT)))
        .map_err(|error| CommitError { error, is_unwritten: false })?;
    Ok(true)
}

/// Adds the staged writes to a transaction.
fn write(handle: &Handle, write_set: &WriteSet) -> Result<WriteTransaction, StoreError> {
    let mut transaction = handle.writable()?.begin_write().map_err(redb_error(OP_COMMIT))?;
    transaction.set_durability(Durability::Immediate).map_err(redb_error(OP_COMMIT))?;
    write_set.write(&transaction)?;
    Ok(transaction)
}
