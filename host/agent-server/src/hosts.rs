//! Webhooks of hosts that died: the live hosts that share the store take them over.
//!
//! A host is live while its heartbeat is younger than its lease, and it is not shutting down. A host
//! that is silent may still be at work. So a host that takes a webhook over writes its own name in
//! place of the other's, which only one can, and each looks whether its name still stands there before
//! it does anything.

use std::collections::BTreeSet;
use std::time::Duration;

use wattle_graph::failure::Failure;
use wattle_run::ports::store::Holder;

use crate::agents::Agents;
use crate::webhooks;

/// Pause between two lists of all webhooks while no host dies: for one that died while this host could
/// not look.
const LIST_ALL: Duration = Duration::from_mins(1);

impl Agents {
    /// Hosts whose webhooks nobody else takes over. A host that shares its store with nobody is alone:
    /// a webhook with another name is from before its start.
    async fn live_hosts(&self) -> Result<BTreeSet<Holder>, Failure> {
        let engine = self.engine();
        if engine.is_shared() {
            engine.heartbeat().await?;
        }
        Ok(engine.working_hosts().borrow().clone())
    }

    /// Takes over the webhooks of hosts that are not live, and lets go what others have taken over. A
    /// server that shares its store does so by itself when a host dies.
    pub async fn reconcile(&self) {
        // First the webhooks, then the hosts: one that starts in between is live.
        let hooks = webhooks::listed(self).await;
        let live = match self.live_hosts().await {
            Ok(live) => live,
            Err(failure) => {
                tracing::warn!(%failure, "live hosts cannot be listed");
                return;
            }
        };
        let taken = async { webhooks::take_over(self, hooks?, &live).await };
        if let Err(failure) = taken.await {
            tracing::error!(%failure, "webhooks of other hosts cannot be taken over");
        }
    }

    /// Does that whenever a host dies, until this one stops.
    pub(crate) fn keep_reconciling(&self) {
        if !self.engine().is_shared() {
            return;
        }
        let agents = self.clone();
        tokio::spawn(async move {
            let mut stopping = agents.api().stopping.clone();
            tokio::select! {
                () = agents.reconcile_for_ever() => {}
                _ = stopping.wait_for(|stopping| *stopping) => {}
            }
        });
    }

    async fn reconcile_for_ever(&self) {
        let mut hosts = self.engine().working_hosts();
        let mut known = hosts.borrow_and_update().clone();
        loop {
            let host_died = async {
                // The sender is there as long as the engine is.
                while hosts.changed().await.is_ok() {
                    let before = std::mem::replace(&mut known, hosts.borrow_and_update().clone());
                    if !before.is_subset(&known) {
                        break;
                    }
                }
            };
            // Also if no host died for that long.
            let _ = tokio::time::timeout(LIST_ALL, host_died).await;
            self.reconcile().await;
        }
    }
}
