//! Takeover of the webhooks of dead hosts by the live hosts that share the store.
//!
//! A host is live while its heartbeat is younger than its lease duration and it is not shutting
//! down. A host without a heartbeat can still be running. A host that takes over a webhook
//! therefore writes its own id into the record by compare-and-swap. Each host checks that the
//! record still contains its id before each step of a delivery.

use std::collections::BTreeSet;
use std::time::Duration;

use wattle_graph::failure::Failure;
use wattle_run::engine::Engine;
use wattle_run::ports::store::LeaseHolder;

use crate::webhooks::Webhooks;

/// Maximum pause between two attempts to take over webhooks. If a host dies while this host cannot
/// list webhooks, a later attempt finds the webhooks of the dead host.
const MAX_RECONCILE_INTERVAL: Duration = Duration::from_mins(1);

/// Takes over the webhooks of hosts that are not live, and starts the delivery of the webhooks of
/// this host that no task delivers yet.
pub(crate) async fn reconcile(webhooks: &Webhooks) {
    // List the webhooks before the hosts. Otherwise a host that starts between the two lists could
    // have a listed webhook without being in the list of live hosts.
    let listed = webhooks.list().await;
    let live = match live_hosts(webhooks.engine()).await {
        Ok(live) => live,
        Err(failure) => {
            tracing::warn!(%failure, "failed to list live hosts");
            return;
        }
    };
    let takeover = async { webhooks.take_over(listed?, &live).await };
    if let Err(failure) = takeover.await {
        tracing::error!(%failure, "failed to take over webhooks of other hosts");
    }
}

/// Returns the hosts whose webhooks this host does not take over. A host that does not share its
/// store is the only live host: any other host id in a webhook is from an earlier start of this
/// host.
async fn live_hosts(engine: &Engine) -> Result<BTreeSet<LeaseHolder>, Failure> {
    if engine.is_shared() {
        engine.heartbeat().await?;
    }
    Ok(engine.working_hosts().borrow().clone())
}

/// Spawns a task that calls [`reconcile`] whenever a host dies, until this host shuts down.
pub(crate) fn spawn_reconciler(webhooks: &Webhooks) {
    if !webhooks.engine().is_shared() {
        return;
    }
    let webhooks = webhooks.clone();
    tokio::spawn(async move {
        let mut stopping = webhooks.stopping().clone();
        tokio::select! {
            () = run_reconciler(&webhooks) => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    });
}

async fn run_reconciler(webhooks: &Webhooks) {
    let mut hosts = webhooks.engine().working_hosts();
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
        reconcile(webhooks).await;
    }
}
