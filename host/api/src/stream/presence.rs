//! Counts the clients that follow a run, and cancels the run when the last one disconnects.
//!
//! A user interface stops a completion by closing its connection, and an app can request that the
//! run is cancelled in this case. A page reload closes the connection, too, so the run is cancelled
//! only if no client reconnects within a grace period.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use wattle_graph::id::RunId;
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::{RunRef, RunService as _};

use crate::state::ApiState;

/// Maximum grace period. A longer period of an app is reduced to it, so that an abandoned run does
/// not continue for hours.
const LONGEST_GRACE: Duration = Duration::from_mins(10);

/// Runs that clients of apps follow. Clones share the set.
#[derive(Clone, Default)]
pub struct Presence(Arc<Mutex<All>>);

#[derive(Default)]
struct All {
    runs: HashMap<RunId, Followed>,
    /// Number of the client that connected last, to any run. Numbers are never reused: a grace
    /// period that began for one client must not end the run of a later one.
    arrivals: u64,
}

/// A run that has clients, or whose grace period has not ended.
#[derive(Default)]
struct Followed {
    now: usize,
    /// Number of the client that connected last. At the end of a grace period, a changed number
    /// shows that another client has connected in the meantime.
    newest: u64,
    /// Grace period. If a client sets none, the value of an earlier client is kept. `None` lets the
    /// run continue.
    cancel_after: Option<Duration>,
}

impl Presence {
    /// Locks the runs and ignores poisoning: no code that can panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arrive(&self, run: &RunId, cancel_after: Option<Duration>) {
        let mut all = self.lock();
        all.arrivals += 1;
        let newest = all.arrivals;
        let followed = all.runs.entry(run.clone()).or_default();
        followed.now += 1;
        followed.newest = newest;
        let cancel_after = cancel_after.map(|wait| wait.min(LONGEST_GRACE));
        followed.cancel_after = cancel_after.or(followed.cancel_after);
    }

    /// Records that a client disconnected. Returns the grace period and the number of the newest
    /// client if the client was the last one and the run is to be cancelled.
    fn leave(&self, run: &RunId, is_over: bool) -> Option<(Duration, u64)> {
        let mut all = self.lock();
        let followed = all.runs.get_mut(run)?;
        followed.now -= 1;
        if followed.now > 0 {
            return None;
        }
        let wait = followed.cancel_after.filter(|_| !is_over);
        let wait = wait.map(|wait| (wait, followed.newest));
        if wait.is_none() {
            all.runs.remove(run);
        }
        wait
    }

    /// Returns true if no client has connected since the one with the number `newest`. Removes the
    /// run in this case.
    fn is_abandoned(&self, run: &RunId, newest: u64) -> bool {
        let mut all = self.lock();
        let same = |followed: &Followed| followed.now == 0 && followed.newest == newest;
        let is_abandoned = all.runs.get(run).is_some_and(same);
        if is_abandoned {
            all.runs.remove(run);
        }
        is_abandoned
    }
}

/// Counts one client of a run until it is dropped.
pub(super) struct Following {
    presence: Presence,
    engine: Engine,
    stopping: watch::Receiver<bool>,
    run: RunRef,
    /// Runtime for the timer of the grace period, because a connection can be dropped on any
    /// thread.
    runtime: Handle,
    is_over: bool,
}

impl Following {
    pub(super) fn new(state: &ApiState, run: RunRef, cancel_after: Option<Duration>) -> Self {
        state.presence.arrive(&run.run, cancel_after);
        Self {
            presence: state.presence.clone(),
            engine: state.engine.clone(),
            stopping: state.stopping.clone(),
            run,
            runtime: Handle::current(),
            is_over: false,
        }
    }

    /// Records that the stream has ended at the server, so that the drop does not cancel the run.
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let Some((wait, newest)) = self.presence.leave(&self.run.run, self.is_over) else {
            return;
        };
        let (presence, engine) = (self.presence.clone(), self.engine.clone());
        let (run, mut stopping) = (self.run.clone(), self.stopping.clone());
        self.runtime.spawn(async move {
            let is_over = tokio::select! {
                // Runs that a shutdown of the host interrupts continue after the next start, so
                // they are not cancelled.
                biased;
                _ = stopping.wait_for(|stopping| *stopping) => return,
                _ = engine.wait_ended(&run) => true,
                () = tokio::time::sleep(wait) => false,
            };
            if presence.is_abandoned(&run.run, newest) && !is_over {
                tracing::info!(
                    thread = %run.thread,
                    run = %run.run,
                    "cancelling a run: its last client disconnected"
                );
                if let Err(failure) = engine.cancel(&run).await {
                    tracing::warn!(run = %run.run, %failure, "failed to cancel a run");
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(3);

    fn run() -> RunId {
        RunId::new("r").unwrap()
    }

    #[test]
    fn last_disconnect_starts_the_grace_period() {
        let presence = Presence::default();
        presence.arrive(&run(), Some(WAIT));
        presence.arrive(&run(), None);
        assert_eq!(presence.leave(&run(), false), None);
        assert_eq!(presence.leave(&run(), false), Some((WAIT, 2)), "the period of another client");
        presence.arrive(&run(), None);
        assert!(!presence.is_abandoned(&run(), 2), "a client is connected");
        assert_eq!(presence.leave(&run(), false), Some((WAIT, 3)));
        assert!(!presence.is_abandoned(&run(), 2), "a client has connected since");
        assert!(presence.is_abandoned(&run(), 3));
        assert!(presence.lock().runs.is_empty());
    }

    #[test]
    fn earlier_grace_period_does_not_abandon_a_new_entry() {
        let presence = Presence::default();
        presence.arrive(&run(), Some(WAIT));
        let (_, old) = presence.leave(&run(), false).unwrap();
        presence.arrive(&run(), Some(WAIT));
        assert_eq!(presence.leave(&run(), true), None);
        presence.arrive(&run(), Some(WAIT));
        let (_, new) = presence.leave(&run(), false).unwrap();
        assert!(!presence.is_abandoned(&run(), old));
        assert!(presence.is_abandoned(&run(), new));
    }

    #[test]
    fn grace_period_is_limited() {
        let presence = Presence::default();
        presence.arrive(&run(), Some(Duration::MAX));
        assert_eq!(presence.leave(&run(), false), Some((LONGEST_GRACE, 1)));
    }

    #[test]
    fn ended_and_uncancellable_runs_are_removed() {
        let presence = Presence::default();
        for (cancel_after, is_over) in [(Some(WAIT), true), (None, false)] {
            presence.arrive(&run(), cancel_after);
            assert_eq!(presence.leave(&run(), is_over), None);
            assert!(presence.lock().runs.is_empty());
        }
    }
}
