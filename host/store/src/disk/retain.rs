//! Rewrites of threads: prunes, deletions of runs, copies.
//!
//! A blocking thread writes the kept frames under a new thread number, in parts that the writer
//! commits between batches. One commit then replaces the old thread. If a batch was appended in the
//! meantime, the rewrite is repeated. If a rewrite ends early, for whatever reason, the file has
//! the old thread, and the parts that were written are deleted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::store::StoreError;

use crate::disk::delete::{Anew, Before, Begun, Replaced};
use crate::disk::desk::Desk;
use crate::disk::head::Head;
use crate::disk::remains::Cleared;
use crate::disk::rewrite::{Past, Target, rewrite};
use crate::disk::snapshot::Snapshot;
use crate::disk::stage::Stage;
use crate::disk::writer::Writer;
use crate::error::backend;
use crate::retention_plan::{RetentionPlan, copied_records};
use crate::validate;

/// Maximum number of attempts at one rewrite. An attempt fails if a batch is appended to the thread
/// in the meantime.
const ATTEMPTS: usize = 5;

const REWRITE: &str = "rewrite a thread";

/// What a rewrite removes from a thread.
#[derive(Debug)]
pub(crate) enum Cut {
    /// All but the newest checkpoints.
    Past,
    /// The events and the checkpoints of some runs.
    Runs(BTreeSet<RunId>),
}

/// A rewrite job, which runs on a blocking thread and makes its changes through the writer.
pub(crate) struct Hand {
    pub(crate) desk: Desk,
    /// Whether the store is being dropped. The next opening deletes the parts that were written.
    pub(crate) closing: Arc<AtomicBool>,
}

impl Hand {
    fn ask<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&mut Writer) -> Result<T, StoreError> + Send + 'static,
    {
        if self.closing.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        let (answer, done) = oneshot::channel();
        let work = move |writer: &mut Writer| {
            // The caller may have been dropped.
            let _ = answer.send(work(writer));
        };
        self.desk.blocking_ask(Box::new(work))?;
        done.blocking_recv().unwrap_or(Err(StoreError::Closed))
    }

    /// Removes something from a thread. Returns a receiver that resolves when the old frames are
    /// reclaimed. A missing thread is not an error.
    pub(crate) fn cut(&self, thread: &ThreadId, cut: &Cut) -> Result<Option<Cleared>, StoreError> {
        for _ in 0..ATTEMPTS {
            let wanted = thread.clone();
            let Some(begun) = self.ask(move |writer| writer.begin(&wanted))? else {
                return Ok(None);
            };
            if let Replaced::Done(cleared) = self.cut_once(thread, cut, begun)? {
                return Ok(cleared);
            }
        }
        let message = format!(
            "thread `{thread}` was appended to during all {ATTEMPTS} attempts; retry when no run \
             is active"
        );
        Err(backend(REWRITE, message))
    }

    fn cut_once(&self, thread: &ThreadId, cut: &Cut, begun: Begun) -> Result<Replaced, StoreError> {
        let Begun { snapshot, head, entry, number } = begun;
        let past = Past::read(&snapshot, &head)?;
        let all = snapshot.runs(thread)?;
        let plan = match cut {
            Cut::Past => RetentionPlan::keep_latest(&past.summaries, head.current, &all),
            Cut::Runs(runs) => {
                RetentionPlan::drop_runs(&past.summaries, head.current, runs.clone())
            }
        };
        if plan.is_noop(&past.summaries) {
            return Ok(Replaced::Done(None));
        }
        let ids: Vec<RunId> = all.iter().map(|run| run.id.clone()).collect();
        let (record, _) = snapshot.record(thread)?;
        let before = Before { head: head.clone(), record: record.clone(), runs: all.clone() };
        if plan.drops_thread() {
            let stage = Stage { gone: (Vec::new(), ids), ..Stage::default() };
            let (thread, before) = (thread.clone(), Some(before));
            let read_thread = thread.clone();
            let anew = Anew { thread, before, stage, read_thread, number, is_written: false };
            return self.ask(move |writer| writer.replace(anew));
        }
        let runs = plan.runs(all);
        let stay: BTreeSet<&RunId> = runs.iter().map(|run| &run.id).collect();
        let gone = ids.into_iter().filter(|run| !stay.contains(run)).collect();
        let record = plan.record(record, &runs);
        let head = Head { number, ..head };
        let names = HashMap::new();
        let target = Target { thread: thread.clone(), record, runs, head, names };
        let old = (thread.clone(), Some(before), gone);
        self.put((&snapshot, &past, &plan), target, entry, old)
    }

    /// Writes the kept frames in parts, and replaces the old thread.
    fn put(
        &self,
        (snapshot, past, plan): (&Snapshot, &Past, &RetentionPlan),
        target: Target,
        entry: u64,
        (read_thread, before, gone): (ThreadId, Option<Before>, Vec<RunId>),
    ) -> Result<Replaced, StoreError> {
        let (thread, number) = (target.thread.clone(), target.head.number);
        let mut is_written = false;
        let part = |stage: Stage| {
            self.ask(move |writer| writer.write_part(stage))?;
            is_written = true;
            Ok(())
        };
        let mut stage = match rewrite(snapshot, past, plan, target, entry, part) {
            Ok(stage) => stage,
            Err(error) => {
                self.ask(move |writer| {
                    writer.give_up(number, is_written);
                    Ok(())
                })?;
                return Err(error);
            }
        };
        stage.gone.1 = gone;
        let anew = Anew { thread, before, stage, read_thread, number, is_written };
        self.ask(move |writer| writer.replace(anew))
    }

    /// See [`Store::copy_thread`](wattle_run::ports::Store::copy_thread).
    pub(crate) fn copy(
        &self,
        original: Original,
        from: &ThreadId,
        to: &ThreadId,
        incarnation: &RunId,
        names: HashMap<RunId, RunId>,
    ) -> Result<(), StoreError> {
        let Original { snapshot, head, past, .. } = original;
        let wanted = from.clone();
        let Some(begun) = self.ask(move |writer| writer.begin(&wanted))? else {
            return Ok(());
        };
        if begun.snapshot.head(to)?.is_some() {
            return Err(validate::thread_exists_error(to));
        }
        let (number, entry) = (begun.number, begun.entry);
        drop(begun);
        let (record, _) = snapshot.record(from)?;
        validate::ensure_not_running(&record)?;
        let (record, runs) = copied_records(&record, snapshot.runs(from)?, to, incarnation, &names);
        let plan = RetentionPlan::keep_all(&past.summaries, head.current);
        let head = Head { number, seal: None, ..head };
        let target = Target { thread: to.clone(), record, runs, head, names };
        let seen = (&snapshot, &past, &plan);
        self.put(seen, target, entry, (from.clone(), None, Vec::new())).map(drop)
    }
}

/// A snapshot of a thread that is being copied.
pub(crate) struct Original {
    snapshot: Snapshot,
    head: Head,
    past: Past,
    /// All runs that occur in the thread.
    pub(crate) runs: BTreeSet<RunId>,
}

impl Original {
    /// Reads a thread; `None` if it does not exist.
    pub(crate) fn read(snapshot: Snapshot, thread: &ThreadId) -> Result<Option<Self>, StoreError> {
        let Some(head) = snapshot.head(thread)? else {
            return Ok(None);
        };
        let past = Past::read(&snapshot, &head)?;
        let mut runs = past.runs(&snapshot)?;
        runs.extend(snapshot.runs(thread)?.into_iter().map(|run| run.id));
        Ok(Some(Self { snapshot, head, past, runs }))
    }
}

impl Writer {
    /// Returns the threads of the given runs, each with its runs. Fails if one of the threads is
    /// leased.
    pub(crate) fn threads_of(
        &mut self,
        runs: &[RunId],
    ) -> Result<BTreeMap<ThreadId, BTreeSet<RunId>>, StoreError> {
        let snapshot = Snapshot::newest(&self.file)?;
        let mut threads: BTreeMap<ThreadId, BTreeSet<RunId>> = BTreeMap::new();
        for run in runs {
            if let Some(record) = snapshot.run(run)? {
                threads.entry(record.thread).or_default().insert(record.id);
            }
        }
        self.leases
            .with(|leases| threads.keys().try_for_each(|thread| leases.ensure_unleased(thread)))?;
        Ok(threads)
    }
}
