//! Who follows a run, and what happens when nobody does any more.
//!
//! A front end stops an answer by hanging up, and an app may want its run to end then. A page that
//! is loaded again hangs up too, so a run is cancelled only when nobody has come back for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use wattle_graph::id::RunId;
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::{RunRef, Runs as _};

use crate::state::ApiState;

/// Longest time that a run waits for somebody to come back: what an app asks for beyond is cut, so
/// that a run that nobody wants does not go on for hours.
const LONGEST_GRACE: Duration = Duration::from_mins(10);

/// Runs that clients of apps follow. A clone is the same set.
#[derive(Clone, Default)]
pub struct Presence(Arc<Mutex<All>>);

#[derive(Default)]
struct All {
    runs: HashMap<RunId, Followed>,
    /// Clients that ever came, to any run: a number is never given twice, so who waits for one run
    /// is not mistaken when it was forgotten and is followed anew.
    arrivals: u64,
}

/// A run that is followed, or was until a moment ago.
#[derive(Default)]
struct Followed {
    now: usize,
    /// The number of the last who came: who waits for nobody to be there sees that somebody was.
    newest: u64,
    /// How long nobody may be there. Once an app has said so it holds for all of its clients.
    cancel_after: Option<Duration>,
}

impl Presence {
    /// No code that can panic runs under this lock.
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

    /// One has left. If nobody is there now and the run is to be cancelled: how long to wait, and
    /// who came last until now.
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

    /// Whether nobody has come since; the run is forgotten then.
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

/// One client that follows a run, for as long as this lives.
pub(super) struct Following {
    presence: Presence,
    engine: Engine,
    stopping: watch::Receiver<bool>,
    run: RunRef,
    /// Where it waits when the client is gone: a connection may be dropped anywhere.
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

    /// The stream ends by itself: it was not the client who left.
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
                // Runs that a stop of the host cuts go on after the next start.
                biased;
                _ = stopping.wait_for(|stopping| *stopping) => return,
                _ = engine.wait(&run) => true,
                () = tokio::time::sleep(wait) => false,
            };
            if presence.is_abandoned(&run.run, newest) && !is_over {
                tracing::info!(thread = %run.thread, run = %run.run, "nobody follows the run");
                if let Err(failure) = engine.cancel(&run).await {
                    tracing::warn!(run = %run.run, %failure, "cannot cancel the run");
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
    fn only_the_last_who_leaves_begins_the_wait() {
        let presence = Presence::default();
        presence.arrive(&run(), Some(WAIT));
        presence.arrive(&run(), None);
        assert_eq!(presence.leave(&run(), false), None);
        assert_eq!(presence.leave(&run(), false), Some((WAIT, 2)), "also if it did not ask for it");
        presence.arrive(&run(), None);
        assert!(!presence.is_abandoned(&run(), 2), "somebody is there");
        assert_eq!(presence.leave(&run(), false), Some((WAIT, 3)));
        assert!(!presence.is_abandoned(&run(), 2), "somebody was there");
        assert!(presence.is_abandoned(&run(), 3));
        assert!(presence.lock().runs.is_empty());
    }

    #[test]
    fn who_waited_for_a_run_that_was_forgotten_is_not_mistaken() {
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
    fn no_wait_is_longer_than_the_limit() {
        let presence = Presence::default();
        presence.arrive(&run(), Some(Duration::MAX));
        assert_eq!(presence.leave(&run(), false), Some((LONGEST_GRACE, 1)));
    }

    #[test]
    fn a_run_that_is_over_or_may_go_on_is_forgotten() {
        let presence = Presence::default();
        for (cancel_after, is_over) in [(Some(WAIT), true), (None, false)] {
            presence.arrive(&run(), cancel_after);
            assert_eq!(presence.leave(&run(), is_over), None);
            assert!(presence.lock().runs.is_empty());
        }
    }
}
