//! What a failure of the store leaves behind on a host that has it alone, such as a full disk: runs
//! that lost their logs, and pending runs that the store has though it did not say so. The former are
//! recovered, and the latter are noted, when the store can be written again.
//!
//! Hosts that share a store look for such runs all the time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;
use wattle_graph::failure::{Failure, code};

use super::{Engine, Inner, Slot};
use crate::hostcall::runs::RunRef;
use crate::ports::store::StoreError;
use crate::view::store_failure;

/// Pause before the store is asked whether it can be written.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The pause doubles up to this if the store fails again and again: what a run does until then may
/// cost something each time.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// A store that did not fail for so long has been mended.
const CALM: Duration = Duration::from_mins(3);

/// The wait until the store can be written again.
#[derive(Default)]
pub(super) struct Mending(Mutex<State>);

#[derive(Default)]
struct State {
    is_waiting: bool,
    /// The newest pause, and when the store could be written after it.
    last: Option<(Duration, Instant)>,
}

impl Mending {
    /// No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long to wait before the store is asked; `None` if somebody waits already.
    fn begin(&self) -> Option<Duration> {
        let mut state = self.lock();
        if std::mem::replace(&mut state.is_waiting, true) {
            return None;
        }
        Some(match state.last {
            Some((pause, at)) if at.elapsed() < CALM => (pause * 2).min(LONGEST_PAUSE),
            _ => FIRST_PAUSE,
        })
    }

    /// The store can be written after such a pause.
    fn end(&self, pause: Duration) {
        *self.lock() = State { is_waiting: false, last: Some((pause, Instant::now())) };
    }
}

impl Slot {
    /// Gives the lease of a run back that lost its log.
    pub(super) async fn lose(self, failure: Failure) {
        let run = RunRef { thread: self.thread.clone(), run: self.run.clone() };
        let engine = self.engine.clone();
        self.hand_over().await;
        engine.lost(run, failure);
    }
}

impl Engine {
    /// Sees to it that a run goes on that lost its log. Where hosts share the store, they look for
    /// such runs anyway.
    fn lost(&self, run: RunRef, failure: Failure) {
        if self.is_shared() || self.is_halting() {
            return;
        }
        match failure.code.as_str() {
            // A lease that is over can be taken again.
            code::UNAVAILABLE | code::BUSY => self.mend(),
            _ => self.put_run_aside(run, failure),
        }
    }

    /// Why something was not written. Perhaps it was, if the store failed: then it is found when the
    /// store can be written again.
    pub(super) fn not_written(&self, error: StoreError) -> Failure {
        if matches!(error, StoreError::Backend { .. }) {
            self.mend();
        }
        store_failure(error)
    }

    /// Waits, in the background, until the store can be written, and looks then for what a failure
    /// left behind.
    fn mend(&self) {
        if self.is_shared() {
            return;
        }
        if let Some(pause) = self.0.mending.begin() {
            self.0.runtime.spawn(mend(Arc::downgrade(&self.0), pause));
        }
    }

    async fn look_for_what_is_left(&self) {
        self.0.dispatch.list_again();
        // Its own look finds these runs as well.
        self.recovered().await;
        if self.recover_all().await.is_err() {
            self.mend();
        }
    }
}

/// See [`Engine::mend`]. Nothing keeps the engine while it waits.
async fn mend(engine: Weak<Inner>, pause: Duration) {
    tokio::time::sleep(pause).await;
    loop {
        let Some(engine) = engine.upgrade().map(Engine) else { return };
        if engine.is_halting() {
            return;
        }
        match engine.0.ports.store.prove().await {
            Ok(()) => {
                // What fails from here on is waited for again.
                engine.0.mending.end(pause);
                return engine.look_for_what_is_left().await;
            }
            Err(error) => tracing::debug!(%error, "runs wait until the store can be written"),
        }
        drop(engine);
        tokio::time::sleep(FIRST_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_store_that_fails_again_and_again_is_asked_less_often() {
        let mending = Mending::default();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            let pause = mending.begin().unwrap();
            assert_eq!(mending.begin(), None, "one waits for all");
            mending.end(pause);
            pauses.push(pause.as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        tokio::time::advance(CALM).await;
        assert_eq!(mending.begin(), Some(FIRST_PAUSE));
    }
}
