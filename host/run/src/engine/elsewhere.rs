//! Waits for, cancels and drains runs that other hosts execute.
//!
//! Only the host that executes a run can cancel or drain it. Other hosts send it a signal through
//! the store. Signals can be lost, so the sender repeats a signal until it has taken effect.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::broadcast;
use wattle_graph::event::RunStatus;
use wattle_graph::failure::Failure;
use wattle_graph::id::{RunId, ThreadId};
use wattle_graph::principal::Principal;

use super::{Active, Engine, Inner, no_run, shutting_down};
use crate::hostcall::runs::RunRef;
use crate::ports::store::{Signal, StoreError, ThreadStatus};
use crate::view::store_failure;

/// Delay before the status of a run on another host is read again, and before the first repetition
/// of a drain signal.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// Upper bound of the delay between two drain signals for one run. The delay doubles with each
/// signal, because a superstep may take minutes and signals are rarely lost.
const ASK_AGAIN_LATER: Duration = Duration::from_secs(30);

/// Runs of other hosts for which this host repeats drain signals.
#[derive(Default)]
pub(super) struct Asking(Mutex<BTreeSet<RunId>>);

impl Asking {
    /// Adds a run. Returns false if the set already contains the run.
    fn begin(&self, run: &RunId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone())
    }

    fn end(&self, run: &RunId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(run);
    }
}

impl Engine {
    /// Waits until a run on another host has stopped. If that host dies meanwhile,
    /// [`Engine::recover`] continues the run on this or another host.
    pub(super) async fn ends_elsewhere(&self, run: &RunRef) -> Result<(), Failure> {
        self.over_elsewhere(run, None).await
    }

    /// Sends cancel signals to the host that executes a run, on behalf of a principal, until the
    /// run has stopped.
    pub(super) async fn cancel_elsewhere(
        &self,
        run: &RunRef,
        principal: Option<&Principal>,
    ) -> Result<(), Failure> {
        let signal = Signal::Cancel { run: run.run.clone(), principal: principal.cloned() };
        self.over_elsewhere(run, Some(&signal)).await
    }

    async fn over_elsewhere(&self, run: &RunRef, signal: Option<&Signal>) -> Result<(), Failure> {
        let store = &self.0.ports.store;
        let mut news = store.watch(&run.thread);
        loop {
            news.borrow_and_update();
            let record = store.run(&run.run).await.map_err(store_failure)?;
            let Some(record) = record.filter(|record| record.thread == run.thread) else {
                return Err(no_run(run));
            };
            if record.status != RunStatus::Running {
                return Ok(());
            }
            if let Some(Signal::Cancel { principal, .. }) = signal
                && self.here(&run.run).is_some()
            {
                return Box::pin(self.cancel_begun(run, principal.as_ref())).await;
            }
            if let Some(signal) = signal {
                store.send_signal(signal).await.map_err(store_failure)?;
            }
            // Notifications can be lost with a connection, so the loop also polls. The channel
            // closes when the thread is deleted; a new thread with the same id has a new channel.
            let changed = tokio::select! {
                changed = tokio::time::timeout(ASK_AGAIN, news.changed()) => changed,
                () = self.0.halting.cancelled() => return Err(shutting_down()),
            };
            if let Ok(Err(_ended)) = changed {
                tokio::time::sleep(ASK_AGAIN).await;
                news = store.watch(&run.thread);
            }
        }
    }

    /// Sends drain signals to the host that executes a run, whichever it is at the time, until the
    /// run stops. Returns after the first signal.
    pub(super) async fn drain_elsewhere(&self, run: &RunRef) -> Result<(), Failure> {
        if !self.0.leases.asking.begin(&run.run) {
            return Ok(());
        }
        let asked = self.ask_to_drain(run).await;
        if let Ok(true) = asked {
            self.0.runtime.spawn(keep_asking(Arc::downgrade(&self.0), run.clone()));
            return Ok(());
        }
        self.0.leases.asking.end(&run.run);
        asked.map(drop).map_err(store_failure)
    }

    /// Sends a drain signal. Returns false if no further signal is needed.
    async fn ask_to_drain(&self, run: &RunRef) -> Result<bool, StoreError> {
        if let Some(active) = self.here(&run.run) {
            active.drain.cancel();
            return Ok(false);
        }
        let store = &self.0.ports.store;
        let head = store.thread(&run.thread).await?;
        let record = head.map(|head| head.record);
        let is_at_work = record.is_some_and(|record| {
            record.status == ThreadStatus::Running && record.run.as_ref() == Some(&run.run)
        });
        if is_at_work {
            store.send_signal(&Signal::Drain(run.run.clone())).await?;
        }
        Ok(is_at_work)
    }

    /// Returns the entry of a run that is active in this process.
    fn here(&self, run: &RunId) -> Option<Active> {
        self.active().values().find(|active| active.run == *run).cloned()
    }
}

async fn keep_asking(engine: Weak<Inner>, run: RunRef) {
    let mut pause = ASK_AGAIN;
    loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(ASK_AGAIN_LATER);
        let Some(engine) = engine.upgrade().map(Engine) else { return };
        match engine.ask_to_drain(&run).await {
            Ok(true) => {}
            Ok(false) => return engine.0.leases.asking.end(&run.run),
            Err(error) => {
                tracing::debug!(run = %run.run, %error, "cannot send the drain signal; retrying");
            }
        }
    }
}

impl Engine {
    /// Returns true if a run that is not active in this process may be active on another host.
    pub(super) fn may_be_elsewhere(&self, thread: &ThreadId) -> bool {
        self.0.ports.store.is_shared() && self.set_aside(thread).is_none()
    }

    /// Sends a signal to the hosts that share the store. These hosts also find the change by
    /// polling, so a failure to send is only logged.
    pub(super) async fn notify(&self, signal: &Signal) {
        let store = &self.0.ports.store;
        if store.is_shared()
            && let Err(error) = store.send_signal(signal).await
        {
            tracing::debug!(?signal, %error, "cannot send a signal to other hosts");
        }
    }

    /// Starts to receive the signals of other hosts in the background.
    pub(super) fn keep_listening(&self) {
        if self.0.leases.is_listening.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(signals) = self.0.ports.store.signals() {
            self.0.runtime.spawn(listen(Arc::downgrade(&self.0), signals));
        }
    }
}

/// Executes the signals of other hosts.
async fn listen(engine: Weak<Inner>, mut signals: broadcast::Receiver<Signal>) {
    loop {
        let signal = match signals.recv().await {
            Ok(signal) => signal,
            Err(broadcast::error::RecvError::Lagged(_)) => continue,
            Err(broadcast::error::RecvError::Closed) => return,
        };
        let Some(engine) = engine.upgrade().map(Engine) else { return };
        match signal {
            Signal::Cancel { run, principal } => {
                if let Some(active) = engine.here(&run) {
                    active.cancel.cancel_for(principal);
                }
            }
            Signal::Drain(run) => {
                if let Some(active) = engine.here(&run) {
                    active.drain.cancel();
                }
            }
            Signal::Enqueued { thread, due_ms, host } => {
                engine.look_at(&thread, due_ms, host.as_ref());
                engine.keep_dispatching();
            }
            Signal::HandedOver => engine.recover_handed_over(),
        }
    }
}
