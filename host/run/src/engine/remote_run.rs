//! Waits for, cancels and drains runs that other hosts execute.
//!
//! Only the host that executes a run can cancel or drain the run. Other hosts send this host a
//! notification through the store. Notifications can be lost, so the sender repeats a notification
//! until it has taken effect.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::broadcast;
use wattle_graph::event::RunStatus;
use wattle_graph::failure::Failure;
use wattle_graph::id::{RunId, ThreadId};
use wattle_graph::principal::Principal;

use super::{ActiveThread, Engine, EngineInner, run_not_found, shutting_down};
use crate::hostcall::runs::RunRef;
use crate::ports::store::{Notification, StoreError, ThreadStatus};

/// Delay before the status of a run on another host is read again, and before the first repetition
/// of a drain notification.
const RESEND_INTERVAL: Duration = Duration::from_secs(2);

/// Upper bound of the delay between two drain notifications for one run. The delay doubles with
/// each notification, because a superstep may take minutes and notifications are rarely lost.
const MAX_RESEND_INTERVAL: Duration = Duration::from_secs(30);

impl Engine {
    /// Waits until a run on another host has stopped. If that host dies meanwhile,
    /// [`Engine::recover`] continues the run on this or another host.
    pub(super) async fn wait_remote(&self, run: &RunRef) -> Result<(), Failure> {
        self.await_remote_end(run, None).await
    }

    /// Sends cancel notifications to the host that executes a run, on behalf of a principal, until
    /// the run has stopped.
    pub(super) async fn cancel_remote(
        &self,
        run: &RunRef,
        principal: Option<&Principal>,
    ) -> Result<(), Failure> {
        let cancel = Notification::Cancel { run: run.run.clone(), principal: principal.cloned() };
        self.await_remote_end(run, Some(&cancel)).await
    }

    async fn await_remote_end(
        &self,
        run: &RunRef,
        notification: Option<&Notification>,
    ) -> Result<(), Failure> {
        let store = &self.0.ports.store;
        let mut watch = store.watch(&run.thread);
        loop {
            watch.borrow_and_update();
            let record = store.run(&run.run).await?;
            let Some(record) = record.filter(|record| record.thread == run.thread) else {
                return Err(run_not_found(run));
            };
            if record.status != RunStatus::Running {
                return Ok(());
            }
            if let Some(Notification::Cancel { principal, .. }) = notification
                && self.local_run(&run.run).is_some()
            {
                return Box::pin(self.cancel_started(run, principal.as_ref())).await;
            }
            if let Some(notification) = notification {
                store.send_notification(notification).await?;
            }
            // Changes are missed while the store has no connection, so the loop also polls. The
            // channel closes when the thread is deleted; a new thread with the same id has a new
            // channel.
            let changed = tokio::select! {
                changed = tokio::time::timeout(RESEND_INTERVAL, watch.changed()) => changed,
                () = self.0.shutdown.wait() => return Err(shutting_down()),
            };
            if let Ok(Err(_ended)) = changed {
                tokio::time::sleep(RESEND_INTERVAL).await;
                watch = store.watch(&run.thread);
            }
        }
    }

    /// Sends drain notifications until a run stops, each to the host that executes the run at the
    /// time. Returns after the first notification.
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
        asked?;
        Ok(())
    }

    /// Sends a drain notification. Returns false if no further notification is needed.
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
                tracing::debug!(run = %run.run, %error, "cannot send the drain notification; retrying");
            }
        }
    }
}

impl Engine {
    /// Returns true if a run that is not active in this process may be active on another host.
    pub(super) fn may_run_remotely(&self, thread: &ThreadId) -> bool {
        self.0.ports.store.is_shared() && self.set_aside(thread).is_none()
    }

    /// Sends a notification to the hosts that share the store. These hosts also find the change by
    /// polling, so a failure to send is only logged.
    pub(super) async fn notify(&self, notification: &Notification) {
        let store = &self.0.ports.store;
        if store.is_shared()
            && let Err(error) = store.send_notification(notification).await
        {
            tracing::debug!(?notification, %error, "cannot send a notification to other hosts");
        }
    }

    /// Starts to receive the notifications of other hosts in the background.
    pub(super) fn start_listener(&self) {
        if self.0.leases.is_listening.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(notifications) = self.0.ports.store.notifications() {
            self.0.runtime.spawn(receive_notifications(Arc::downgrade(&self.0), notifications));
        }
    }
}

/// Executes the notifications of other hosts.
async fn receive_notifications(
    engine: Weak<EngineInner>,
    mut notifications: broadcast::Receiver<Notification>,
) {
    loop {
        let notification = match notifications.recv().await {
            Ok(notification) => notification,
            Err(broadcast::error::RecvError::Lagged(_)) => continue,
            Err(broadcast::error::RecvError::Closed) => return,
        };
        let Some(engine) = engine.upgrade().map(Engine) else { return };
        match notification {
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
