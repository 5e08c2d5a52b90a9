//! Takeover of the webhooks of hosts that died, by the live hosts that share the store.
//!
//! A host is live while its heartbeat is younger than its lease duration and it is not shutting
//! down. A host without a heartbeat may still be running. A host that takes over a webhook
//! therefore replaces the host name in its record by compare-and-swap, and each host checks that
//! the record still has its name before it does anything.

use std::collections::BTreeSet;
use std::time::Duration;

use wattle_graph::failure::Failure;
use wattle_run::ports::store::Holder;

use crate::agents::Agents;
use crate::webhooks;

/// Pause between two lists of all webhooks while no host dies. It covers a host that died while
/// this host could not list them.
const LIST_ALL: Duration = Duration::from_mins(1);

impl Agents {
    /// Returns the hosts whose webhooks are not taken over. A host that does not share its store is
    /// alone: a webhook with another name is from before its start.
    async fn live_hosts(&self) -> Result<BTreeSet<Holder>, Failure> {
        let engine = self.engine();
        if engine.is_shared() {
            engine.heartbeat().await?;
        }
        Ok(engine.working_hosts().borrow().clone())
    }

    /// Takes over the webhooks of hosts that are not live, and delivers those of this host that it
    /// does not deliver yet. A host that shares its store calls this by itself when another host
    /// dies.
    pub async fn reconcile(&self) {
        // List the webhooks before the hosts: a host that starts in between is then live.
        let hooks = webhooks::listed(self).await;
        let live = match self.live_hosts().await {
            Ok(live) => live,
            Err(failure) => {
                tracing::warn!(%failure, "failed to list live hosts");
                return;
            }
        };
        let taken = async { webhooks::take_over(self, hooks?, &live).await };
        if let Err(failure) = taken.await {
            tracing::error!(%failure, "failed to take over webhooks of other hosts");
        }
    }

    /// Spawns a task that calls [`Self::reconcile`] whenever a host dies, until this host shuts
    /// down.
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
                // The sender exists as long as the engine.
                while hosts.changed().await.is_ok() {
                    let before = std::mem::replace(&mut known, hosts.borrow_and_update().clone());
                    if !before.is_subset(&known) {
                        break;
                    }
                }
            };
            // Reconcile even if no host died for that long.
            let _ = tokio::time::timeout(LIST_ALL, host_died).await;
            self.reconcile().await;
        }
    }
}
