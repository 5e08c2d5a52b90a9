//! Starts pending runs. A pending run starts when it is due, its thread is free, and no run of the
//! thread precedes it.
//!
//! The dispatcher checks a thread when one of its runs is enqueued, becomes due or ends. A
//! notification of the store announces a run that another host enqueues. Notifications can be lost,
//! so hosts that share a store also list all pending runs periodically.
//!
//! A check that is due reserves a place for the run that it may start. Callers share the places of
//! a host, so [`schedule`] decides which caller's thread is checked next. The threads of a caller
//! without memory for a further run are not checked until memory returns to the pool.

mod schedule;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;
use wattle_graph::event::RunStatus;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::ThreadId;

pub(super) use self::schedule::DispatchSchedule;
use self::schedule::NextCheck;
use super::balance::StartReservation;
use super::{Engine, EngineInner, thread_not_found};
use crate::caller_id::CallerId;
use crate::catalog::is_still_loading;
use crate::free_disk::lacks_space;
use crate::ports::store::{
    PendingQuery, PendingRun, QueueCondition, RunRecord, StoreError, ThreadStatus,
};
use crate::run_memory::lacks_memory;

/// Maximum number of concurrent checks. Each check waits for the store several times.
const CHECK_CONCURRENCY: usize = 16;

/// Delay before the next check of a thread or run that another host may be changing.
pub(super) const RECHECK_DELAY: Duration = Duration::from_secs(1);

/// Interval at which a host lists all pending runs if hosts share the store. Also the delay before
/// the next check of a thread whose run another host executes, whose app is being loaded, whose
/// state does not fit into the memory of its caller, or for whose run the disk has too little space.
const LIST_INTERVAL: Duration = Duration::from_secs(5);

/// Interval at which an idle dispatcher checks that the engine still exists.
const ENGINE_CHECK_INTERVAL: Duration = Duration::from_mins(1);

/// Page size of a list of all pending runs.
const PAGE: usize = 1_000;

/// Delay after the first transient failure to start a run. The delay doubles with each failure.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(250);

/// Upper bound of the delay after a failure to start a run. This bound also limits how long runs
/// stay pending after an outage of the store.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);

/// Number of transient failures to start a run after which the run fails. With the delays between
/// the attempts, this takes about ten minutes.
const MAX_START_FAILURES: u32 = 25;

/// A check of a thread, with a reserved place for a run of a caller.
struct DueCheck {
    thread: ThreadId,
    caller: CallerId,
    place: StartReservation,
}

impl Engine {
    /// Returns true if this host knows of pending runs of a thread. When another host enqueues a
    /// run, this host learns of the run after a short delay.
    pub fn has_known_pending(&self, thread: &ThreadId) -> bool {
        self.0.dispatch.has_pending(thread)
    }

    /// Starts the dispatcher in the background, unless it is running.
    pub(super) fn start_dispatcher(&self) {
        if self.0.dispatch.is_running.swap(true, Ordering::AcqRel) {
            return;
        }
        self.start_listener();
        self.0.runtime.spawn(dispatch_loop(Arc::downgrade(&self.0)));
    }

    /// Lists all pending runs of the store and schedules a check of each of their threads.
    async fn schedule_all_pending(&self) -> Result<(), StoreError> {
        let dispatch = &self.0.dispatch;
        let number = dispatch.begin_list();
        let mut after = None;
        loop {
            let query = PendingQuery { after, limit: PAGE, ..PendingQuery::default() };
            let page = self.0.ports.store.pending(&query).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.position);
            for PendingRun { thread, due_ms, caller, .. } in page {
                dispatch.schedule(&thread, due_ms, caller);
            }
        }
        dispatch.end_list(number);
        Ok(())
    }

    /// Takes at most `most` checks that are due. Also returns the time of the next check.
    fn take_checks(&self, most: usize) -> (Vec<DueCheck>, Option<i64>) {
        // The end of a check in progress wakes the dispatcher.
        if most == 0 {
            return (Vec::new(), None);
        }
        let mut locked = self.lock_places();
        let may_start = |caller| self.0.run_memory.may_start(caller);
        let (dispatch, now_ms) = (&self.0.dispatch, self.now_ms());
        let (due, next_ms) = dispatch.take_due(now_ms, most, &mut locked.places, may_start);
        let with_place = |(thread, caller)| {
            let place = locked.reserve(caller);
            DueCheck { thread, caller, place }
        };
        (due.into_iter().map(with_place).collect(), next_ms)
    }

    /// Starts the next pending run of a thread, if it may start.
    async fn dispatch_thread(&self, check: DueCheck) {
        let DueCheck { thread, caller, place } = check;
        let next = self.start_next(&thread, caller).await.unwrap_or_else(|failure| {
            tracing::warn!(%thread, %failure, "cannot check the pending runs of a thread");
            self.delayed_check()
        });
        self.0.dispatch.record_check(&thread, &next);
        // The run may have ended before the result was recorded.
        if next == NextCheck::AfterRun && !self.is_active(&thread) {
            self.0.dispatch.schedule_at(&thread, self.now_ms());
        }
        drop(place);
    }

    /// Returns a check after [`RECHECK_DELAY`].
    fn delayed_check(&self) -> NextCheck {
        NextCheck::At(self.now_ms() + RECHECK_DELAY.as_millis() as i64)
    }

    async fn start_next(&self, thread: &ThreadId, caller: CallerId) -> Result<NextCheck, Failure> {
        if self.is_active(thread) {
            return Ok(NextCheck::AfterRun);
        }
        let _lock = self.0.locks.lock(thread).await;
        let pending = self.pending_of(thread).await?;
        let now_ms = self.now_ms();
        let Some(next) = next_of(pending.iter(), now_ms) else { return Ok(NextCheck::Never) };
        self.0.dispatch.set_caller(thread, next.caller);
        // The place of this check is for a run of `caller`. A run of another caller waits for the
        // turn of that caller.
        if next.due_ms > now_ms || next.caller != caller {
            return Ok(NextCheck::At(next.due_ms));
        }
        let record = self.0.ports.store.run(&next.run).await?;
        let Some(record) = record.filter(|record| record.status == RunStatus::Pending) else {
            // Another host has started the run or removed it.
            self.0.dispatch.run_left_queue(&next.run);
            return Ok(NextCheck::At(now_ms));
        };
        let head = self.visible_thread(thread).await;
        // The host that executes the active run starts the next one.
        if let Ok(Some(head)) = &head
            && head.record.status == ThreadStatus::Running
        {
            return Ok(NextCheck::At(now_ms + LIST_INTERVAL.as_millis() as i64));
        }
        let begun = match head.and_then(|head| head.ok_or_else(|| thread_not_found(thread))) {
            Ok(head) => {
                let tenant = head.record.tenant;
                self.start_from_spec(&record, tenant, QueueCondition::Pending, None).await
            }
            Err(failure) => Err(failure),
        };
        match begun {
            Ok(_) => {
                self.0.dispatch.run_left_queue(&record.id);
                let rest = pending.iter().filter(|pending| pending.run != record.id);
                let Some(after) = next_of(rest, now_ms) else { return Ok(NextCheck::Never) };
                self.0.dispatch.set_caller(thread, after.caller);
                Ok(NextCheck::AfterRun)
            }
            Err(failure) => self.on_start_failure(record, failure).await,
        }
    }

    /// Handles a failure to start a pending run.
    async fn on_start_failure(
        &self,
        record: RunRecord,
        failure: Failure,
    ) -> Result<NextCheck, Failure> {
        if failure.code == code::BUSY {
            return Ok(if self.is_active(&record.thread) {
                NextCheck::AfterRun
            } else {
                self.delayed_check()
            });
        }
        let now_ms = self.now_ms();
        // The app is loaded in the background, however long that takes, and the operator makes room
        // on the disk.
        if is_still_loading(&failure) || lacks_space(&failure) {
            return Ok(NextCheck::At(now_ms + LIST_INTERVAL.as_millis() as i64));
        }
        if lacks_memory(&failure) {
            // If the caller has no memory for any run, the check waits until memory returns.
            // Otherwise the state of the thread is large, and may fit later.
            let is_large = self.0.run_memory.may_start(record.caller());
            let delay = if is_large { LIST_INTERVAL } else { RECHECK_DELAY };
            return Ok(NextCheck::At(now_ms + delay.as_millis() as i64));
        }
        if is_transient(&failure) {
            let tries = self.0.dispatch.count_start_failure(&record.id);
            if tries < MAX_START_FAILURES {
                let (thread, run) = (&record.thread, &record.id);
                tracing::warn!(%thread, %run, %failure, tries, "cannot start a run; retrying");
                return Ok(NextCheck::At(now_ms + retry_delay(tries - 1).as_millis() as i64));
            }
        }
        tracing::info!(
            thread = %record.thread, run = %record.id, %failure,
            "cannot start a run; it is marked as failed"
        );
        let run = record.id.clone();
        let ended = self.ended_before_start(record, RunStatus::Failed, Some(failure));
        self.0.ports.store.dequeue(&run, Some(&ended)).await?;
        self.0.dispatch.run_left_queue(&run);
        Ok(NextCheck::At(now_ms))
    }
}

/// Returns the pending run of a thread that starts next: the first run that is due, or else the run
/// that becomes due first.
fn next_of<'p>(
    mut pending: impl Iterator<Item = &'p PendingRun> + Clone,
    now_ms: i64,
) -> Option<&'p PendingRun> {
    let all = pending.clone();
    let due = pending.find(|pending| pending.due_ms <= now_ms);
    due.or_else(|| all.min_by_key(|pending| pending.due_ms))
}

/// Returns true if a failure to start a run may be transient.
pub(super) fn is_transient(failure: &Failure) -> bool {
    failure.code == code::INTERNAL || failure.code == code::UNAVAILABLE
}

fn retry_delay(misses: u32) -> Duration {
    MIN_RETRY_DELAY.saturating_mul(2_u32.saturating_pow(misses)).min(MAX_RETRY_DELAY)
}

/// Checks threads until the engine is dropped or shuts down.
async fn dispatch_loop(engine: Weak<EngineInner>) {
    let mut look_at_all = Some(Instant::now());
    let permits = Arc::new(Semaphore::new(CHECK_CONCURRENCY));
    loop {
        let Some(engine) = engine.upgrade().map(Engine) else { return };
        if engine.0.shutdown.is_set() {
            return;
        }
        if engine.0.dispatch.take_list_request() {
            look_at_all = Some(Instant::now());
        }
        // The first list finds the runs that were pending when the last host stopped.
        if look_at_all.is_some_and(|at| Instant::now() >= at) {
            look_at_all = match engine.schedule_all_pending().await {
                // This host enqueues all further runs itself.
                Ok(()) if !engine.is_shared() => None,
                Ok(()) => Some(Instant::now() + LIST_INTERVAL),
                Err(error) => {
                    tracing::warn!(%error, "cannot list the pending runs");
                    Some(Instant::now() + RECHECK_DELAY)
                }
            };
        }
        let (checks, next_ms) = engine.take_checks(permits.available_permits());
        for check in checks {
            let Ok(permit) = permits.clone().acquire_owned().await else { return };
            let engine = engine.clone();
            tokio::spawn(async move {
                engine.dispatch_thread(check).await;
                drop(permit);
                engine.0.dispatch.changed.notify_one();
            });
        }
        let now_ms = engine.now_ms();
        let wait = match next_ms {
            None if !engine.is_shared() => ENGINE_CHECK_INTERVAL,
            None => LIST_INTERVAL,
            // The wait is bounded, because the clock may be adjusted.
            Some(next_ms) => {
                let wait_ms = u64::try_from(next_ms - now_ms).unwrap_or(0);
                Duration::from_millis(wait_ms).min(LIST_INTERVAL)
            }
        };
        let halting = engine.0.shutdown.clone();
        let (known, memory) = (engine.0.dispatch.clone(), engine.0.run_memory.clone());
        // An idle dispatcher does not keep the engine alive.
        drop(engine);
        tokio::select! {
            () = known.changed.notified() => {}
            () = memory.freed() => {}
            () = tokio::time::sleep(wait) => {}
            () = halting.wait() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_after_failed_starts_add_up_to_about_ten_minutes() {
        assert_eq!(retry_delay(0), MIN_RETRY_DELAY);
        assert_eq!(retry_delay(1), MIN_RETRY_DELAY * 2);
        assert_eq!(retry_delay(u32::MAX), MAX_RETRY_DELAY);
        let all: Duration = (0..MAX_START_FAILURES).map(retry_delay).sum();
        assert!((Duration::from_mins(9)..Duration::from_mins(12)).contains(&all), "{all:?}");
    }
}
