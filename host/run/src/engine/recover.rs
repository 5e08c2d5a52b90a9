//! Going on with runs that were cut: by a crash or a shutdown of this host, or of one that shares the
//! store.

use std::time::Duration;

use futures::StreamExt as _;
use wattle_graph::event::{RunReason, RunStatus};
use wattle_graph::failure::{Failure, code};

use super::{Engine, Inner, new_run_id};
use crate::ports::Ports;
use crate::ports::store::{LEASE_MS, ThreadRecord, ThreadStatus};
use crate::view::store_failure;

/// Runs that are gone on with at once: each waits for the store a few times before it begins.
const AT_ONCE: usize = 16;

/// Shortest pause between two looks. With many hosts some lease would run out all the time, unless
/// its host is heard of, which nearly always it is.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);

impl Engine {
    /// Goes on with the runs that a crash or a shutdown cut, on this host or on one that shares the
    /// store and is silent. Answers how many.
    pub async fn recover(&self) -> usize {
        let cut = match self.0.ports.store.abandoned(self.0.leases.holder()).await {
            Ok(cut) => cut,
            Err(error) => {
                tracing::error!(%error, "cannot look for runs to recover");
                return 0;
            }
        };
        let cut = cut.into_iter().filter(|record| !self.is_active(&record.id));
        let recoveries = futures::stream::iter(cut.map(|record| self.recover_or_tell(record)));
        let recovered = recoveries.buffer_unordered(AT_ONCE);
        recovered.fold(0, |sum, recovered| async move { sum + usize::from(recovered) }).await
    }

    /// Goes on with runs that other hosts leave behind, for as long as it is polled. It looks when
    /// the next of their leases runs out: a host that lives has been heard of by then.
    pub async fn keep_recovering(&self) {
        let Inner { ports: Ports { store, .. }, leases, .. } = &*self.0;
        let longest = Duration::from_millis(store.lease_ms().min(LEASE_MS));
        loop {
            self.recover().await;
            let next = store.next_lapse(leases.holder()).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "cannot look when leases of other hosts end");
                None
            });
            // A host that begins meanwhile may have a shorter lease than this one.
            tokio::time::sleep(next.unwrap_or(longest).clamp(SHORTEST_PAUSE, longest)).await;
        }
    }

    async fn recover_or_tell(&self, record: ThreadRecord) -> bool {
        let thread = record.id.clone();
        match self.recover_thread(record).await {
            Ok(is_recovered) => return is_recovered,
            Err(failure) if failure.code == code::BUSY => {
                tracing::debug!(%thread, "a run is at work elsewhere");
            }
            Err(failure) => tracing::error!(%thread, %failure, "cannot recover a run"),
        }
        false
    }

    /// `false` if the run has ended meanwhile, on the host that was at work on it.
    async fn recover_thread(&self, record: ThreadRecord) -> Result<bool, Failure> {
        let run = record.run.clone().unwrap_or_else(new_run_id);
        let slot = self.claim(&record.id, run.clone()).await?;
        let store = &self.0.ports.store;
        let Some(head) = self.live_thread(&record.id).await? else { return Ok(false) };
        if head.record.status != ThreadStatus::Running || head.record.run != record.run {
            return Ok(false);
        }
        let known = store.run(&run).await.map_err(store_failure)?;
        if known.as_ref().is_some_and(|run| run.status != RunStatus::Running) {
            return Ok(false);
        }
        let run = known.unwrap_or_else(|| self.new_run(run, &head, None));
        self.go_on(slot, head, run, RunReason::Recovery, Vec::new()).await?;
        Ok(true)
    }
}
