//! The signal that wakes the cron scheduler.

use tokio::sync::Notify;

/// A signal from request handlers to the cron scheduler.
#[derive(Default)]
pub(crate) struct CronSignal {
    wake: Notify,
}

impl CronSignal {
    /// Wakes the scheduler, because a due time may have become earlier.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits until the scheduler is woken.
    pub(super) async fn wait(&self) {
        self.wake.notified().await;
    }
}
