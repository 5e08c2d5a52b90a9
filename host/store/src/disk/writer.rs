//! The one thread that writes: takes what waits in the queue and commits it together.
//!
//! While one commit is on its way to the disk, the next batches gather in the queue, so the more
//! runs there are, the more share a flush (group commit). Batches for which nobody waits gather for
//! as long as the commit delay. Whatever else touches the file, and the leases, takes its turn in
//! the same queue: it sees everything that was handed over before it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use redb::{Durability, WriteTransaction};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::store::{Batch, RunRecord, StoreError};

use crate::disk::intake::{Group, HEAD_LIMIT, Intake};
use crate::disk::open;
use crate::disk::remains::Remains;
use crate::disk::snapshot::Snapshot;
use crate::disk::stage::Stage;
use crate::disk::table::{FACT_FORMAT, FACTS, FORMAT};
use crate::error::{backend, while_trying};
use crate::file::guarded;
use crate::file::handle::{Handle, Source};
use crate::lease::Leases;
use crate::lock::lock;
use crate::pending::Pending;
use crate::proof::Proof;
use crate::urgency::Urgency;
use crate::watches::Watches;

/// Batches that may wait; a caller with one more waits itself. Also the most that share a commit:
/// groups of 512 came close to what the disk can do, larger ones only add latency.
pub(crate) const QUEUE_LIMIT: usize = 1024;

/// A commit is closed when its log entries have so many bytes, so that a few large values do not
/// hold back the small ones behind them.
const GROUP_LIMIT_BYTES: usize = 8 * 1024 * 1024;

const COMMIT: &str = "commit";

const PROVE: &str = "prove that it can be written";

/// Shortest pause between two attempts to open a file again that failed.
const REOPEN_PAUSE: Duration = Duration::from_secs(1);

/// The pause is at least so many times as long as an attempt takes: each reads the whole file.
const REOPEN_SHARE: u32 = 10;

type Answer = oneshot::Sender<Result<(), StoreError>>;

/// What the writer is asked for.
pub(crate) enum Command {
    /// Something to be committed.
    Append(Handed),
    /// Anything else.
    Work(Work),
}

/// Something to be committed as it was handed over.
pub(crate) struct Handed {
    /// Its number by [`Urgency`].
    pub(crate) number: u64,
    pub(crate) thread: ThreadId,
    pub(crate) entry: Entry,
    pub(crate) answer: Answer,
}

/// What is to be committed.
pub(crate) enum Entry {
    /// See [`Store::append`](wattle_run::ports::Store::append).
    Batch(Box<Batch>),
    /// See [`Store::enqueue`](wattle_run::ports::Store::enqueue).
    Enqueue(Box<RunRecord>),
    /// See [`Store::dequeue`](wattle_run::ports::Store::dequeue).
    Dequeue(RunId, Option<Box<RunRecord>>),
}

/// Something that the writer does between two commits.
pub(crate) type Work = Box<dyn FnOnce(&mut Writer) + Send>;

/// What the writer owns.
pub(crate) struct Writer {
    pub(crate) source: Arc<Source>,
    pub(crate) intake: Intake,
    pub(crate) leases: Leases,
    pub(crate) watches: Arc<Watches>,
    pub(crate) pending: Arc<Mutex<Pending>>,
    pub(crate) remains: Remains,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) urgency: Arc<Urgency>,
    /// How long batches gather for which nobody waits.
    pub(crate) commit_delay: Duration,
    /// Why nothing can be written now.
    pub(crate) trouble: Option<Trouble>,
    /// Threads whose newest batch was not written, with the reason.
    pub(crate) lost: HashMap<ThreadId, StoreError>,
    /// The newest commit.
    pub(crate) proof: Proof,
}

/// A file that failed.
pub(crate) struct Trouble {
    error: StoreError,
    since: Instant,
    next_attempt: Instant,
}

/// A batch that was staged or refused, with who waits for it.
pub(crate) struct Taken {
    pub(crate) handed: Handed,
    result: Result<u64, StoreError>,
}

/// A commit that failed.
pub(crate) struct Failed {
    pub(crate) error: StoreError,
    /// Whether nothing of it is in the file. Otherwise nobody knows.
    is_unwritten: bool,
}

impl Writer {
    /// Serves until the last sender is gone and the queue is empty.
    pub(crate) fn run(mut self) {
        let mut next = self.next();
        while let Some(command) = next.take() {
            match command {
                Command::Append(first) => next = self.commit_group(first),
                Command::Work(work) => work(&mut self),
            }
            if self.has_remains() {
                // What went wrong is in the log.
                drop(self.clear_some());
            }
            next = next.or_else(|| self.next());
        }
    }

    /// The next command. While there is none, what is left of deleted threads goes.
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

    /// Commits a batch with all that wait behind it, up to a command of another kind, which it
    /// hands back.
    fn commit_group(&mut self, first: Handed) -> Option<Command> {
        if let Err(error) = self.heal() {
            // Nobody has to wait for a ticket.
            let _ = first.answer.send(Err(error));
            return None;
        }
        let handle = self.source.handle();
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
        // Held no longer, so that the file can be opened again.
        drop((handle, group));
        match committed {
            Ok(is_written) => self.answer_committed(taken, is_written),
            Err(Failed { error, is_unwritten: true }) => {
                tracing::warn!(
                    %error, batches = taken.len(),
                    "a commit failed: its batches are committed one by one"
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

    /// Rests while nobody waits for the batches from a number on, at the longest until a moment;
    /// false if there is no time for that. A rest may end early.
    fn rests(&self, oldest: u64, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        // A delete waits for what remains of a thread.
        if left.is_zero() || self.has_remains() || self.urgency.is_wanted(oldest) {
            return false;
        }
        thread::park_timeout(left);
        true
    }

    pub(crate) fn take(&mut self, group: &mut Group, handed: Handed) -> Taken {
        let thread = &handed.thread;
        let result = guarded(COMMIT, || match &handed.entry {
            Entry::Batch(batch) => self.stage(group, thread, batch),
            Entry::Enqueue(run) => self.enqueue(group, run),
            Entry::Dequeue(run, ended) => self.dequeue(group, thread, run, ended.as_deref()),
        });
        if let Err(error @ (StoreError::Backend { .. } | StoreError::Corrupt { .. })) = &result {
            self.source.note_failure(error);
        }
        Taken { handed, result }
    }

    /// Refuses to commit what was staged while the file failed at a read: redb takes nothing more.
    fn refuse_failed(&self) -> Result<(), Failed> {
        if self.source.has_failed() {
            return Err(Failed { error: failed_at_a_read(), is_unwritten: true });
        }
        Ok(())
    }

    fn stage(
        &mut self,
        group: &mut Group,
        thread: &ThreadId,
        batch: &Batch,
    ) -> Result<u64, StoreError> {
        self.leases.admit(thread, batch.epoch)?;
        self.admit_turn(group, thread, batch)?;
        let seq = match self.intake.take(group, thread, batch) {
            // Nobody else wrote: what the batch goes on from was refused.
            Err(StoreError::Conflict { .. }) if self.lost.contains_key(thread) => {
                return Err(self.lost[thread].clone());
            }
            taken => taken?,
        };
        self.lost.remove(thread);
        self.leases.taken(thread, batch.epoch);
        self.has_begun(group, batch);
        Ok(seq)
    }

    /// Answers batches after a commit, which wrote something or had nothing to write.
    pub(crate) fn answer_committed(&mut self, taken: Vec<Taken>, is_written: bool) {
        if is_written {
            self.proof.renew();
        }
        self.answer(taken, &Ok(()));
    }

    /// Answers batches that were not written with the reason. Batches which go on from them are
    /// refused with it as well.
    pub(crate) fn lose(&mut self, taken: Vec<Taken>, error: &StoreError) {
        tracing::error!(%error, batches = taken.len(), "checkpoint store did not commit");
        if self.lost.len() >= HEAD_LIMIT {
            self.lost.clear();
        }
        let message = format!("an earlier batch of the thread was not written: {error}");
        for taken in taken.iter().filter(|taken| taken.result.is_ok()) {
            self.lost.insert(taken.handed.thread.clone(), backend(COMMIT, &message));
        }
        self.answer(taken, &Err(error.clone()));
    }

    fn answer(&mut self, taken: Vec<Taken>, committed: &Result<(), StoreError>) {
        let mut newest = Vec::with_capacity(taken.len());
        let mut damaged = Vec::new();
        for Taken { handed: Handed { thread, answer, .. }, result } in taken {
            let result = match result.and_then(|seq| committed.clone().map(|()| seq)) {
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
            // Nobody has to wait for a ticket.
            let _ = answer.send(result);
        }
        for (thread, seq) in newest {
            self.watches.advance(&thread, seq);
        }
        for (thread, answer, error) in damaged {
            // Before the error is sent, so that its receiver finds the thread set aside.
            self.put_aside(&thread);
            let _ = answer.send(Err(error));
        }
    }

    /// What was staged is not in the file, so everything known about it is void. redb answers
    /// nothing more from a file that failed, so it is read in another way until it is open again.
    pub(crate) fn start_over(&mut self, error: &StoreError) {
        self.intake.forget_all();
        let now = Instant::now();
        self.trouble = Some(Trouble { error: error.clone(), since: now, next_attempt: now });
        // The next write reports whether that helped.
        if self.heal().is_err() {
            self.remains.tell(error);
            self.read_pending();
        }
    }

    /// Opens the file again if it failed and it is time for an attempt.
    pub(crate) fn heal(&mut self) -> Result<(), StoreError> {
        if self.source.take_failure() && self.trouble.is_none() {
            self.start_over(&failed_at_a_read());
        }
        let Some(trouble) = &mut self.trouble else {
            return Ok(());
        };
        let started = Instant::now();
        if started < trouble.next_attempt {
            return Err(trouble.error.clone());
        }
        // What failed may have been the batch alone.
        let opened = proved_ends(&self.source).or_else(|_| {
            self.source.reopen()?;
            proved_ends(&self.source)
        });
        match opened {
            Ok((entry, threads)) => {
                let seconds = trouble.since.elapsed().as_secs();
                tracing::info!(seconds, "checkpoint store can be written again");
                self.trouble = None;
                self.proof.renew();
                self.intake.start_over(entry + 1, threads);
                self.read_pending();
                Ok(())
            }
            Err(error) => {
                let pause = REOPEN_PAUSE.max(started.elapsed() * REOPEN_SHARE);
                trouble.next_attempt = Instant::now() + pause;
                tracing::warn!(
                    %error, reason = %trouble.error, pause_ms = pause.as_millis(),
                    "checkpoint store cannot be written and is opened again later: is the disk full?"
                );
                let refusal = Err(trouble.error.clone());
                if let Err(error) = self.source.read_only() {
                    tracing::error!(%error, "checkpoint store cannot be read");
                }
                refusal
            }
        }
    }

    /// What was staged of pending runs is not in the file.
    fn read_pending(&self) {
        match guarded("read", || Snapshot::newest(&self.source)?.pending_runs()) {
            Ok(read) => *lock(&self.pending) = read,
            Err(error) => tracing::error!(%error, "pending runs cannot be read"),
        }
    }

    /// Shows that the file can be written.
    pub(crate) fn prove(&mut self) -> Result<(), StoreError> {
        self.heal()?;
        if self.proof.holds() {
            return Ok(());
        }
        let handle = self.source.handle();
        let proved = guarded(PROVE, || prove(&handle));
        drop(handle);
        match proved {
            Ok(()) => self.proof.renew(),
            Err(error) => {
                tracing::error!(%error, "checkpoint store cannot be written");
                self.start_over(&error);
                // It may have been opened again at once.
                self.heal()?;
            }
        }
        Ok(())
    }
}

/// Why nothing can be written after a read.
fn failed_at_a_read() -> StoreError {
    backend("read", "its file failed and is opened again")
}

/// The last entry of the log and the highest thread number of a file that can be written.
fn proved_ends(source: &Source) -> Result<(u64, u64), StoreError> {
    let handle = source.handle();
    guarded(PROVE, || prove(&handle))?;
    open::ends(handle.writing()?)
}

/// Writes what is in the file already, and waits until it is on the disk.
fn prove(handle: &Handle) -> Result<(), StoreError> {
    let mut transaction = handle.writing()?.begin_write().map_err(while_trying(PROVE))?;
    transaction.set_durability(Durability::Immediate).map_err(while_trying(PROVE))?;
    let write = || -> Result<(), redb::Error> {
        transaction.open_table(FACTS)?.insert(FACT_FORMAT, FORMAT)?;
        Ok(())
    };
    write().map_err(while_trying(PROVE))?;
    transaction.commit().map_err(while_trying(PROVE))
}

/// Commits what was staged; answers with whether that was anything.
pub(crate) fn commit(handle: &Handle, group: &Group) -> Result<bool, Failed> {
    if group.stage.heads.is_empty() && group.stage.pending.is_empty() {
        return Ok(false);
    }
    let transaction = guarded(COMMIT, || write(handle, &group.stage))
        .map_err(|error| Failed { error, is_unwritten: true })?;
    guarded(COMMIT, || transaction.commit().map_err(while_trying(COMMIT)))
        .map_err(|error| Failed { error, is_unwritten: false })?;
    Ok(true)
}

/// Writes what was staged into a transaction.
fn write(handle: &Handle, stage: &Stage) -> Result<WriteTransaction, StoreError> {
    let mut transaction = handle.writing()?.begin_write().map_err(while_trying(COMMIT))?;
    transaction.set_durability(Durability::Immediate).map_err(while_trying(COMMIT))?;
    stage.write(&transaction)?;
    Ok(transaction)
}
