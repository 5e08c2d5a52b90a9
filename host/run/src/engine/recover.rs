//! Recovers orphaned runs: runs that a crash or a shutdown of this host, or of a host that shares
//! the store, stopped before their end.
//!
//! After a start, recovery proceeds in the background, oldest run first, a few runs at a time. An
//! operation on a thread recovers the run of the thread first. If a run cannot be recovered, its
//! thread is set aside with the reason. Such a thread does not delay the recovery of other runs.
//! The host retries the recovery of the thread with growing delays, after the next start, and on
//! request. A run whose app is still being loaded waits for its app. A run that was recovered too
//! often without progress is not executed again without a request.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use serde_json::json;
use tokio_util::task::AbortOnDropHandle;
use wattle_graph::event::RunStatus;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{RunId, ThreadId};

use super::recovery_count::RecoveryCause;
pub use super::recovery_state::{Recovery, SetAside};
use super::{Engine, EngineInner, new_run_id, recovered_usage, thread_not_found};
use crate::caller_id::CallerId;
use crate::hostcall::runs::RunRef;
use crate::limit;
use crate::ports::Ports;
use crate::ports::store::{
    LEASE_MS, OrphanedThread, RunRecord, StoreError, ThreadHead, ThreadRecord, ThreadStatus,
};
use crate::reads::{self, TurnSpan};
use crate::run_memory::lacks_memory;

/// Maximum number of concurrent recoveries. Each waits for the store several times before its run
/// continues.
const RECOVERY_CONCURRENCY: usize = 16;

/// Minimum interval between two recovery scans. With many hosts, some lease is always close to its
/// expiry, although nearly all leases are renewed.
const MIN_SCAN_INTERVAL: Duration = Duration::from_millis(500);

/// Delay before the next scan if the store cannot list the orphaned runs.
const LIST_RETRY_DELAY: Duration = Duration::from_secs(5);

/// Number of recovered runs between two progress messages in the log.
const PROGRESS_LOG_RUNS: usize = 500;

/// Delay before the first retry of the recovery of a thread that is set aside. The delay doubles
/// with each retry, so that a recovery that always fails costs little. It stays the same if the
/// caller of the run has no memory, which returns when other runs end.
const MIN_RETRY_MS: i64 = 30_000;

/// Upper bound of the delay between two retries of the recovery of a thread that is set aside.
const MAX_RETRY_MS: i64 = 3_600_000;

/// Outcome of an attempt to recover a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecoveryOutcome {
    /// The run continues.
    Recovered,
    /// The run has ended or is active.
    NotNeeded,
    /// The run cannot be recovered, so its thread was set aside.
    SetAside,
    /// The run waits until its app is loaded.
    Waiting,
}

impl Engine {
    /// Starts the recovery of orphaned runs in the background, and returns immediately. From then
    /// on an operation on a thread with an orphaned run waits until the run is recovered.
    pub fn start_recovery(&self) {
        self.mark_serving();
        self.0.recovery.progress.send_replace(Recovery { is_complete: false, ..Recovery::NONE });
        self.0.runtime.spawn(recover_after_loading(Arc::downgrade(&self.0)));
        let engine = self.clone();
        self.0.runtime.spawn(async move {
            while engine.recover_all().await.is_err() {
                tokio::time::sleep(LIST_RETRY_DELAY).await;
            }
            engine.0.recovery.update_progress(|recovery| recovery.is_complete = true);
            engine.start_dispatcher();
        });
    }

    /// Returns the progress of the recovery.
    pub fn recovery(&self) -> Recovery {
        let set_aside = self.0.recovery.set_aside().len();
        let waiting = self.0.recovery.waiting().len();
        Recovery { set_aside, waiting, ..*self.0.recovery.progress.borrow() }
    }

    /// Waits until the recovery after a start is complete.
    pub async fn wait_recovered(&self) -> Recovery {
        let mut progress = self.0.recovery.progress.subscribe();
        // The sender lives as long as the engine.
        let _ = progress.wait_for(|recovery| recovery.is_complete).await;
        self.recovery()
    }

    /// Returns why the run of a thread cannot be recovered; `None` if the thread is not set aside.
    pub fn set_aside(&self, thread: &ThreadId) -> Option<SetAside> {
        self.0.recovery.set_aside().get(thread).cloned()
    }

    /// Recovers the orphaned runs of this host, and those of hosts that share the store and have
    /// stopped. Returns the number of recovered runs.
    pub async fn recover(&self) -> usize {
        // Failures are logged.
        self.recover_all().await.unwrap_or_default()
    }

    pub(super) async fn recover_all(&self) -> Result<usize, StoreError> {
        let cuts = self.orphaned_runs().await.inspect_err(|error| {
            tracing::error!(%error, "cannot list orphaned runs");
        })?;
        self.0.recovery.update_progress(|recovery| recovery.found += cuts.len());
        if !cuts.is_empty() {
            tracing::info!(runs = cuts.len(), "recovering orphaned runs");
        }
        let recovered = self.recover_runs(cuts).await;
        let Recovery { is_complete, set_aside, waiting, .. } = self.recovery();
        if !is_complete && recovered + set_aside + waiting > 0 {
            tracing::info!(runs = recovered, set_aside, waiting, "recovery of runs is complete");
        }
        Ok(recovered)
    }

    /// Recovers runs, a few at a time. Returns the number of recovered runs.
    async fn recover_runs(&self, cuts: Vec<OrphanedThread>) -> usize {
        let attempts = futures::stream::iter(cuts).map(|cut| self.recover_in_turn(cut));
        let recovered =
            attempts.buffer_unordered(RECOVERY_CONCURRENCY).fold(0, |sum, came| async move {
                let sum = sum + usize::from(came == RecoveryOutcome::Recovered);
                if came == RecoveryOutcome::Recovered && sum % PROGRESS_LOG_RUNS == 0 {
                    tracing::info!(runs = sum, "recovering orphaned runs: progress");
                }
                sum
            });
        recovered.await
    }

    /// Recovers the runs whose apps have been loaded, or could not be loaded.
    async fn recover_waiting(&self) {
        let ready: Vec<OrphanedThread> = {
            let mut waiting = self.0.recovery.waiting();
            let is_ready =
                |_: &ThreadId, cut: &mut OrphanedThread| !self.0.catalog.is_loading(&cut.app);
            waiting.extract_if(.., is_ready).map(|(_, cut)| cut).collect()
        };
        if !ready.is_empty() {
            tracing::info!(runs = ready.len(), "recovering orphaned runs of loaded apps");
            self.recover_runs(ready).await;
        }
    }

    /// Returns the orphaned runs that are due, oldest first.
    async fn orphaned_runs(&self) -> Result<Vec<OrphanedThread>, StoreError> {
        let (mut cuts, mut after) = (Vec::new(), None);
        loop {
            let holder = self.0.leases.holder();
            let found = self.0.ports.store.orphaned_threads(holder, after.as_ref()).await?;
            let Some(last) = found.last() else { break };
            after = Some(last.thread.clone());
            let is_wanted = |cut: &OrphanedThread| {
                !self.is_active(&cut.thread)
                    && self.is_due(&cut.thread)
                    && self.check_not_waiting(&cut.thread).is_ok()
            };
            cuts.extend(found.into_iter().filter(is_wanted));
        }
        cuts.sort_by(|one, other| {
            (one.updated_ms, &one.thread).cmp(&(other.updated_ms, &other.thread))
        });
        Ok(cuts)
    }

    /// Returns false if a thread is set aside and the next attempt to recover its run is not due.
    fn is_due(&self, thread: &ThreadId) -> bool {
        self.set_aside(thread).is_none_or(|aside| aside.retry_ms <= self.now_ms())
    }

    /// Recovers a run. The attempt holds a turn from the read of a large thread to its end. The
    /// recovery is a separate task, so that reading a large thread does not delay other recoveries.
    async fn recover_in_turn(&self, cut: OrphanedThread) -> RecoveryOutcome {
        let engine = self.clone();
        let attempt = async move {
            let turns = &engine.0.recovery.turns;
            let recovery = Box::pin(engine.recover_or_set_aside(cut, RecoveryCause::Orphaned));
            turns.scope(CallerId::default(), TurnSpan::UntilEnd, recovery).await
        };
        AbortOnDropHandle::new(self.0.runtime.spawn(attempt))
            .await
            .unwrap_or(RecoveryOutcome::NotNeeded)
    }

    /// Shares runs with other hosts while the future is polled: recovers runs of other hosts, and
    /// reports the load of this host. The host scans for orphaned runs when another host has handed
    /// over runs, and at the time at which the next lease expires unless its holder sends a
    /// heartbeat before.
    pub async fn share_runs(&self) {
        tokio::join!(self.recovery_loop(), self.balance_loop());
    }

    async fn recovery_loop(&self) {
        let EngineInner { ports: Ports { store, .. }, leases, recovery, .. } = &*self.0;
        let longest = Duration::from_millis(store.lease_ms().min(LEASE_MS));
        self.wait_recovered().await;
        loop {
            self.recover().await;
            let next = store.next_lease_expiry(leases.holder()).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "cannot read when leases of other hosts expire");
                None
            });
            // The pause is bounded, because a host that starts meanwhile may have a shorter lease
            // than this host.
            let pause = next.unwrap_or(longest).clamp(MIN_SCAN_INTERVAL, longest);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = recovery.handed_over.notified() => {}
            }
        }
    }

    /// Retries the recovery of the threads that are set aside and whose next attempt is due.
    /// Returns the number of recovered runs.
    pub async fn retry_set_aside(&self) -> usize {
        let due: Vec<ThreadId> = {
            let now_ms = self.now_ms();
            let set_aside = self.0.recovery.set_aside();
            let due = set_aside.iter().filter(|(_, aside)| aside.retry_ms <= now_ms);
            due.map(|(thread, _)| thread.clone()).collect()
        };
        let mut recovered = 0;
        for thread in due {
            let came = self.recover_now(&thread, RecoveryCause::Orphaned).await;
            recovered += usize::from(came.is_ok_and(|it| it == RecoveryOutcome::Recovered));
        }
        recovered
    }

    /// Retries the recovery of a thread's orphaned run, also if the run was recovered too often
    /// without progress.
    ///
    /// # Errors
    ///
    /// `not-found`; `conflict` if the thread has no orphaned run; `unavailable` while the app of
    /// the thread is loaded for the first time; the failure of the recovery.
    pub async fn retry_recovery(&self, thread: &ThreadId) -> Result<RunRef, Failure> {
        let head = self.visible_thread(thread).await?.ok_or_else(|| thread_not_found(thread))?;
        let came = self.recover_now(thread, RecoveryCause::Requested).await?;
        self.check_not_waiting(thread)?;
        if let Some(aside) = self.set_aside(thread).filter(|_| came == RecoveryOutcome::SetAside) {
            return Err(aside.failure);
        }
        match (head.record.status, head.record.run) {
            (ThreadStatus::Running, Some(run)) => Ok(RunRef { thread: thread.clone(), run }),
            _ => Err(Failure::new(
                code::CONFLICT,
                format!("thread `{thread}` has no orphaned run; there is nothing to retry"),
            )),
        }
    }

    /// Recovers the run of a thread before another operation uses the thread, if the recovery after
    /// a start is not complete, or the run has waited for its app.
    ///
    /// # Errors
    ///
    /// `unavailable` while the app of the run is loaded for the first time; errors of the store.
    pub(super) async fn recover_before_use(&self, thread: &ThreadId) -> Result<(), Failure> {
        self.check_not_waiting(thread)?;
        let has_waited = self.0.recovery.waiting().contains_key(thread);
        let is_complete = self.recovery().is_complete;
        if !has_waited && (is_complete || self.set_aside(thread).is_some()) {
            return Ok(());
        }
        // Boxed: otherwise, the future of every operation that claims a thread would contain that
        // of a recovery, which is rare.
        Box::pin(self.recover_now(thread, RecoveryCause::Orphaned)).await?;
        self.check_not_waiting(thread)
    }

    /// Checks that the orphaned run of a thread does not wait for its app.
    fn check_not_waiting(&self, thread: &ThreadId) -> Result<(), Failure> {
        let app = self.0.recovery.waiting().get(thread).map(|cut| cut.app.clone());
        app.map_or(Ok(()), |app| self.0.catalog.check_loading(&app))
    }

    async fn recover_now(
        &self,
        thread: &ThreadId,
        cause: RecoveryCause,
    ) -> Result<RecoveryOutcome, Failure> {
        if self.is_active(thread) {
            return Ok(RecoveryOutcome::NotNeeded);
        }
        let head = self.0.ports.store.thread(thread).await?;
        let Some(record) = head.map(|head| head.record) else {
            self.clear_set_aside(thread);
            return Ok(RecoveryOutcome::NotNeeded);
        };
        if record.status != ThreadStatus::Running {
            self.clear_set_aside(thread);
            return Ok(RecoveryOutcome::NotNeeded);
        }
        Ok(self.recover_or_set_aside((&record).into(), cause).await)
    }

    async fn recover_or_set_aside(
        &self,
        cut: OrphanedThread,
        cause: RecoveryCause,
    ) -> RecoveryOutcome {
        if self.0.catalog.is_loading(&cut.app) {
            self.0.recovery.waiting().insert(cut.thread.clone(), cut.clone());
            // The app may have been loaded before the run was in the list.
            if self.0.catalog.is_loading(&cut.app) {
                tracing::debug!(thread = %cut.thread, app = %cut.app, "a run waits for its app");
                return RecoveryOutcome::Waiting;
            }
        }
        let patience = Duration::from_millis(limit::RECOVERY_MS);
        let attempt = reads::timeout(patience, Box::pin(self.recover_thread(&cut, cause)));
        // A panic of the attempt is caught here; its unwinding releases the claim of the thread.
        let recovered = match AssertUnwindSafe(attempt).catch_unwind().await {
            Ok(in_time) => in_time.unwrap_or_else(|_elapsed| Err(recovery_timed_out(&cut.thread))),
            Err(panic) => Err(panicked(&cut.thread, &*panic)),
        };
        let failure = match recovered {
            Ok(is_recovered) => {
                self.clear_set_aside(&cut.thread);
                self.0
                    .recovery
                    .update_progress(|recovery| recovery.recovered += usize::from(is_recovered));
                return if is_recovered {
                    RecoveryOutcome::Recovered
                } else {
                    RecoveryOutcome::NotNeeded
                };
            }
            Err(failure) => failure,
        };
        if failure.code == code::BUSY || self.is_shutting_down() {
            tracing::debug!(thread = %cut.thread, %failure, "an orphaned run is not recovered now");
            return RecoveryOutcome::NotNeeded;
        }
        tracing::error!(
            thread = %cut.thread, %failure,
            "cannot recover an orphaned run; its thread is set aside"
        );
        self.0.recovery.waiting().remove(&cut.thread);
        self.mark_set_aside(cut.thread, cut.run, failure);
        RecoveryOutcome::SetAside
    }

    /// Sets aside a thread whose run stopped because of a permanent failure.
    pub(super) fn set_run_aside(&self, run: RunRef, failure: Failure) {
        self.mark_set_aside(run.thread, Some(run.run), failure);
    }

    fn mark_set_aside(&self, thread: ThreadId, run: Option<RunId>, failure: Failure) {
        let now_ms = self.now_ms();
        let mut set_aside = self.0.recovery.set_aside();
        let before = set_aside.get(&thread);
        let attempts = before.map_or(0, |aside| aside.attempts);
        let doublings = if lacks_memory(&failure) { 0 } else { attempts.min(16) };
        let pause_ms = MIN_RETRY_MS.saturating_mul(1_i64 << doublings);
        let aside = SetAside {
            run,
            failure,
            since_ms: before.map_or(now_ms, |aside| aside.since_ms),
            attempts: attempts + 1,
            retry_ms: now_ms.saturating_add(pause_ms.min(MAX_RETRY_MS)),
        };
        set_aside.insert(thread, aside);
    }

    /// Removes a thread from the threads that are set aside, wait for their apps, or have lost their
    /// logs.
    pub(super) fn clear_set_aside(&self, thread: &ThreadId) {
        self.0.recovery.set_aside().remove(thread);
        self.0.recovery.waiting().remove(thread);
        self.0.recovery.lost_logs().remove(thread);
    }

    /// Recovers the run of a thread. Returns false if the run has ended meanwhile on another host.
    async fn recover_thread(
        &self,
        cut: &OrphanedThread,
        cause: RecoveryCause,
    ) -> Result<bool, Failure> {
        let run = cut.run.clone().unwrap_or_else(new_run_id);
        let mut slot = self.claim_without_recovery(&cut.thread, run.clone()).await?;
        let store = self.0.ports.store.as_ref();
        let Some(head) = self.unexpired_thread(&cut.thread).await? else { return Ok(false) };
        if head.record.status != ThreadStatus::Running || head.record.run != cut.run {
            return Ok(false);
        }
        let known = store.run(&run).await?;
        if known.as_ref().is_some_and(|run| run.status != RunStatus::Running) {
            return Ok(false);
        }
        let mut run = known.unwrap_or_else(|| self.new_run(&mut slot, &head, None));
        run.usage = recovered_usage::count(store, &head, &run).await;
        self.continue_orphaned(slot, head, run, cause).await?;
        Ok(true)
    }

    /// Rejects work on a thread whose orphaned run has to be recovered first.
    ///
    /// # Errors
    ///
    /// `unavailable` until the run is recovered; `busy`, with the reason, if the thread is set
    /// aside.
    pub(super) async fn reject_orphaned_run(&self, head: &ThreadHead) -> Result<(), Failure> {
        match self.orphaned_run(&head.record).await? {
            Some(run) => Err(self.not_recovered(&head.record.id, &run.id)),
            None => Ok(()),
        }
    }

    /// Returns the orphaned run of a thread that the caller has claimed, if there is one.
    pub(super) async fn orphaned_run(
        &self,
        record: &ThreadRecord,
    ) -> Result<Option<RunRecord>, Failure> {
        let (ThreadStatus::Running, Some(run)) = (record.status, &record.run) else {
            return Ok(None);
        };
        let run = self.0.ports.store.run(run).await?;
        Ok(run.filter(|run| run.status == RunStatus::Running))
    }

    /// Returns the failure of an operation on an orphaned run that has not been recovered.
    pub(super) fn not_recovered(&self, thread: &ThreadId, run: &RunId) -> Failure {
        if let Some(aside) = self.set_aside(thread) {
            let text = format!(
                "run `{run}` is orphaned and cannot be recovered: {}; correct the cause and retry \
                 the thread, or delete it",
                aside.failure.message
            );
            return Failure::new(code::BUSY, text);
        }
        let text = if self.is_shutting_down() {
            format!(
                "the host is shutting down; run `{run}` is recovered by another host or after the \
                 next start"
            )
        } else {
            format!(
                "run `{run}` is orphaned: no host executes it or has recovered it yet; try again"
            )
        };
        let details = json!({ "thread_id": thread, "run_id": run });
        Failure::new(code::UNAVAILABLE, text).retryable().with_details(details)
    }
}

/// Recovers the runs that wait for their apps whenever the catalog has loaded an app, until the
/// engine is dropped or shuts down.
async fn recover_after_loading(engine: Weak<EngineInner>) {
    let Some((mut loaded, shutdown)) =
        engine.upgrade().map(|engine| (engine.catalog.watch_loaded(), engine.shutdown.clone()))
    else {
        return;
    };
    loop {
        tokio::select! {
            // An error means that the catalog no longer exists.
            changed = loaded.changed() => if changed.is_err() { return },
            () = shutdown.wait() => return,
        }
        let Some(engine) = engine.upgrade().map(Engine) else { return };
        engine.recover_waiting().await;
    }
}

fn recovery_timed_out(thread: &ThreadId) -> Failure {
    Failure::new(
        code::TIMEOUT,
        format!("the recovery of thread `{thread}` took longer than {} ms", limit::RECOVERY_MS),
    )
}

/// Returns the failure of a recovery that panicked. The recovery of other runs is not affected.
fn panicked(thread: &ThreadId, panic: &(dyn Any + Send)) -> Failure {
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
    let said = said.unwrap_or("without a message");
    Failure::internal(format!("the recovery of thread `{thread}` panicked: {said}"))
}
