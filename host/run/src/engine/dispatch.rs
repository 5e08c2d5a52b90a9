//! The beginning of pending runs: each when it is due, its thread is free, and no run of the thread
//! stands before it.
//!
//! A thread is looked at when one of its runs is enqueued, becomes due, or ends. Of a run that another
//! host enqueues, a host learns by a signal of the store. A signal may be lost, so hosts that share a
//! store also list all pending runs again and again.

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

/// Runs that begin at once: each waits for the store a few times.
const AT_ONCE: usize = 16;

/// Pause before another look at a thread or a run that another host may have.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Pause before another list of all pending runs where hosts share the store, and before another look
/// at a thread that another host runs.
const LOOK_AT_ALL: Duration = Duration::from_secs(5);

/// Pause before another look whether the engine is still there, while no run is pending.
const LOOK_FOR_ENGINE: Duration = Duration::from_mins(1);

/// Pending runs of one page of such a list.
const PAGE: usize = 1_000;

/// Pause after the first failure of what a run needs to begin; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The longest of these pauses: a store that is back is not long without work.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Failures to begin a run that pass by themselves, after which it counts as failed: some ten minutes
/// with their pauses.
const TRIES: u32 = 25;

impl Engine {
    /// Whether runs of a thread are known here to be pending. Of a run that another host enqueues, this
    /// host learns a little later.
    pub fn is_waiting(&self, thread: &ThreadId) -> bool {
        self.0.dispatch.is_waiting(thread)
    }

    /// Begins pending runs from now on, in the background.
    pub(super) fn keep_dispatching(&self) {
        if self.0.dispatch.is_running.swap(true, Ordering::AcqRel) {
            return;
        }
        self.keep_listening();
        self.0.runtime.spawn(dispatch(Arc::downgrade(&self.0)));
    }

    /// Lists all pending runs of the store, and has their threads looked at.
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

    /// Begins the next pending run of a thread, if there is one that may begin.
    async fn dispatch_thread(&self, thread: &ThreadId) {
        let next = self.begin_next(thread).await.unwrap_or_else(|failure| {
            tracing::warn!(%thread, %failure, "pending runs cannot be looked at");
            self.again()
        });
        self.0.dispatch.looked(thread, &next);
        // The run may have ended before this was noted.
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
            // Another host has begun it, or taken it out.
            self.0.dispatch.left(&next.run);
            return Ok(Next::At(now_ms));
        };
        let head = self.live_thread(thread).await;
        // The host that runs the thread begins its next run.
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

    /// What becomes of a pending run that could not begin.
    async fn not_begun(&self, record: RunRecord, failure: Failure) -> Result<Next, Failure> {
        if failure.code == code::BUSY {
            return Ok(if self.is_active(&record.thread) { Next::AtEnd } else { self.again() });
        }
        let now_ms = self.now_ms();
        if passes(&failure) {
            let tries = self.0.dispatch.failed(&record.id);
            if tries < TRIES {
                let (thread, run) = (&record.thread, &record.id);
                tracing::warn!(%thread, %run, %failure, tries, "a pending run is tried again");
                return Ok(Next::At(now_ms + pause(tries - 1).as_millis() as i64));
            }
        }
        tracing::info!(thread = %record.thread, run = %record.id, %failure, "a run cannot begin");
        let run = record.id.clone();
        let ended = self.never_begun(record, RunStatus::Failed, Some(failure));
        self.0.ports.store.dequeue(&run, Some(&ended)).await.map_err(store_failure)?;
        self.0.dispatch.left(&run);
        Ok(Next::At(now_ms))
    }
}

/// Whether a failure to begin a run may pass without anybody doing anything about the run.
pub(super) fn passes(failure: &Failure) -> bool {
    failure.code == code::INTERNAL || failure.code == code::UNAVAILABLE
}

fn pause(misses: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(misses)).min(LONGEST_PAUSE)
}

/// Looks at threads until the engine is gone or stops.
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
        // Also at the beginning, for what was pending when the last host stopped.
        if look_at_all.is_some_and(|at| Instant::now() >= at) {
            look_at_all = match engine.find_pending().await {
                // Nobody else enqueues runs where this host is alone.
                Ok(()) if !engine.is_shared() => None,
                Ok(()) => Some(Instant::now() + LOOK_AT_ALL),
                Err(error) => {
                    tracing::warn!(%error, "pending runs cannot be listed");
                    Some(Instant::now() + LOOK_AGAIN)
                }
            };
        }
        // Each look under way may begin a run.
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
            // Not longer than that, since a clock may be set.
            Some(next_ms) => {
                let wait_ms = u64::try_from(next_ms - now_ms).unwrap_or(0);
                Duration::from_millis(wait_ms).min(LOOK_AT_ALL)
            }
        };
        let halting = engine.0.halting.clone();
        let known = engine.0.dispatch.clone();
        // Nothing keeps the engine while there is nothing to do.
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
    fn pauses_grow_to_some_ten_minutes() {
        assert_eq!(pause(0), FIRST_PAUSE);
        assert_eq!(pause(1), FIRST_PAUSE * 2);
        assert_eq!(pause(u32::MAX), LONGEST_PAUSE);
        let all: Duration = (0..TRIES).map(pause).sum();
        assert!((Duration::from_mins(9)..Duration::from_mins(12)).contains(&all), "{all:?}");
    }
}
