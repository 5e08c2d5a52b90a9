//! Takeover of the webhooks of dead hosts by the live hosts that share the store.
//!
//! A host is live while its heartbeat is younger than its lease duration and it is not shutting
//! down. A host without a heartbeat can still be running. A host that takes over a webhook
//! therefore writes its own id into the record by compare-and-swap. Each host checks that the
//! record still contains its id before each step of a delivery.

use std::collections::BTreeSet;
use std::time::Duration;

use wattle_graph::failure::Failure;
use wattle_run::ports::store::LeaseHolder;

use crate::state::AgentServer;
use crate::webhooks;

/// Maximum pause between two attempts to take over webhooks. The attempts find the webhooks of a
/// host that died while this host failed to list webhooks.
const MAX_RECONCILE_INTERVAL: Duration = Duration::from_mins(1);

impl AgentServer {
    /// Returns the hosts whose webhooks are not taken over. A host that does not share its store is
    /// the only live host: any other host id in a webhook is from an earlier start of this host.
    async fn live_hosts(&self) -> Result<BTreeSet<LeaseHolder>, Failure> {
        let engine = self.engine();
        if engine.is_shared() {
            engine.heartbeat().await?;
        }
        Ok(engine.working_hosts().borrow().clone())
    }

    /// Takes over the webhooks of hosts that are not live, and starts the delivery of those
    /// webhooks of this host that are not being delivered yet. The background task of a host that
    /// shares its store calls this method whenever another host dies.
    pub async fn reconcile(&self) {
        // List the webhooks before the hosts. Otherwise a host that starts in between would have a
        // webhook but not be in the list of live hosts.
        let listed = webhooks::list(self.engine()).await;
        let live = match self.live_hosts().await {
            Ok(live) => live,
            Err(failure) => {
                tracing::warn!(%failure, "failed to list live hosts");
                return;
            }
        };
        let takeover = async { webhooks::take_over(self, listed?, &live).await };
        if let Err(failure) = takeover.await {
            tracing::error!(%failure, "failed to take over webhooks of other hosts");
        }
    }

    /// Spawns a task that calls [`Self::reconcile`] whenever a host dies, until this host shuts
    /// down.
    pub(crate) fn spawn_reconciler(&self) {
        if !self.engine().is_shared() {
            return;
        }
        let server = self.clone();
        tokio::spawn(async move {
            let mut stopping = server.api().stopping.clone();
            tokio::select! {
                () = server.run_reconciler() => {}
                _ = stopping.wait_for(|stopping| *stopping) => {}
            }
        });
    }

    async fn run_reconciler(&self) {
        let mut hosts = self.engine().working_hosts();
        let mut known = hosts.borrow_and_update().clone();
        loop {
            let host_died = async {
                // The sender exists as long as the engine.
                while hosts.changed().await.is_ok() {
                    let before = std::mem::replace(&mut known, hosts.borrow_and_update().clone());
                    if !before.is_subset(&known) {
                        break;
                    }
                }
            };
            // Reconcile after this time even if no host died.
            let _ = tokio::time::timeout(MAX_RECONCILE_INTERVAL, host_died).await;
            self.reconcile().await;
        }
    }
}
