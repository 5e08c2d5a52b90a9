//! Heartbeats of a task, for its idle timeout.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use wattle_graph::definition::HeartbeatSource;

/// Time of a task's last heartbeat. A heartbeat of a task in a subgraph also counts for the parent
/// task.
#[derive(Debug)]
pub(crate) struct TaskHeartbeat {
    started: Instant,
    /// Milliseconds from `started` to the last heartbeat.
    last_ms: AtomicU64,
    source: HeartbeatSource,
    parent: Option<Arc<TaskHeartbeat>>,
}

impl TaskHeartbeat {
    /// Creates the heartbeat of a task that starts now. `parent` is the heartbeat of the parent
    /// task.
    pub(crate) fn new(source: HeartbeatSource, parent: Option<Arc<Self>>) -> Arc<Self> {
        let (started, last_ms) = (Instant::now(), AtomicU64::new(0));
        Arc::new(Self { started, last_ms, source, parent })
    }

    /// Records a host call, its result or a delta, which are heartbeats with `refresh = "auto"`
    /// only.
    pub(crate) fn on_call(&self) {
        if self.source == HeartbeatSource::Auto {
            self.mark();
        }
        if let Some(parent) = &self.parent {
            parent.on_call();
        }
    }

    /// Records an emitted event, which is always a heartbeat.
    pub(crate) fn on_emit(&self) {
        self.mark();
        if let Some(parent) = &self.parent {
            parent.on_emit();
        }
    }

    /// Waits until no heartbeat was recorded for `idle`.
    pub(crate) async fn wait_idle(&self, idle: Duration) {
        loop {
            let last = Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
            let due = self.started + last + idle;
            if due <= Instant::now() {
                return;
            }
            sleep_until(due).await;
        }
    }

    fn mark(&self) {
        let now_ms = self.started.elapsed().as_millis() as u64;
        self.last_ms.fetch_max(now_ms, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_millis(20);

    /// Returns true if a sign counts as a heartbeat.
    async fn counts(source: HeartbeatSource, sign: fn(&TaskHeartbeat)) -> bool {
        let heartbeat = TaskHeartbeat::new(source, None);
        tokio::time::sleep(PAUSE).await;
        sign(&heartbeat);
        heartbeat.last_ms.load(Ordering::Relaxed) > 0
    }

    #[tokio::test(start_paused = true)]
    async fn host_calls_are_heartbeats_only_with_auto_refresh() {
        assert!(counts(HeartbeatSource::Auto, TaskHeartbeat::on_call).await);
        assert!(counts(HeartbeatSource::Auto, TaskHeartbeat::on_emit).await);
        assert!(counts(HeartbeatSource::Heartbeat, TaskHeartbeat::on_emit).await);
        assert!(!counts(HeartbeatSource::Heartbeat, TaskHeartbeat::on_call).await);
    }

    #[tokio::test(start_paused = true)]
    async fn heartbeat_restarts_the_idle_timeout() {
        let heartbeat = TaskHeartbeat::new(HeartbeatSource::Auto, None);
        let signs = async {
            tokio::time::sleep(PAUSE).await;
            heartbeat.on_call();
        };
        tokio::join!(heartbeat.wait_idle(PAUSE * 2), signs);
        assert_eq!(heartbeat.started.elapsed(), PAUSE * 3);
    }

    #[tokio::test(start_paused = true)]
    async fn heartbeat_in_a_subgraph_counts_for_the_parent_task() {
        let parent = TaskHeartbeat::new(HeartbeatSource::Heartbeat, None);
        let heartbeat = TaskHeartbeat::new(HeartbeatSource::Auto, Some(parent.clone()));
        tokio::time::sleep(PAUSE).await;
        heartbeat.on_call();
        assert_eq!(parent.last_ms.load(Ordering::Relaxed), 0);
        heartbeat.on_emit();
        assert!(parent.last_ms.load(Ordering::Relaxed) > 0);
    }
}
