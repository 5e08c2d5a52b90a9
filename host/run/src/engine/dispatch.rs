//! Starts pending runs. A pending run starts when it is due, its thread is free, and no run of the
//! thread precedes it.
//!
//! The dispatcher checks a thread when one of its runs is enqueued, becomes due or ends. A signal
//! of the store announces a run that another host enqueues. Signals can be lost, so hosts that
//! share a store also list all pending runs periodically.

mod known;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;
use wattle_graph::event::RunStatus;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::ThreadId;

pub(super) use self::known::Known;
use self::known::Next;
use super::{Engine, Inner, no_thread};
use crate::ports::store::{PendingQuery, PendingRun, RunRecord, StoreError, ThreadStatus, Turn};
use crate::view::store_failure;

/// Maximum number of concurrent checks. Each check waits for the store several times.
const AT_ONCE: usize = 16;

/// Delay before the next check of a thread or run that another host may be changing.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Interval between two lists of all pending runs if hosts share the store, and delay before the
/// next check of a thread that another host runs.
const LOOK_AT_ALL: Duration = Duration::from_secs(5);

/// Interval at which an idle dispatcher checks that the engine still exists.
const LOOK_FOR_ENGINE: Duration = Duration::from_mins(1);

/// Page size of a list of all pending runs.
const PAGE: usize = 1_000;

/// Delay after the first transient failure to start a run. It doubles with each failure.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Upper bound of the delay after a failure to start a run. It bounds how long runs stay pending
/// after an outage of the store.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Transient failures to start a run after which the run fails. With the delays in between they
/// take about ten minutes.
const TRIES: u32 = 25;

impl Engine {
    /// Returns true if this host knows of pending runs of a thread. The host learns of runs that
    /// other hosts enqueue after a short delay.
    pub fn is_waiting(&self, thread: &ThreadId) -> bool {
        self.0.dispatch.is_waiting(thread)
    }

    /// Starts the dispatcher in the background, unless it is running.
    pub(super) fn keep_dispatching(&self) {
        if self.0.dispatch.is_running.swap(true, Ordering::AcqRel) {
            return;
        }
        self.keep_listening();
        self.0.runtime.spawn(dispatch(Arc::downgrade(&self.0)));
    }

    /// Lists all pending runs of the store and schedules a check of each of their threads.
    async fn find_pending(&self) -> Result<(), StoreError> {
        let dispatch = &self.0.dispatch;
        let number = dispatch.begin_list();
        let mut after = None;
        loop {
            let query = PendingQuery { after, limit: PAGE, ..PendingQuery::default() };
            let page = self.0.ports.store.pending(&query).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.place);
            for PendingRun { thread, due_ms, .. } in page {
                dispatch.wake_at(&thread, due_ms);
            }
        }
        dispatch.end_list(number);
        Ok(())
    }

    /// Starts the next pending run of a thread, if it may start.
    async fn dispatch_thread(&self, thread: &ThreadId) {
        let next = self.begin_next(thread).await.unwrap_or_else(|failure| {
            tracing::warn!(%thread, %failure, "cannot check the pending runs of a thread");
            self.again()
        });
        self.0.dispatch.looked(thread, &next);
        // The run may have ended before `looked` recorded the result.
        if next == Next::AtEnd && !self.is_active(thread) {
            self.0.dispatch.wake_at(thread, self.now_ms());
        }
    }

    fn again(&self) -> Next {
        Next::At(self.now_ms() + LOOK_AGAIN.as_millis() as i64)
    }

    async fn begin_next(&self, thread: &ThreadId) -> Result<Next, Failure> {
        if self.is_active(thread) {
            return Ok(Next::AtEnd);
        }
        let _lock = self.0.locks.lock(thread).await;
        let pending = self.pending_of(thread).await?;
        let now_ms = self.now_ms();
        let Some(next) = pending.iter().find(|pending| pending.due_ms <= now_ms) else {
            let first_ms = pending.iter().map(|pending| pending.due_ms).min();
            return Ok(first_ms.map_or(Next::Nothing, Next::At));
        };
        let record = self.0.ports.store.run(&next.run).await.map_err(store_failure)?;
        let Some(record) = record.filter(|record| record.status == RunStatus::Pending) else {
            // Another host has started the run or removed it.
            self.0.dispatch.left(&next.run);
            return Ok(Next::At(now_ms));
        };
        let head = self.live_thread(thread).await;
        // The host that executes the active run starts the next one.
        if let Ok(Some(head)) = &head
            && head.record.status == ThreadStatus::Running
        {
            return Ok(Next::At(now_ms + LOOK_AT_ALL.as_millis() as i64));
        }
        let _place = self.place();
        let begun = match head.and_then(|head| head.ok_or_else(|| no_thread(thread))) {
            Ok(head) => self.begin(&record, head.record.tenant, Turn::Own).await,
            Err(failure) => Err(failure),
        };
        match begun {
            Ok(_) => {
                self.0.dispatch.left(&record.id);
                Ok(if pending.len() > 1 { Next::AtEnd } else { Next::Nothing })
            }
            Err(failure) => self.not_begun(record, failure).await,
        }
    }

    /// Handles a failure to start a pending run.
    async fn not_begun(&self, record: RunRecord, failure: Failure) -> Result<Next, Failure> {
        if failure.code == code::BUSY {
            return Ok(if self.is_active(&record.thread) { Next::AtEnd } else { self.again() });
        }
        let now_ms = self.now_ms();
        if passes(&failure) {
            let tries = self.0.dispatch.failed(&record.id);
            if tries < TRIES {
                let (thread, run) = (&record.thread, &record.id);
                tracing::warn!(%thread, %run, %failure, tries, "cannot start a run; retrying");
                return Ok(Next::At(now_ms + pause(tries - 1).as_millis() as i64));
            }
        }
        tracing::info!(
            thread = %record.thread, run = %record.id, %failure,
            "cannot start a run; it is marked as failed"
        );
        let run = record.id.clone();
        let ended = self.never_begun(record, RunStatus::Failed, Some(failure));
        self.0.ports.store.dequeue(&run, Some(&ended)).await.map_err(store_failure)?;
        self.0.dispatch.left(&run);
        Ok(Next::At(now_ms))
    }
}

/// Returns true if a failure to start a run may be transient.
pub(super) fn passes(failure: &Failure) -> bool {
    failure.code == code::INTERNAL || failure.code == code::UNAVAILABLE
}

fn pause(misses: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(misses)).min(LONGEST_PAUSE)
}

/// Checks threads until the engine is dropped or shuts down.
async fn dispatch(engine: Weak<Inner>) {
    let (mut look_at_all, places) = (Some(Instant::now()), Arc::new(Semaphore::new(AT_ONCE)));
    loop {
        let Some(engine) = engine.upgrade().map(Engine) else { return };
        if engine.0.halting.is_cancelled() {
            return;
        }
        if engine.0.dispatch.take_list_again() {
            look_at_all = Some(Instant::now());
        }
        // The first list finds the runs that were pending when the last host stopped.
        if look_at_all.is_some_and(|at| Instant::now() >= at) {
            look_at_all = match engine.find_pending().await {
                // This host enqueues all further runs itself.
                Ok(()) if !engine.is_shared() => None,
                Ok(()) => Some(Instant::now() + LOOK_AT_ALL),
                Err(error) => {
                    tracing::warn!(%error, "cannot list the pending runs");
                    Some(Instant::now() + LOOK_AGAIN)
                }
            };
        }
        // Each check in progress may start a run.
        let room = engine.room().saturating_sub(AT_ONCE - places.available_permits());
        let (due, next_ms) = match room.min(AT_ONCE) {
            0 => (Vec::new(), None),
            most => engine.0.dispatch.due(engine.now_ms(), most),
        };
        for thread in due {
            let Ok(place) = places.clone().acquire_owned().await else { return };
            let engine = engine.clone();
            tokio::spawn(async move {
                engine.dispatch_thread(&thread).await;
                drop(place);
                engine.0.dispatch.changed.notify_one();
            });
        }
        let now_ms = engine.now_ms();
        let wait = match next_ms {
            None if !engine.is_shared() => LOOK_FOR_ENGINE,
            None => LOOK_AT_ALL,
            // The wait is bounded, because the clock may be adjusted.
            Some(next_ms) => {
                let wait_ms = u64::try_from(next_ms - now_ms).unwrap_or(0);
                Duration::from_millis(wait_ms).min(LOOK_AT_ALL)
            }
        };
        let halting = engine.0.halting.clone();
        let known = engine.0.dispatch.clone();
        // An idle dispatcher does not keep the engine alive.
        drop(engine);
        tokio::select! {
            () = known.changed.notified() => {}
            () = tokio::time::sleep(wait) => {}
            () = halting.cancelled() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_delays_add_up_to_about_ten_minutes() {
        assert_eq!(pause(0), FIRST_PAUSE);
        assert_eq!(pause(1), FIRST_PAUSE * 2);
        assert_eq!(pause(u32::MAX), LONGEST_PAUSE);
        let all: Duration = (0..TRIES).map(pause).sum();
        assert!((Duration::from_mins(9)..Duration::from_mins(12)).contains(&all), "{all:?}");
    }
}
