//! Rewrites of threads: prunes, deletions of runs, copies.
//!
//! A blocking thread writes the kept frames under a new thread number, in parts that the writer
//! commits between batches. One commit then replaces the old thread. If a batch was appended during
//! the rewrite, the rewrite is repeated. If a rewrite ends early, for whatever reason, the old
//! thread stays in the file, and the parts that were written are deleted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::store::StoreError;

use crate::disk::head::Head;
use crate::disk::orphans::Reclaimed;
use crate::disk::rewriter::{FrameList, RewriteTarget, rewrite};
use crate::disk::snapshot::Snapshot;
use crate::disk::swap::{ExpectedState, Replacement, RewriteStart, SwapOutcome};
use crate::disk::write_set::WriteSet;
use crate::disk::writer::Writer;
use crate::disk::writer_handle::WriterHandle;
use crate::error::backend;
use crate::retention_plan::{RetentionPlan, copied_records};
use crate::validate;

/// Maximum number of attempts at one rewrite. An attempt fails if a batch is appended to the thread
/// during the attempt.
const MAX_ATTEMPTS: usize = 5;

const OP_REWRITE: &str = "rewrite a thread";

/// What a rewrite removes from a thread.
#[derive(Debug)]
pub(crate) enum RewriteKind {
    /// The events and checkpoints that [`RetentionPlan::keep_latest`] does not keep.
    KeepLatest,
    /// The events and the checkpoints of some runs.
    DropRuns(BTreeSet<RunId>),
}

/// A rewrite job, which runs on a blocking thread and makes its changes through the writer.
pub(crate) struct RewriteJob {
    pub(crate) writer: WriterHandle,
    /// Whether the store is being dropped, which ends the rewrite. The next opening of the file
    /// deletes the frames that the rewrite has written.
    pub(crate) is_closing: Arc<AtomicBool>,
}

impl RewriteJob {
    fn run_on_writer<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&mut Writer) -> Result<T, StoreError> + Send + 'static,
    {
        if self.is_closing.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        let (reply_tx, reply_rx) = oneshot::channel();
        let work = move |writer: &mut Writer| {
            // The caller may have been dropped.
            let _ = reply_tx.send(work(writer));
        };
        self.writer.run_blocking(Box::new(work))?;
        reply_rx.blocking_recv().unwrap_or(Err(StoreError::Closed))
    }

    /// Rewrites a thread without what `kind` removes. Returns a receiver that resolves when the old
    /// frames are reclaimed. A missing thread is not an error.
    pub(crate) fn run(
        &self,
        thread: &ThreadId,
        kind: &RewriteKind,
    ) -> Result<Option<Reclaimed>, StoreError> {
        for _ in 0..MAX_ATTEMPTS {
            let thread_id = thread.clone();
            let Some(start) = self.run_on_writer(move |writer| writer.begin_rewrite(&thread_id))?
            else {
                return Ok(None);
            };
            if let SwapOutcome::Swapped(reclaimed) = self.run_once(thread, kind, start)? {
                return Ok(reclaimed);
            }
        }
        let message = format!(
            "thread `{thread}` was appended to during all {MAX_ATTEMPTS} attempts; retry when no \
             run is active"
        );
        Err(backend(OP_REWRITE, message))
    }

    /// Attempts the rewrite once. Returns [`SwapOutcome::Conflict`] if a batch was appended during
    /// the attempt.
    fn run_once(
        &self,
        thread: &ThreadId,
        kind: &RewriteKind,
        start: RewriteStart,
    ) -> Result<SwapOutcome, StoreError> {
        let RewriteStart { snapshot, head, entry, number } = start;
        let frame_list = FrameList::read(&snapshot, &head)?;
        let all = snapshot.runs(thread)?;
        let plan = match kind {
            RewriteKind::KeepLatest => {
                RetentionPlan::keep_latest(&frame_list.summaries, head.current, &all)
            }
            RewriteKind::DropRuns(runs) => {
                RetentionPlan::drop_runs(&frame_list.summaries, head.current, runs.clone())
            }
        };
        if plan.is_noop(&frame_list.summaries) {
            return Ok(SwapOutcome::Swapped(None));
        }
        let ids: Vec<RunId> = all.iter().map(|run| run.id.clone()).collect();
        let (record, _) = snapshot.record(thread)?;
        let expected =
            ExpectedState { head: head.clone(), record: record.clone(), runs: all.clone() };
        if plan.drops_thread() {
            let write_set = WriteSet { deleted: (Vec::new(), ids), ..WriteSet::default() };
            let (thread, expected) = (thread.clone(), Some(expected));
            let read_thread = thread.clone();
            let replacement =
                Replacement { thread, expected, write_set, read_thread, number, is_written: false };
            return self.run_on_writer(move |writer| writer.swap(replacement));
        }
        let runs = plan.runs(all);
        let kept: BTreeSet<&RunId> = runs.iter().map(|run| &run.id).collect();
        let deleted_runs = ids.into_iter().filter(|run| !kept.contains(run)).collect();
        let record = plan.record(record, &runs);
        let head = Head { number, ..head };
        let names = HashMap::new();
        let target = RewriteTarget { thread: thread.clone(), record, runs, head, names };
        let old = (thread.clone(), Some(expected), deleted_runs);
        self.write_and_swap((&snapshot, &frame_list, &plan), target, entry, old)
    }

    /// Writes the frames that the retention plan keeps, in several commits, and replaces the old
    /// thread in the last commit.
    fn write_and_swap(
        &self,
        (snapshot, frame_list, plan): (&Snapshot, &FrameList, &RetentionPlan),
        target: RewriteTarget,
        entry: u64,
        (read_thread, expected, deleted_runs): (ThreadId, Option<ExpectedState>, Vec<RunId>),
    ) -> Result<SwapOutcome, StoreError> {
        let (thread, number) = (target.thread.clone(), target.head.number);
        let mut is_written = false;
        let part = |write_set: WriteSet| {
            self.run_on_writer(move |writer| writer.write_part(write_set))?;
            is_written = true;
            Ok(())
        };
        let mut write_set = match rewrite(snapshot, frame_list, plan, target, entry, part) {
            Ok(write_set) => write_set,
            Err(error) => {
                self.run_on_writer(move |writer| {
                    writer.abandon_rewrite(number, is_written);
                    Ok(())
                })?;
                return Err(error);
            }
        };
        write_set.deleted.1 = deleted_runs;
        let replacement =
            Replacement { thread, expected, write_set, read_thread, number, is_written };
        self.run_on_writer(move |writer| writer.swap(replacement))
    }

    /// See [`Store::copy_thread`](wattle_run::ports::Store::copy_thread).
    pub(crate) fn copy(
        &self,
        source: CopySource,
        from: &ThreadId,
        to: &ThreadId,
        incarnation: &RunId,
        names: HashMap<RunId, RunId>,
    ) -> Result<(), StoreError> {
        let CopySource { snapshot, head, frame_list, .. } = source;
        let thread_id = from.clone();
        let Some(start) = self.run_on_writer(move |writer| writer.begin_rewrite(&thread_id))?
        else {
            return Ok(());
        };
        if start.snapshot.head(to)?.is_some() {
            return Err(validate::thread_exists_error(to));
        }
        let (number, entry) = (start.number, start.entry);
        drop(start);
        let (record, _) = snapshot.record(from)?;
        validate::ensure_not_running(&record)?;
        let (record, runs) = copied_records(&record, snapshot.runs(from)?, to, incarnation, &names);
        let plan = RetentionPlan::keep_all(&frame_list.summaries, head.current);
        let head = Head { number, seal: None, ..head };
        let target = RewriteTarget { thread: to.clone(), record, runs, head, names };
        let kept = (&snapshot, &frame_list, &plan);
        self.write_and_swap(kept, target, entry, (from.clone(), None, Vec::new())).map(drop)
    }
}

/// A snapshot of a thread that is being copied.
pub(crate) struct CopySource {
    snapshot: Snapshot,
    head: Head,
    frame_list: FrameList,
    /// All runs that occur in the thread.
    pub(crate) runs: BTreeSet<RunId>,
}

impl CopySource {
    /// Reads a thread; `None` if it does not exist.
    pub(crate) fn read(snapshot: Snapshot, thread: &ThreadId) -> Result<Option<Self>, StoreError> {
        let Some(head) = snapshot.head(thread)? else {
            return Ok(None);
        };
        let frame_list = FrameList::read(&snapshot, &head)?;
        let mut runs = frame_list.runs(&snapshot)?;
        runs.extend(snapshot.runs(thread)?.into_iter().map(|run| run.id));
        Ok(Some(Self { snapshot, head, frame_list, runs }))
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
