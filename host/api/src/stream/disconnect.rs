//! Counts the clients of a run, and cancels the run when the last one disconnects.
//!
//! A user interface stops a completion by closing its connection, and an app can request that the
//! run is cancelled in this case. A page reload also closes the connection, so the run is cancelled
//! only if no client reconnects within a grace period.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use wattle_graph::id::RunId;
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::{RunRef, RunService as _};

/// Maximum grace period. A longer grace period that an app requests is reduced to this maximum, so
/// that an abandoned run does not continue for hours.
const MAX_DISCONNECT_GRACE: Duration = Duration::from_mins(10);

/// The clients of runs, for the cancel on disconnect. Clones share the set.
#[derive(Clone, Default)]
pub struct RunClients(Arc<Mutex<RunClientsInner>>);

#[derive(Default)]
struct RunClientsInner {
    runs: HashMap<RunId, ConnectedClients>,
    /// Number of the client that connected last, to any run. Numbers are never reused: a grace
    /// period that began for one client must not cancel the run of a later client.
    last_client: u64,
}

/// A run that has clients, or whose grace period has not ended.
#[derive(Default)]
struct ConnectedClients {
    connected: usize,
    /// Number of the client that connected last. At the end of a grace period, a changed number
    /// shows that another client has connected during the period.
    last_client: u64,
    /// Grace period. If a client sets none, the value of an earlier client is kept. `None` lets the
    /// run continue.
    cancel_after: Option<Duration>,
}

impl RunClients {
    /// Locks the runs and ignores poisoning: no code that can panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, RunClientsInner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(&self, run: &RunId, cancel_after: Option<Duration>) {
        let mut inner = self.lock();
        inner.last_client += 1;
        let client = inner.last_client;
        let clients = inner.runs.entry(run.clone()).or_default();
        clients.connected += 1;
        clients.last_client = client;
        let cancel_after = cancel_after.map(|grace| grace.min(MAX_DISCONNECT_GRACE));
        clients.cancel_after = cancel_after.or(clients.cancel_after);
    }

    /// Records that a client disconnected. Returns the grace period and the number of the newest
    /// client if the client was the last one and the run is to be cancelled.
    fn disconnect(&self, run: &RunId, is_over: bool) -> Option<(Duration, u64)> {
        let mut inner = self.lock();
        let clients = inner.runs.get_mut(run)?;
        clients.connected -= 1;
        if clients.connected > 0 {
            return None;
        }
        let grace = clients.cancel_after.filter(|_| !is_over);
        let grace = grace.map(|grace| (grace, clients.last_client));
        if grace.is_none() {
            inner.runs.remove(run);
        }
        grace
    }

    /// Removes the run if no client has connected since the client with the number `last_client`.
    /// Returns true in this case.
    fn remove_if_abandoned(&self, run: &RunId, last_client: u64) -> bool {
        let mut inner = self.lock();
        let is_abandoned = inner
            .runs
            .get(run)
            .is_some_and(|clients| clients.connected == 0 && clients.last_client == last_client);
        if is_abandoned {
            inner.runs.remove(run);
        }
        is_abandoned
    }
}

/// Counts one client of a run until it is dropped.
pub(super) struct DisconnectGuard {
    clients: RunClients,
    engine: Engine,
    stopping: watch::Receiver<bool>,
    run: RunRef,
    /// Runtime for the timer of the grace period, because a connection can be dropped on any
    /// thread.
    runtime: Handle,
    is_over: bool,
}

impl DisconnectGuard {
    pub(super) fn new(
        clients: RunClients,
        engine: Engine,
        stopping: watch::Receiver<bool>,
        run: RunRef,
        cancel_after: Option<Duration>,
    ) -> Self {
        clients.connect(&run.run, cancel_after);
        Self { clients, engine, stopping, run, runtime: Handle::current(), is_over: false }
    }

    /// Records that the stream has ended at the server, so that the drop does not cancel the run.
    pub(super) fn disarm(&mut self) {
        self.is_over = true;
    }
}

impl Drop for DisconnectGuard {
    fn drop(&mut self) {
        let Some((grace, last_client)) = self.clients.disconnect(&self.run.run, self.is_over)
        else {
            return;
        };
        let (clients, engine) = (self.clients.clone(), self.engine.clone());
        let (run, mut stopping) = (self.run.clone(), self.stopping.clone());
        self.runtime.spawn(async move {
            let is_over = tokio::select! {
                // Runs that a shutdown of the host interrupts continue after the next start, so
                // they are not cancelled.
                biased;
                _ = stopping.wait_for(|stopping| *stopping) => return,
                _ = engine.wait_ended(&run) => true,
                () = tokio::time::sleep(grace) => false,
            };
            if clients.remove_if_abandoned(&run.run, last_client) && !is_over {
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

    const GRACE: Duration = Duration::from_secs(3);

    fn run() -> RunId {
        RunId::new("r").unwrap()
    }

    #[test]
    fn last_disconnect_starts_the_grace_period() {
        let clients = RunClients::default();
        clients.connect(&run(), Some(GRACE));
        clients.connect(&run(), None);
        assert_eq!(clients.disconnect(&run(), false), None);
        assert_eq!(
            clients.disconnect(&run(), false),
            Some((GRACE, 2)),
            "the period of another client"
        );
        clients.connect(&run(), None);
        assert!(!clients.remove_if_abandoned(&run(), 2), "a client is connected");
        assert_eq!(clients.disconnect(&run(), false), Some((GRACE, 3)));
        assert!(!clients.remove_if_abandoned(&run(), 2), "a client has connected since");
        assert!(clients.remove_if_abandoned(&run(), 3));
        assert!(clients.lock().runs.is_empty());
    }

    #[test]
    fn earlier_grace_period_does_not_cancel_the_run_of_a_later_client() {
        let clients = RunClients::default();
        clients.connect(&run(), Some(GRACE));
        let (_, old) = clients.disconnect(&run(), false).unwrap();
        clients.connect(&run(), Some(GRACE));
        assert_eq!(clients.disconnect(&run(), true), None);
        clients.connect(&run(), Some(GRACE));
        let (_, new) = clients.disconnect(&run(), false).unwrap();
        assert!(!clients.remove_if_abandoned(&run(), old));
        assert!(clients.remove_if_abandoned(&run(), new));
    }

    #[test]
    fn disconnect_grace_period_has_a_maximum() {
        let clients = RunClients::default();
        clients.connect(&run(), Some(Duration::MAX));
        assert_eq!(clients.disconnect(&run(), false), Some((MAX_DISCONNECT_GRACE, 1)));
    }

    #[test]
    fn ended_runs_and_runs_without_a_grace_period_are_removed() {
        let clients = RunClients::default();
        for (cancel_after, is_over) in [(Some(GRACE), true), (None, false)] {
            clients.connect(&run(), cancel_after);
            assert_eq!(clients.disconnect(&run(), is_over), None);
            assert!(clients.lock().runs.is_empty());
        }
    }
}
