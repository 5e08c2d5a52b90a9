//! The writer thread: takes the batches in the queue and commits them together.
//!
//! While one commit is written to the disk, the next batches collect in the queue, so the more runs
//! there are, the more batches share a flush (group commit). Batches that no caller awaits collect
//! for the commit delay. Every other change of the file goes through the same queue, so it sees
//! everything that was queued before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use redb::{Durability, WriteTransaction};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::store::{Batch, LeaseEpoch, RunRecord, StoreError};

use crate::commit_delay::FlushRequests;
use crate::disk::encode::EncodedBatch;
use crate::disk::intake::{Group, HEAD_LIMIT, Intake};
use crate::disk::leases::{LeaseTable, ThreadWrite};
use crate::disk::open;
use crate::disk::remains::Remains;
use crate::disk::snapshot::Snapshot;
use crate::disk::stage::Stage;
use crate::disk::table::{FORMAT, META};
use crate::error::{backend, redb_error};
use crate::file::guarded;
use crate::file::handle::{Handle, SharedFile};
use crate::file::kind::META_FORMAT;
use crate::lock::lock;
use crate::pending::PendingRuns;
use crate::recent_write::RecentWrite;
use crate::watch::WatchRegistry;

/// Capacity of the queue; further callers wait. Also the maximum number of batches in a commit:
/// groups of 512 came close to what the disk can do, larger ones only add latency.
pub(crate) const QUEUE_LIMIT: usize = 1024;

/// Bytes of log entries at which a commit group is closed, so that a few large values do not delay
/// the small ones behind them.
const GROUP_LIMIT_BYTES: usize = 8 * 1024 * 1024;

const COMMIT: &str = "commit";

const OP_CHECK_WRITABLE: &str = "verify that its file can be written";

/// Minimum delay between two attempts to reopen a file that failed.
const REOPEN_PAUSE: Duration = Duration::from_secs(1);

/// The delay is at least this multiple of the duration of an attempt, since each attempt reads the
/// whole file.
const REOPEN_SHARE: u32 = 10;

type Answer = oneshot::Sender<Result<(), StoreError>>;

/// A command to the writer.
pub(crate) enum Command {
    /// A write that is committed in a group.
    Append(Handed),
    /// A closure.
    Work(Work),
}

/// A queued write.
pub(crate) struct Handed {
    /// Number of the write, assigned by [`FlushRequests`].
    pub(crate) number: u64,
    pub(crate) thread: ThreadWrite,
    pub(crate) entry: Entry,
    pub(crate) answer: Answer,
}

/// The kind of a queued write.
pub(crate) enum Entry {
    /// See [`Store::append`](wattle_run::ports::Store::append).
    Batch(Box<QueuedBatch>),
    /// See [`Store::enqueue`](wattle_run::ports::Store::enqueue).
    Enqueue(Box<RunRecord>),
    /// See [`Store::dequeue`](wattle_run::ports::Store::dequeue).
    Dequeue(RunId, Option<Box<RunRecord>>),
}

impl Entry {
    /// Returns the lease that ends once the write is durable.
    fn released_lease(&self) -> Option<LeaseEpoch> {
        match self {
            Self::Batch(queued) => queued.batch.epoch.filter(|_| queued.batch.releases_lease),
            Self::Enqueue(_) | Self::Dequeue(..) => None,
        }
    }
}

/// A queued batch.
pub(crate) struct QueuedBatch {
    pub(crate) batch: Batch,
    /// The encoded batch, or why it cannot be stored. Staging takes it; a batch that is staged
    /// again is encoded again.
    pub(crate) encoded: Option<Result<EncodedBatch, String>>,
}

/// A closure that the writer runs between two commits.
pub(crate) type Work = Box<dyn FnOnce(&mut Writer) + Send>;

/// The state of the writer thread.
pub(crate) struct Writer {
    pub(crate) file: Arc<SharedFile>,
    pub(crate) intake: Intake,
    pub(crate) leases: Arc<LeaseTable>,
    pub(crate) watches: Arc<WatchRegistry>,
    pub(crate) pending: Arc<Mutex<PendingRuns>>,
    pub(crate) remains: Remains,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) flush_requests: Arc<FlushRequests>,
    /// How long batches that no caller awaits wait for others.
    pub(crate) commit_delay: Duration,
    /// The failure of the file, until the file can be written again.
    pub(crate) trouble: Option<Trouble>,
    /// Threads whose newest batch was not written, with the reason.
    pub(crate) lost: HashMap<ThreadId, StoreError>,
    /// The newest successful write.
    pub(crate) recent_write: RecentWrite,
}

/// A failure of the file.
pub(crate) struct Trouble {
    error: StoreError,
    since: Instant,
    next_attempt: Instant,
}

/// A write that was staged or refused.
pub(crate) struct Taken {
    pub(crate) handed: Handed,
    result: Result<u64, StoreError>,
}

/// A commit that failed.
pub(crate) struct Failed {
    pub(crate) error: StoreError,
    /// Whether nothing of the commit is in the file. Otherwise its outcome is unknown.
    is_unwritten: bool,
}

impl Writer {
    /// Runs until the last sender is dropped and the queue is empty.
    pub(crate) fn run(mut self) {
        let mut next = self.next();
        while let Some(command) = next.take() {
            match command {
                Command::Append(first) => next = self.commit_group(first),
                Command::Work(work) => work(&mut self),
            }
            if self.has_remains() {
                // `clear_some` logs its errors.
                drop(self.clear_some());
            }
            next = next.or_else(|| self.next());
        }
    }

    /// Returns the next command. Reclaims orphaned thread numbers while the queue is empty.
    fn next(&mut self) -> Option<Command> {
        while self.has_remains() {
            match self.commands.try_recv() {
                Ok(command) => return Some(command),
                Err(TryRecvError::Empty) => drop(self.clear_some()),
                Err(TryRecvError::Disconnected) => return None,
            }
        }
        self.commands.blocking_recv()
    }

    /// Commits a write together with those behind it in the queue, up to a command of another kind,
    /// which it returns.
    fn commit_group(&mut self, first: Handed) -> Option<Command> {
        if let Err(error) = self.heal() {
            // The ticket may have been dropped.
            let _ = first.answer.send(Err(error));
            return None;
        }
        let handle = self.file.handle();
        let mut group = Group::new(handle.clone());
        let (mut oldest, until) = (first.number, Instant::now() + self.commit_delay);
        let mut taken = vec![self.take(&mut group, first)];
        let mut other = None;
        while taken.len() < QUEUE_LIMIT && group.stage.log_bytes < GROUP_LIMIT_BYTES {
            match self.commands.try_recv() {
                Ok(Command::Append(handed)) => {
                    oldest = oldest.min(handed.number);
                    taken.push(self.take(&mut group, handed));
                }
                Ok(command) => {
                    other = Some(command);
                    break;
                }
                Err(TryRecvError::Empty) if self.rests(oldest, until) => {}
                Err(_) => break,
            }
        }
        let committed = self.refuse_failed().and_then(|()| commit(&handle, &group));
        // Dropped here, so that the file can be opened again.
        drop((handle, group));
        match committed {
            Ok(is_written) => self.answer_committed(taken, is_written),
            Err(Failed { error, is_unwritten: true }) => {
                tracing::warn!(
                    %error, batches = taken.len(),
                    "commit failed, its batches are committed one by one"
                );
                self.start_over(&error);
                self.commit_apart(taken);
            }
            Err(Failed { error, is_unwritten: false }) => {
                self.start_over(&error);
                self.lose(taken, &error);
            }
        }
        other
    }

    /// Parks the writer thread until `until` if no caller awaits a batch numbered `oldest` or
    /// higher. Returns `false` without parking if a caller waits, if orphaned thread numbers can be
    /// reclaimed, or if the time has passed. The thread may wake up early.
    fn rests(&self, oldest: u64, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        // The caller of a deletion waits until the frames are reclaimed.
        if left.is_zero() || self.has_remains() || self.flush_requests.is_requested(oldest) {
            return false;
        }
        thread::park_timeout(left);
        true
    }

    pub(crate) fn take(&mut self, group: &mut Group, mut handed: Handed) -> Taken {
        let thread = handed.thread.thread();
        let result = guarded(COMMIT, || match &mut handed.entry {
            Entry::Batch(queued) => self.stage(group, thread, queued),
            Entry::Enqueue(run) => self.enqueue(group, run),
            Entry::Dequeue(run, ended) => self.dequeue(group, thread, run, ended.as_deref()),
        });
        if let Err(error @ (StoreError::Backend { .. } | StoreError::Corrupt { .. })) = &result {
            self.file.note_failure(error);
        }
        Taken { handed, result }
    }

    /// Refuses the commit if the file failed at a read after the group was opened: redb accepts no
    /// more commits then.
    fn refuse_failed(&self) -> Result<(), Failed> {
        if self.file.has_failed() {
            return Err(Failed { error: failed_at_a_read(), is_unwritten: true });
        }
        Ok(())
    }

    fn stage(
        &mut self,
        group: &mut Group,
        thread: &ThreadId,
        QueuedBatch { batch, encoded }: &mut QueuedBatch,
    ) -> Result<u64, StoreError> {
        self.leases.with(|leases| leases.check_epoch(thread, batch.epoch))?;
        self.admit_turn(group, thread, batch)?;
        let encoded = encoded.take().unwrap_or_else(|| EncodedBatch::of(batch));
        let seq = match self.intake.take(group, thread, batch, encoded) {
            // The cause of the conflict is not another writer: an earlier batch of the thread was
            // not written.
            Err(StoreError::Conflict { .. }) if self.lost.contains_key(thread) => {
                return Err(self.lost[thread].clone());
            }
            taken => taken?,
        };
        self.lost.remove(thread);
        self.leases.with(|leases| leases.note_append(thread, batch.epoch));
        self.has_begun(group, batch);
        Ok(seq)
    }

    /// Completes the tickets of a group that was committed or had nothing to write.
    pub(crate) fn answer_committed(&mut self, taken: Vec<Taken>, is_written: bool) {
        if is_written {
            self.recent_write.record();
        }
        self.answer(taken, &Ok(()));
    }

    /// Completes the tickets of batches that were not written with the reason. Later batches that
    /// continue them are refused with the same reason.
    pub(crate) fn lose(&mut self, taken: Vec<Taken>, error: &StoreError) {
        tracing::error!(%error, batches = taken.len(), "checkpoint store: commit failed");
        if self.lost.len() >= HEAD_LIMIT {
            self.lost.clear();
        }
        let message = format!("an earlier batch of the thread was not written: {error}");
        for taken in taken.iter().filter(|taken| taken.result.is_ok()) {
            let thread = taken.handed.thread.thread().clone();
            self.lost.insert(thread, backend(COMMIT, &message));
        }
        self.answer(taken, &Err(error.clone()));
    }

    fn answer(&mut self, taken: Vec<Taken>, committed: &Result<(), StoreError>) {
        let mut newest = Vec::with_capacity(taken.len());
        let mut damaged = Vec::new();
        for Taken { handed: Handed { mut thread, entry, answer, .. }, result } in taken {
            let result = result.and_then(|seq| committed.clone().map(|()| seq));
            if result.is_ok()
                && let Some(epoch) = entry.released_lease()
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
                    damaged.push((thread, answer, error));
                    continue;
                }
                Err(error) => Err(error),
            };
            // The ticket may have been dropped.
            let _ = answer.send(result);
        }
        for (thread, seq) in newest {
            self.watches.publish(thread.thread(), seq);
        }
        for (thread, answer, error) in damaged {
            // Done before the error is sent, so that its receiver finds the thread set aside.
            self.put_aside(thread.thread());
            let _ = answer.send(Err(error));
        }
    }

    /// Clears the caches, since staged writes are not in the file. redb serves no more reads from a
    /// file that failed, so a read-only view replaces it until the file is open again.
    pub(crate) fn start_over(&mut self, error: &StoreError) {
        self.intake.forget_all();
        self.leases.set_failed(true);
        let now = Instant::now();
        self.trouble = Some(Trouble { error: error.clone(), since: now, next_attempt: now });
        // The next write reports a failure.
        if self.heal().is_err() {
            self.remains.tell(error);
            self.read_pending();
        }
    }

    /// Opens the file again if it failed and an attempt is due.
    pub(crate) fn heal(&mut self) -> Result<(), StoreError> {
        if self.file.take_failure() && self.trouble.is_none() {
            self.start_over(&failed_at_a_read());
        }
        let Some(trouble) = &mut self.trouble else {
            return Ok(());
        };
        let started = Instant::now();
        if started < trouble.next_attempt {
            return Err(trouble.error.clone());
        }
        // The file may still be writable, since the batch alone may have failed.
        let opened = probe_and_read_counters(&self.file).or_else(|_| {
            self.file.reopen()?;
            probe_and_read_counters(&self.file)
        });
        match opened {
            Ok((entry, threads)) => {
                let seconds = trouble.since.elapsed().as_secs();
                tracing::info!(seconds, "checkpoint store can be written again");
                self.trouble = None;
                self.leases.set_failed(false);
                self.recent_write.record();
                self.intake.start_over(entry + 1, threads);
                self.read_pending();
                Ok(())
            }
            Err(error) => {
                let pause = REOPEN_PAUSE.max(started.elapsed() * REOPEN_SHARE);
                trouble.next_attempt = Instant::now() + pause;
                tracing::warn!(
                    %error, reason = %trouble.error, pause_ms = pause.as_millis(),
                    "checkpoint store cannot be written, reopening it later; is the disk full?"
                );
                let refusal = Err(trouble.error.clone());
                if let Err(error) = self.file.read_only() {
                    tracing::error!(%error, "checkpoint store cannot be read");
                }
                refusal
            }
        }
    }

    /// Reads the pending runs again, since staged changes of them are not in the file.
    fn read_pending(&self) {
        match guarded("read", || Snapshot::newest(&self.file)?.pending_runs()) {
            Ok(read) => *lock(&self.pending) = read,
            Err(error) => tracing::error!(%error, "pending runs cannot be read"),
        }
    }

    /// Verifies that the file can be written.
    pub(crate) fn check_writable(&mut self) -> Result<(), StoreError> {
        self.heal()?;
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
                self.start_over(&error);
                // `start_over` may have opened the file again.
                self.heal()?;
            }
        }
        Ok(())
    }
}

/// Builds the error for a file that failed at a read.
fn failed_at_a_read() -> StoreError {
    backend("read", "its file failed at a read and has not been reopened yet")
}

/// Verifies that the file can be written. Returns the last entry of the log and the highest thread
/// number.
fn probe_and_read_counters(file: &SharedFile) -> Result<(u64, u64), StoreError> {
    let handle = file.handle();
    guarded(OP_CHECK_WRITABLE, || write_probe(&handle))?;
    open::read_counters(handle.writable()?)
}

/// Writes a value that the file has already, and flushes it.
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
pub(crate) fn commit(handle: &Handle, group: &Group) -> Result<bool, Failed> {
    if group.stage.heads.is_empty() && group.stage.pending.is_empty() {
        return Ok(false);
    }
    let transaction = guarded(COMMIT, || write(handle, &group.stage))
        .map_err(|error| Failed { error, is_unwritten: true })?;
    guarded(COMMIT, || transaction.commit().map_err(redb_error(COMMIT)))
        .map_err(|error| Failed { error, is_unwritten: false })?;
    Ok(true)
}

/// Adds the staged writes to a transaction.
fn write(handle: &Handle, stage: &Stage) -> Result<WriteTransaction, StoreError> {
    let mut transaction = handle.writable()?.begin_write().map_err(redb_error(COMMIT))?;
    transaction.set_durability(Durability::Immediate).map_err(redb_error(COMMIT))?;
    stage.write(&transaction)?;
    Ok(transaction)
}
