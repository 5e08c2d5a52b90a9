//! What the writer does to keep less of a thread, or to have it twice: deleted runs, pruning,
//! copies. Each thread is written anew in a commit of its own.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use redb::{Durability, WriteTransaction};
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::store::StoreError;

use crate::disk::delete::{Content, delete_thread};
use crate::disk::head::Head;
use crate::disk::rewrite::{Past, Target, rewrite};
use crate::disk::snapshot::Snapshot;
use crate::disk::stage::Stage;
use crate::disk::writer::Writer;
use crate::error::while_trying;
use crate::plan::{Plan, copied};
use crate::rules;

const REWRITE: &str = "write a thread anew";

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
        let Some(head) = snapshot.head(thread)? else { return Ok(None) };
        let past = Past::read(&snapshot, &head)?;
        let mut runs = past.runs(&snapshot)?;
        runs.extend(snapshot.runs(thread)?.into_iter().map(|run| run.id));
        Ok(Some(Self { snapshot, head, past, runs }))
    }
}

impl Writer {
    /// See [`Store::delete_thread`](wattle_run::ports::Store::delete_thread).
    pub(crate) fn delete(&mut self, thread: &ThreadId) -> Result<(), StoreError> {
        let result = delete_thread(&self.source.database(), thread);
        self.intake.forget(thread);
        self.watches.remove(thread);
        result
    }

    /// See [`Store::prune`](wattle_run::ports::Store::prune).
    pub(crate) fn keep_latest(&mut self, thread: &ThreadId) -> Result<(), StoreError> {
        self.keep(thread, |past, head, snapshot| {
            Ok(Plan::latest(&past.outlines, head.current, &snapshot.runs(thread)?))
        })
    }

    /// See [`Store::delete_runs`](wattle_run::ports::Store::delete_runs).
    pub(crate) fn delete_runs(&mut self, runs: &[RunId]) -> Result<(), StoreError> {
        let snapshot = self.source.snapshot()?;
        let mut threads: BTreeMap<ThreadId, BTreeSet<RunId>> = BTreeMap::new();
        for run in runs {
            if let Some(record) = snapshot.run(run)? {
                threads.entry(record.thread).or_default().insert(record.id);
            }
        }
        drop(snapshot);
        threads.keys().try_for_each(|thread| self.leases.free(thread))?;
        for (thread, runs) in threads {
            self.keep(&thread, |past, head, _| {
                Ok(Plan::without(&past.outlines, head.current, runs))
            })?;
        }
        Ok(())
    }

    /// Keeps what a plan says; a missing thread is not an error.
    fn keep<P>(&mut self, thread: &ThreadId, plan: P) -> Result<(), StoreError>
    where
        P: FnOnce(&Past, &Head, &Snapshot) -> Result<Plan, StoreError>,
    {
        let snapshot = self.source.snapshot()?;
        let Some(content) = Content::find(&snapshot, thread)? else { return Ok(()) };
        let past = Past::read(&snapshot, &content.head)?;
        let plan = plan(&past, &content.head, &snapshot)?;
        if plan.is_idle(&past.outlines) {
            return Ok(());
        }
        if plan.loses_all() {
            drop(snapshot);
            return self.delete(thread);
        }
        let runs = plan.runs(snapshot.runs(thread)?);
        let (record, _) = snapshot.record(thread)?;
        let record = plan.record(record, &runs);
        let head = content.head.clone();
        let target = Target { thread: thread.clone(), record, runs, head, names: HashMap::new() };
        let (next_entry, threads) = self.intake.ends();
        let (stage, next_entry) = rewrite(&snapshot, &past, &plan, target, next_entry)?;
        drop(snapshot);
        self.commit(&stage, |transaction| content.remove(transaction))?;
        self.intake.skip_to(next_entry, threads);
        self.intake.forget(thread);
        Ok(())
    }

    /// See [`Store::copy_thread`](wattle_run::ports::Store::copy_thread).
    pub(crate) fn copy(
        &mut self,
        original: Original,
        from: &ThreadId,
        to: &ThreadId,
        names: HashMap<RunId, RunId>,
    ) -> Result<(), StoreError> {
        self.leases.free(from)?;
        let Original { snapshot, head, past, .. } = original;
        let newest = self.source.snapshot()?;
        if newest.head(to)?.is_some() {
            return Err(rules::thread_is_there(to));
        }
        let (record, _) = snapshot.record(from)?;
        rules::refuse_running(&record)?;
        let (record, runs) = copied(&record, snapshot.runs(from)?, to, &names);
        for run in &runs {
            if newest.run(&run.id)?.is_some() {
                return Err(rules::run_is_there(to, &run.id));
            }
        }
        drop(newest);
        let plan = Plan::all(&past.outlines, head.current);
        let (next_entry, threads) = self.intake.ends();
        let last_seq = head.last_seq;
        let head = Head { number: threads + 1, seal: None, ..head };
        let target = Target { thread: to.clone(), record, runs, head, names };
        let (mut stage, next_entry) = rewrite(&snapshot, &past, &plan, target, next_entry)?;
        drop(snapshot);
        stage.threads = Some(threads + 1);
        self.commit(&stage, |_| Ok(()))?;
        self.intake.skip_to(next_entry, threads + 1);
        self.watches.advance(to, last_seq);
        Ok(())
    }

    /// After an error it is not known what is in the file.
    fn commit<R>(&mut self, stage: &Stage, remove: R) -> Result<(), StoreError>
    where
        R: FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
    {
        self.write_anew(stage, remove).inspect_err(|_| self.start_over())
    }

    fn write_anew<R>(&self, stage: &Stage, remove: R) -> Result<(), StoreError>
    where
        R: FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
    {
        let database = self.source.database();
        let mut transaction = database.begin_write().map_err(while_trying(REWRITE))?;
        transaction.set_durability(Durability::Immediate).map_err(while_trying(REWRITE))?;
        remove(&transaction).map_err(while_trying(REWRITE))?;
        stage.write(&transaction)?;
        transaction.commit().map_err(while_trying(REWRITE))
    }
}
