//! Expiry, pruning, copies and verification of threads.
//!
//! The store rewrites history only for threads without a lease. The engine acquires the lease to
//! exclude active runs and releases it before it calls the store. The entry in `active` excludes
//! runs of this process meanwhile.

use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{RunId, ThreadId};

use super::{Engine, new_run_id, thread_not_found};
use crate::ports::store::{
    Batch, CompactionReport, PruneStrategy, SealReport, ThreadQuery, ThreadRecord, ThreadStatus,
    ThreadSummary,
};
use crate::thread_walk::ThreadWalk;

impl Engine {
    /// Deletes threads whose interrupts were not answered in time, prunes or deletes threads whose
    /// time to live is over, and releases held calls that no thread waits for. Returns the number
    /// of threads that changed.
    pub async fn sweep(&self) -> usize {
        let changed = self.sweep_expired_interrupts().await + self.sweep_ttl().await;
        self.sweep_held_calls().await;
        changed
    }

    async fn sweep_expired_interrupts(&self) -> usize {
        let query = ThreadQuery {
            status: Some(ThreadStatus::Interrupted),
            expires_by_ms: Some(self.now_ms()),
            ..ThreadQuery::default()
        };
        let mut walk = ThreadWalk::new(self.0.ports.store.as_ref(), query);
        let mut deleted = 0;
        while let Some(threads) = next_threads(&mut walk).await {
            for ThreadSummary { id: thread, .. } in threads {
                let Ok(_slot) = self.claim(&thread, new_run_id()).await else { continue };
                match self.unexpired_thread(&thread).await {
                    Ok(None) => deleted += 1,
                    Ok(Some(_)) => {}
                    Err(failure) => {
                        tracing::error!(%thread, %failure, "cannot delete expired thread");
                    }
                }
            }
        }
        deleted
    }

    async fn sweep_ttl(&self) -> usize {
        let query = ThreadQuery { ttl_ended_by_ms: Some(self.now_ms()), ..ThreadQuery::default() };
        let mut walk = ThreadWalk::new(self.0.ports.store.as_ref(), query);
        let mut changed = 0;
        while let Some(threads) = next_threads(&mut walk).await {
            for ThreadSummary { id: thread, .. } in threads {
                match self.apply_ttl(&thread).await {
                    Ok(true) => changed += 1,
                    Ok(false) => {}
                    Err(failure) if failure.code == code::BUSY => {}
                    Err(failure) => {
                        tracing::error!(%thread, %failure, "cannot apply the time to live");
                    }
                }
            }
        }
        changed
    }

    /// Applies the time to live of a thread. Checks it again under the lease, because the thread
    /// may have changed meanwhile. Returns false if the thread has an orphaned run that is to be
    /// recovered: the time to live counts again from the end of the run.
    async fn apply_ttl(&self, thread: &ThreadId) -> Result<bool, Failure> {
        let mut slot = self.claim(thread, new_run_id()).await?;
        let store = &self.0.ports.store;
        let Some(head) = store.thread(thread).await? else { return Ok(false) };
        let Some(ttl) = head.record.ttl else { return Ok(false) };
        if head.record.ttl_ends_ms().is_none_or(|end| end > self.now_ms()) {
            return Ok(false);
        }
        if self.set_aside(thread).is_none() && self.orphaned_run(&head.record).await?.is_some() {
            return Ok(false);
        }
        tracing::info!(%thread, strategy = ?ttl.strategy, "the time to live of a thread is over");
        slot.release().await;
        self.prune_stored(thread, ttl.strategy).await?;
        drop(slot);
        if ttl.strategy == PruneStrategy::KeepLatest {
            self.record_prune(thread).await?;
        }
        Ok(true)
    }

    /// Records that a thread was pruned, so that the thread is not pruned again before its next
    /// change. If the host stops before it writes this record, the thread is pruned again, which
    /// changes nothing.
    async fn record_prune(&self, thread: &ThreadId) -> Result<(), Failure> {
        let slot = self.claim(thread, new_run_id()).await?;
        let store = &self.0.ports.store;
        let Some(head) = store.thread(thread).await? else { return Ok(()) };
        let record = ThreadRecord { pruned_ms: Some(self.now_ms()), ..head.record };
        let batch = Batch { epoch: Some(slot.epoch), record: Some(record), ..Batch::default() };
        Ok(store.append(thread, batch).await.await?)
    }

    /// Removes the parts of a thread that a strategy does not keep. A thread with an orphaned run
    /// can be deleted, but not pruned.
    ///
    /// # Errors
    ///
    /// `not-found`; `busy` while a run is active on the thread, or if the thread is set aside;
    /// `unavailable` until an orphaned run is recovered.
    pub async fn prune(&self, thread: &ThreadId, strategy: PruneStrategy) -> Result<(), Failure> {
        let mut slot = self.claim(thread, new_run_id()).await?;
        let head = self.unexpired_thread(thread).await?.ok_or_else(|| thread_not_found(thread))?;
        if strategy == PruneStrategy::KeepLatest {
            self.reject_orphaned_run(&head).await?;
        }
        slot.release().await;
        self.prune_stored(thread, strategy).await
    }

    /// Prunes a thread in the store.
    async fn prune_stored(
        &self,
        thread: &ThreadId,
        strategy: PruneStrategy,
    ) -> Result<(), Failure> {
        self.0.ports.store.prune(thread, strategy).await?;
        self.0.states.remove(thread);
        if strategy == PruneStrategy::Delete {
            self.clear_set_aside(thread);
        }
        Ok(())
    }

    /// Deletes runs of a thread with their checkpoints. Runs of other threads are ignored. Of a
    /// thread with an orphaned run, other runs can be deleted only together with this run.
    ///
    /// # Errors
    ///
    /// `not-found`; `busy` while a run is active on the thread, or if the thread is set aside;
    /// `unavailable` until an orphaned run is recovered.
    pub async fn delete_runs(&self, thread: &ThreadId, runs: &[RunId]) -> Result<(), Failure> {
        let mut slot = self.claim(thread, new_run_id()).await?;
        let head = self.unexpired_thread(thread).await?.ok_or_else(|| thread_not_found(thread))?;
        let store = &self.0.ports.store;
        let mut named = Vec::with_capacity(runs.len());
        for run in runs {
            let known = store.run(run).await?;
            named.extend(known.filter(|known| known.thread == *thread).map(|known| known.id));
        }
        if named.is_empty() {
            return Ok(());
        }
        let orphaned = self.orphaned_run(&head.record).await?.map(|run| run.id);
        // The run may continue from a checkpoint of an earlier run.
        if let Some(run) = orphaned.as_ref().filter(|run| !named.contains(run)) {
            return Err(self.not_recovered(thread, run));
        }
        slot.release().await;
        store.delete_runs(&named).await?;
        self.0.states.remove(thread);
        if orphaned.is_some() {
            self.clear_set_aside(thread);
        }
        Ok(())
    }

    /// Copies a thread with its history to a new id. Pending tasks and interrupts are pending in
    /// the copy as well, under the same ids.
    ///
    /// # Errors
    ///
    /// `not-found`; `busy` while a run is active on the thread; `conflict` if the id of the copy is
    /// taken.
    pub async fn copy_thread(
        &self,
        from: &ThreadId,
        to: Option<ThreadId>,
    ) -> Result<ThreadId, Failure> {
        let to = to.unwrap_or_else(|| super::new_id(ThreadId::new));
        let mut slot = self.claim(from, new_run_id()).await?;
        let mut target = self.claim(&to, new_run_id()).await?;
        let head = self.unexpired_thread(from).await?.ok_or_else(|| thread_not_found(from))?;
        let store = &self.0.ports.store;
        if store.thread(&to).await?.is_some() {
            let text = format!("there is a thread `{to}` already; choose another id for the copy");
            return Err(Failure::new(code::CONFLICT, text).with_details(json!({ "thread": to })));
        }
        self.reject_orphaned_run(&head).await?;
        self.admit_new_thread(&to, head.record.tenant.as_deref()).await?;
        slot.release().await;
        target.release().await;
        store.copy_thread(from, &to, &new_run_id(), &|_| new_run_id()).await?;
        Ok(to)
    }

    /// Verifies by the seals of a thread that its stored data was changed only by the host.
    ///
    /// # Errors
    ///
    /// `not-found`; `broken` at the first seal that does not match the stored data.
    pub async fn verify(&self, thread: &ThreadId) -> Result<SealReport, Failure> {
        let found = self.0.ports.store.verify(thread).await?;
        found.ok_or_else(|| thread_not_found(thread))
    }

    /// Returns the space of deleted data to the file system.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn compact(&self) -> Result<CompactionReport, Failure> {
        Ok(self.0.ports.store.compact().await?)
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.0.ports.clock.now_ms()
    }
}

/// Returns the next threads of a sweep. An error of the store ends the sweep; the next sweep begins
/// with the first thread.
async fn next_threads(walk: &mut ThreadWalk<'_>) -> Option<Vec<ThreadSummary>> {
    walk.next().await.unwrap_or_else(|error| {
        tracing::error!(%error, "cannot list expired threads");
        None
    })
}
