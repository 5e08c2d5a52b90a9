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

use super::{ActiveThread, Engine, EngineInner, run_not_found, shutting_down};
use crate::hostcall::runs::RunRef;
use crate::ports::store::{Notification, StoreError, ThreadStatus};
use crate::view::store_failure;

/// Delay before the status of a run on another host is read again, and before the first repetition
/// of a drain signal.
const RESEND_INTERVAL: Duration = Duration::from_secs(2);

/// Upper bound of the delay between two drain signals for one run. The delay doubles with each
/// signal, because a superstep may take minutes and signals are rarely lost.
const MAX_RESEND_INTERVAL: Duration = Duration::from_secs(30);

/// Runs of other hosts for which this host repeats drain signals.
#[derive(Default)]
pub(super) struct DrainRequests(Mutex<BTreeSet<RunId>>);

impl DrainRequests {
    /// Adds a run. Returns false if the set already contains the run.
    fn insert(&self, run: &RunId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone())
    }

    fn remove(&self, run: &RunId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(run);
    }
}

impl Engine {
    /// Waits until a run on another host has stopped. If that host dies meanwhile,
    /// [`Engine::recover`] continues the run on this or another host.
    pub(super) async fn wait_remote(&self, run: &RunRef) -> Result<(), Failure> {
        self.await_remote_end(run, None).await
    }

    /// Sends cancel signals to the host that executes a run, on behalf of a principal, until the
    /// run has stopped.
    pub(super) async fn cancel_remote(
        &self,
        run: &RunRef,
        principal: Option<&Principal>,
    ) -> Result<(), Failure> {
        let signal = Notification::Cancel { run: run.run.clone(), principal: principal.cloned() };
        self.await_remote_end(run, Some(&signal)).await
    }

    async fn await_remote_end(
        &self,
        run: &RunRef,
        signal: Option<&Notification>,
    ) -> Result<(), Failure> {
        let store = &self.0.ports.store;
        let mut news = store.watch(&run.thread);
        loop {
            news.borrow_and_update();
            let record = store.run(&run.run).await.map_err(store_failure)?;
            let Some(record) = record.filter(|record| record.thread == run.thread) else {
                return Err(run_not_found(run));
            };
            if record.status != RunStatus::Running {
                return Ok(());
            }
            if let Some(Notification::Cancel { principal, .. }) = signal
                && self.local_run(&run.run).is_some()
            {
                return Box::pin(self.cancel_started(run, principal.as_ref())).await;
            }
            if let Some(signal) = signal {
                store.send_notification(signal).await.map_err(store_failure)?;
            }
            // Notifications can be lost with a connection, so the loop also polls. The channel
            // closes when the thread is deleted; a new thread with the same id has a new channel.
            let changed = tokio::select! {
                changed = tokio::time::timeout(RESEND_INTERVAL, news.changed()) => changed,
                () = self.0.shutdown.wait() => return Err(shutting_down()),
            };
            if let Ok(Err(_ended)) = changed {
                tokio::time::sleep(RESEND_INTERVAL).await;
                news = store.watch(&run.thread);
            }
        }
    }

    /// Sends drain signals to the host that executes a run, whichever it is at the time, until the
    /// run stops. Returns after the first signal.
    pub(super) async fn drain_remote(&self, run: &RunRef) -> Result<(), Failure> {
        if !self.0.leases.drain_requests.insert(&run.run) {
            return Ok(());
        }
        let asked = self.send_drain(run).await;
        if let Ok(true) = asked {
            self.0.runtime.spawn(resend_drain(Arc::downgrade(&self.0), run.clone()));
            return Ok(());
        }
        self.0.leases.drain_requests.remove(&run.run);
        asked.map(drop).map_err(store_failure)
    }

    /// Sends a drain signal. Returns false if no further signal is needed.
    async fn send_drain(&self, run: &RunRef) -> Result<bool, StoreError> {
        if let Some(active) = self.local_run(&run.run) {
            active.drain.set();
            return Ok(false);
        }
        let store = &self.0.ports.store;
        let head = store.thread(&run.thread).await?;
        let record = head.map(|head| head.record);
        let is_at_work = record.is_some_and(|record| {
            record.status == ThreadStatus::Running && record.run.as_ref() == Some(&run.run)
        });
        if is_at_work {
            store.send_notification(&Notification::Drain(run.run.clone())).await?;
        }
        Ok(is_at_work)
    }

    /// Returns the entry of a run that is active in this process.
    fn local_run(&self, run: &RunId) -> Option<ActiveThread> {
        self.active().values().find(|active| active.run == *run).cloned()
    }
}

async fn resend_drain(engine: Weak<EngineInner>, run: RunRef) {
    let mut pause = RESEND_INTERVAL;
    loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_RESEND_INTERVAL);
        let Some(engine) = engine.upgrade().map(Engine) else { return };
        match engine.send_drain(&run).await {
            Ok(true) => {}
            Ok(false) => return engine.0.leases.drain_requests.remove(&run.run),
            Err(error) => {
                tracing::debug!(run = %run.run, %error, "cannot send the drain signal; retrying");
            }
        }
    }
}

impl Engine {
    /// Returns true if a run that is not active in this process may be active on another host.
    pub(super) fn may_run_remotely(&self, thread: &ThreadId) -> bool {
        self.0.ports.store.is_shared() && self.set_aside(thread).is_none()
    }

    /// Sends a signal to the hosts that share the store. These hosts also find the change by
    /// polling, so a failure to send is only logged.
    pub(super) async fn notify(&self, signal: &Notification) {
        let store = &self.0.ports.store;
        if store.is_shared()
            && let Err(error) = store.send_notification(signal).await
        {
            tracing::debug!(?signal, %error, "cannot send a signal to other hosts");
        }
    }

    /// Starts to receive the signals of other hosts in the background.
    pub(super) fn start_listener(&self) {
        if self.0.leases.is_listening.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(signals) = self.0.ports.store.notifications() {
            self.0.runtime.spawn(receive_notifications(Arc::downgrade(&self.0), signals));
        }
    }
}

/// Executes the signals of other hosts.
async fn receive_notifications(
    engine: Weak<EngineInner>,
    mut signals: broadcast::Receiver<Notification>,
) {
    loop {
        let signal = match signals.recv().await {
            Ok(signal) => signal,
            Err(broadcast::error::RecvError::Lagged(_)) => continue,
            Err(broadcast::error::RecvError::Closed) => return,
        };
        let Some(engine) = engine.upgrade().map(Engine) else { return };
        match signal {
            Notification::Cancel { run, principal } => {
                if let Some(active) = engine.local_run(&run) {
                    active.cancel.set_for(principal);
                }
            }
            Notification::Drain(run) => {
                if let Some(active) = engine.local_run(&run) {
                    active.drain.set();
                }
            }
            Notification::Enqueued { thread, due_ms, caller, host } => {
                engine.schedule_check(&thread, due_ms, caller, host.as_ref());
                engine.start_dispatcher();
            }
            Notification::HandedOver => engine.schedule_handover_scan(),
        }
    }
}
