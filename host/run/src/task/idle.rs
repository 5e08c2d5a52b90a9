//! Signs of life of a task, for its idle timeout.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use wattle_graph::definition::Refresh;

/// When a task last showed that it is alive. A task of a nested graph shows it for the task that
/// the graph runs as, too.
#[derive(Debug)]
pub(crate) struct Alive {
    began: Instant,
    /// Milliseconds from `began` to the last sign.
    last_ms: AtomicU64,
    refresh: Refresh,
    above: Option<Arc<Alive>>,
}

impl Alive {
    /// A task that begins now. `above` is the task that its graph runs as.
    pub(crate) fn new(refresh: Refresh, above: Option<Arc<Self>>) -> Arc<Self> {
        let (began, last_ms) = (Instant::now(), AtomicU64::new(0));
        Arc::new(Self { began, last_ms, refresh, above })
    }

    /// The guest called the host, was answered, or a piece of an answer arrived.
    pub(crate) fn called(&self) {
        if self.refresh == Refresh::Auto {
            self.mark();
        }
        if let Some(above) = &self.above {
            above.called();
        }
    }

    /// The guest emitted an event.
    pub(crate) fn emitted(&self) {
        self.mark();
        if let Some(above) = &self.above {
            above.emitted();
        }
    }

    /// Waits until there was no sign for that long.
    pub(crate) async fn silent_for(&self, idle: Duration) {
        loop {
            let last = Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
            let due = self.began + last + idle;
            if due <= Instant::now() {
                return;
            }
            sleep_until(due).await;
        }
    }

    fn mark(&self) {
        let now_ms = self.began.elapsed().as_millis() as u64;
        self.last_ms.fetch_max(now_ms, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_millis(20);

    /// Whether a sign counts.
    async fn counts(refresh: Refresh, sign: fn(&Alive)) -> bool {
        let alive = Alive::new(refresh, None);
        tokio::time::sleep(PAUSE).await;
        sign(&alive);
        alive.last_ms.load(Ordering::Relaxed) > 0
    }

    #[tokio::test(start_paused = true)]
    async fn only_events_of_its_own_are_heartbeats() {
        assert!(counts(Refresh::Auto, Alive::called).await);
        assert!(counts(Refresh::Auto, Alive::emitted).await);
        assert!(counts(Refresh::Heartbeat, Alive::emitted).await);
        assert!(!counts(Refresh::Heartbeat, Alive::called).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sign_of_life_begins_the_time_anew() {
        let alive = Alive::new(Refresh::Auto, None);
        let signs = async {
            tokio::time::sleep(PAUSE).await;
            alive.called();
        };
        tokio::join!(alive.silent_for(PAUSE * 2), signs);
        assert_eq!(alive.began.elapsed(), PAUSE * 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_in_a_nested_graph_shows_it_for_the_task_above() {
        let above = Alive::new(Refresh::Heartbeat, None);
        let alive = Alive::new(Refresh::Auto, Some(above.clone()));
        tokio::time::sleep(PAUSE).await;
        alive.called();
        assert_eq!(above.last_ms.load(Ordering::Relaxed), 0);
        alive.emitted();
        assert!(above.last_ms.load(Ordering::Relaxed) > 0);
    }
}
