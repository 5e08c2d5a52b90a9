//! The one thread that writes: takes what waits in the queue and commits it together.
//!
//! While one commit is on its way to the disk, the next batches gather in the queue, so the more
//! runs there are, the more share a flush (group commit). Batches for which nobody waits gather for
//! as long as the commit delay. Whatever else touches the file, and the leases, takes its turn in
//! the same queue: it sees everything that was handed over before it.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use redb::{Database, Durability};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};
use wattle_graph::id::ThreadId;
use wattle_run::ports::store::{Batch, StoreError};

use crate::disk::intake::{Group, Intake};
use crate::disk::open;
use crate::disk::remains::Remains;
use crate::disk::source::Source;
use crate::error::while_trying;
use crate::lease::Leases;
use crate::urgency::Urgency;
use crate::watches::Watches;

/// Batches that may wait; a caller with one more waits itself. Also the most that share a commit:
/// groups of 512 came close to what the disk can do, larger ones only add latency.
pub(crate) const QUEUE_LIMIT: usize = 1024;

/// A commit is closed when its log entries have so many bytes, so that a few large values do not
/// hold back the small ones behind them.
const GROUP_LIMIT_BYTES: usize = 8 * 1024 * 1024;

const COMMIT: &str = "commit";

type Answer = oneshot::Sender<Result<(), StoreError>>;

/// What the writer is asked for.
pub(crate) enum Command {
    /// See [`Store::append`](wattle_run::ports::Store::append).
    Append(Handed),
    /// Anything else.
    Work(Work),
}

/// A batch as it was handed over.
pub(crate) struct Handed {
    /// Its number by [`Urgency`].
    pub(crate) number: u64,
    pub(crate) thread: ThreadId,
    pub(crate) batch: Box<Batch>,
    pub(crate) answer: Answer,
}

/// Something that the writer does between two commits.
pub(crate) type Work = Box<dyn FnOnce(&mut Writer) + Send>;

/// What the writer owns.
pub(crate) struct Writer {
    pub(crate) source: Arc<Source>,
    pub(crate) intake: Intake,
    pub(crate) leases: Leases,
    pub(crate) watches: Arc<Watches>,
    pub(crate) remains: Remains,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) urgency: Arc<Urgency>,
    /// How long batches gather for which nobody waits.
    pub(crate) commit_delay: Duration,
}

/// A batch that was staged or refused, with who waits for it.
struct Taken {
    thread: ThreadId,
    answer: Answer,
    result: Result<u64, StoreError>,
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
            self.remains.clear_some(&self.source);
            next = next.or_else(|| self.next());
        }
    }

    /// The next command. While there is none, what is left of deleted threads goes.
    fn next(&mut self) -> Option<Command> {
        while !self.remains.is_empty() {
            match self.commands.try_recv() {
                Ok(command) => return Some(command),
                Err(TryRecvError::Empty) => self.remains.clear_some(&self.source),
                Err(TryRecvError::Disconnected) => return None,
            }
        }
        self.commands.blocking_recv()
    }

    /// Commits a batch with all that wait behind it, up to a command of another kind, which it
    /// hands back.
    fn commit_group(&mut self, first: Handed) -> Option<Command> {
        let database = self.source.database();
        let mut group = Group::new(database.clone());
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
        let committed = commit(&database, &group);
        if let Err(error) = &committed {
            tracing::error!(%error, batches = taken.len(), "checkpoint store did not commit");
            self.start_over();
        }
        self.answer(taken, &committed);
        other
    }

    /// Rests while nobody waits for the batches from a number on, at the longest until a moment;
    /// false if there is no time for that. A rest may end early.
    fn rests(&self, oldest: u64, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        // A delete waits for what remains of a thread.
        if left.is_zero() || !self.remains.is_empty() || self.urgency.is_wanted(oldest) {
            return false;
        }
        thread::park_timeout(left);
        true
    }

    fn take(&mut self, group: &mut Group, handed: Handed) -> Taken {
        let Handed { thread, batch, answer, .. } = handed;
        let result = self.stage(group, &thread, &batch);
        Taken { thread, answer, result }
    }

    fn stage(
        &mut self,
        group: &mut Group,
        thread: &ThreadId,
        batch: &Batch,
    ) -> Result<u64, StoreError> {
        self.leases.admit(thread, batch.epoch)?;
        let seq = self.intake.take(group, thread, batch)?;
        self.leases.taken(thread, batch.epoch);
        Ok(seq)
    }

    fn answer(&self, taken: Vec<Taken>, committed: &Result<(), StoreError>) {
        let mut newest = Vec::with_capacity(taken.len());
        for Taken { thread, answer, result } in taken {
            let result = match (result, committed) {
                (Ok(seq), Ok(())) => {
                    newest.push((thread, seq));
                    Ok(())
                }
                (Ok(_), Err(error)) => Err(error.clone()),
                (Err(error), _) => Err(error),
            };
            // Nobody has to wait for a ticket.
            let _ = answer.send(result);
        }
        for (thread, seq) in newest {
            self.watches.advance(&thread, seq);
        }
    }

    /// What was staged is not in the file, so everything known about it is void.
    pub(crate) fn start_over(&mut self) {
        match open::ends(&self.source.database()) {
            Ok((entry, threads)) => self.intake.start_over(entry + 1, threads),
            Err(error) => {
                tracing::error!(%error, "checkpoint store cannot be read; restart wattle");
                self.intake.forget_all();
            }
        }
    }
}

fn commit(database: &Database, group: &Group) -> Result<(), StoreError> {
    if group.stage.heads.is_empty() {
        return Ok(());
    }
    let mut transaction = database.begin_write().map_err(while_trying(COMMIT))?;
    transaction.set_durability(Durability::Immediate).map_err(while_trying(COMMIT))?;
    group.stage.write(&transaction)?;
    transaction.commit().map_err(while_trying(COMMIT))
}
