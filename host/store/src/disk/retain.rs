//! Keeping less of a thread, or having it twice: deleted runs, pruning, copies.
//!
//! Each thread is written anew beside the old one, on a thread that may block, in parts that the
//! writer commits between others; then one commit puts it in the place of the old one. If that was
//! written meanwhile, the work is done again. Whatever ends it before, the file has the old thread,
//! and what was written of the new one is deleted.

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
use crate::plan::{Plan, copied};
use crate::rules;

/// How often a thread is begun to be written anew. Who writes it all the time does not want that.
const ATTEMPTS: usize = 5;

const REWRITE: &str = "write a thread anew";

/// What is taken away from a thread.
#[derive(Debug)]
pub(crate) enum Cut {
    /// All but the newest.
    Past,
    /// What some runs did.
    Runs(BTreeSet<RunId>),
}

/// The way to the writer, for threads that may block.
pub(crate) struct Hand {
    pub(crate) desk: Desk,
    /// Whether the store is dropped. What was begun then is deleted when it is opened again.
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

    /// Takes something away from a thread; answers with what to wait for. A missing thread is not
    /// an error.
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
        Err(backend(REWRITE, format!("`{thread}` is written all the time; try again")))
    }

    fn cut_once(&self, thread: &ThreadId, cut: &Cut, begun: Begun) -> Result<Replaced, StoreError> {
        let Begun { snapshot, head, entry, number } = begun;
        let past = Past::read(&snapshot, &head)?;
        let all = snapshot.runs(thread)?;
        let plan = match cut {
            Cut::Past => Plan::latest(&past.outlines, head.current, &all),
            Cut::Runs(runs) => Plan::without(&past.outlines, head.current, runs.clone()),
        };
        if plan.is_idle(&past.outlines) {
            return Ok(Replaced::Done(None));
        }
        let ids: Vec<RunId> = all.iter().map(|run| run.id.clone()).collect();
        let (record, _) = snapshot.record(thread)?;
        let before = Before { head: head.clone(), record: record.clone(), runs: all.clone() };
        if plan.loses_all() {
            let stage = Stage { gone: (Vec::new(), ids), ..Stage::default() };
            let (thread, before) = (thread.clone(), Some(before));
            let source = thread.clone();
            let anew = Anew { thread, before, stage, source, number, is_written: false };
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

    /// Writes a thread anew in parts, and puts it in the place of another.
    fn put(
        &self,
        (snapshot, past, plan): (&Snapshot, &Past, &Plan),
        target: Target,
        entry: u64,
        (source, before, gone): (ThreadId, Option<Before>, Vec<RunId>),
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
        let anew = Anew { thread, before, stage, source, number, is_written };
        self.ask(move |writer| writer.replace(anew))
    }

    /// See [`Store::copy_thread`](wattle_run::ports::Store::copy_thread).
    pub(crate) fn copy(
        &self,
        original: Original,
        from: &ThreadId,
        to: &ThreadId,
        names: HashMap<RunId, RunId>,
    ) -> Result<(), StoreError> {
        let Original { snapshot, head, past, .. } = original;
        let wanted = from.clone();
        let Some(begun) = self.ask(move |writer| writer.begin(&wanted))? else {
            return Ok(());
        };
        if begun.snapshot.head(to)?.is_some() {
            return Err(rules::thread_is_there(to));
        }
        let (number, entry) = (begun.number, begun.entry);
        drop(begun);
        let (record, _) = snapshot.record(from)?;
        rules::refuse_running(&record)?;
        let (record, runs) = copied(&record, snapshot.runs(from)?, to, &names);
        let plan = Plan::all(&past.outlines, head.current);
        let head = Head { number, seal: None, ..head };
        let target = Target { thread: to.clone(), record, runs, head, names };
        let seen = (&snapshot, &past, &plan);
        self.put(seen, target, entry, (from.clone(), None, Vec::new())).map(drop)
    }
}

/// A thread as it was when it was to be copied.
pub(crate) struct Original {
    snapshot: Snapshot,
    head: Head,
    past: Past,
    /// All runs that it mentions.
    pub(crate) runs: BTreeSet<RunId>,
}

impl Original {
    /// Reads it; `None` for a missing thread.
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
    /// Threads that have some of these runs, and which. Nobody must be at work on one.
    pub(crate) fn threads_of(
        &mut self,
        runs: &[RunId],
    ) -> Result<BTreeMap<ThreadId, BTreeSet<RunId>>, StoreError> {
        let snapshot = Snapshot::newest(&self.source)?;
        let mut threads: BTreeMap<ThreadId, BTreeSet<RunId>> = BTreeMap::new();
        for run in runs {
            if let Some(record) = snapshot.run(run)? {
                threads.entry(record.thread).or_default().insert(record.id);
            }
        }
        threads.keys().try_for_each(|thread| self.leases.free(thread))?;
        Ok(threads)
    }
}
