//! Recovery from failed writes, such as on a full disk, if this host is the only host that uses the
//! store. After a failure, active runs cannot write their logs, and the store may contain pending
//! runs although it reported an error for them. When the store accepts writes again, the host
//! recovers the active runs and schedules the pending runs.
//!
//! Hosts that share a store look for such runs periodically.

use std::sync::{Arc, Weak};
use std::time::Duration;

use wattle_graph::failure::{Failure, code};

use super::write_probe::MIN_PROBE_DELAY;
use super::{Engine, EngineInner, ThreadClaim};
use crate::hostcall::runs::RunRef;
use crate::ports::store::StoreError;

impl ThreadClaim {
    /// Releases the lease of a run that cannot write its log, and arranges its recovery.
    pub(super) async fn hand_over_lost(self, failure: Failure) {
        let run = RunRef { thread: self.thread.clone(), run: self.run.clone() };
        let engine = self.engine.clone();
        self.hand_over().await;
        engine.recover_lost_run(run, failure);
    }
}

impl Engine {
    /// Arranges the recovery of a run that cannot write its log. Does nothing if hosts share the
    /// store, because their periodic scans find such runs.
    fn recover_lost_run(&self, run: RunRef, failure: Failure) {
        if self.is_shared() || self.is_shutting_down() {
            return;
        }
        self.0.recovery.lost_logs().insert(run.thread.clone());
        match failure.code.as_str() {
            // A lease that was lost can be acquired again.
            code::UNAVAILABLE | code::BUSY => self.probe_writes(),
            _ => self.set_run_aside(run, failure),
        }
    }

    /// Converts the error of a write. If the store failed, the data may have been written
    /// nevertheless, so the host looks for the data when the store accepts writes again.
    pub(super) fn write_failure(&self, error: StoreError) -> Failure {
        if matches!(error, StoreError::Backend { .. }) {
            self.probe_writes();
        }
        error.into()
    }

    /// Waits in the background until the store accepts writes, and then looks for the runs that a
    /// failure left behind.
    fn probe_writes(&self) {
        if self.is_shared() {
            return;
        }
        if let Some(pause) = self.0.write_probe.schedule() {
            self.0.runtime.spawn(probe_until_writable(Arc::downgrade(&self.0), pause));
        }
    }

    async fn recover_left_runs(&self) {
        self.0.dispatch.request_list();
        // The recovery after a start may recover some of these runs.
        self.wait_recovered().await;
        if self.recover_all().await.is_err() {
            self.probe_writes();
        }
    }
}

/// See [`Engine::probe_writes`]. The wait does not keep the engine alive.
async fn probe_until_writable(engine: Weak<EngineInner>, pause: Duration) {
    tokio::time::sleep(pause).await;
    loop {
        let Some(engine) = engine.upgrade().map(Engine) else { return };
        if engine.is_shutting_down() {
            return;
        }
        match engine.0.ports.store.check_writable().await {
            Ok(()) => {
                // A failure from here on schedules another check.
                engine.0.write_probe.record_success(pause);
                return engine.recover_left_runs().await;
            }
            Err(error) => tracing::debug!(%error, "the store does not accept writes yet"),
        }
        drop(engine);
        tokio::time::sleep(MIN_PROBE_DELAY).await;
    }
}
