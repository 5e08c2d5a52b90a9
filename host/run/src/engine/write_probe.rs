//! Decides when a host checks whether its store accepts writes again.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Delay before a check whether the store accepts writes.
pub(super) const MIN_PROBE_DELAY: Duration = Duration::from_secs(1);

/// Upper bound of the delay. The delay doubles if the store fails repeatedly, because a run may
/// cost money until each failure.
const MAX_PROBE_DELAY: Duration = Duration::from_mins(1);

/// Time without a failure after which the delay is reset.
const PROBE_DELAY_RESET: Duration = Duration::from_mins(3);

/// The wait until the store accepts writes again.
#[derive(Default)]
pub(super) struct WriteProbe(Mutex<WriteProbeState>);

#[derive(Default)]
struct WriteProbeState {
    is_waiting: bool,
    /// The last delay, and the time at which the store accepted writes after it.
    last: Option<(Duration, Instant)>,
}

impl WriteProbe {
    /// Locks the state. No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, WriteProbeState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the delay before the check of the store; `None` if a check is already scheduled.
    pub(super) fn schedule(&self) -> Option<Duration> {
        let mut state = self.lock();
        if std::mem::replace(&mut state.is_waiting, true) {
            return None;
        }
        Some(match state.last {
            Some((pause, at)) if at.elapsed() < PROBE_DELAY_RESET => {
                (pause * 2).min(MAX_PROBE_DELAY)
            }
            _ => MIN_PROBE_DELAY,
        })
    }

    /// Records that the store accepts writes after a delay of `pause`.
    pub(super) fn record_success(&self, pause: Duration) {
        *self.lock() = WriteProbeState { is_waiting: false, last: Some((pause, Instant::now())) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn retry_delay_doubles_while_the_store_keeps_failing() {
        let mending = WriteProbe::default();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            let pause = mending.schedule().unwrap();
            assert_eq!(mending.schedule(), None, "only one check is scheduled");
            mending.record_success(pause);
            pauses.push(pause.as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        tokio::time::advance(PROBE_DELAY_RESET).await;
        assert_eq!(mending.schedule(), Some(MIN_PROBE_DELAY));
    }
}
