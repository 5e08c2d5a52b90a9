//! CPU time of guests. Time in host calls, and time in which a guest waits for its turn, does not
//! count.
//!
//! A ticker increments the engine's epoch every millisecond. Guest code checks the epoch in loops
//! and calls. If the epoch has changed, [`Cpu::tick`] runs: it adds the time since guest code was
//! last entered, ends the guest at its limit, and lets other tasks run. Host functions call
//! [`Cpu::stop`] when they begin and [`Cpu::start`] when they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wasmtime::UpdateDeadline;

use crate::halt::Trapped;

/// Interval of the epoch, at which guests can be interrupted. It is short compared with any limit,
/// and long enough to cost less than a percent.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// Epochs until guest code calls back into the host.
pub(crate) const DEADLINE_TICKS: u64 = 1;

/// Upper bound of the CPU time charged between two epoch checks. A running guest is checked at
/// every epoch. A longer gap means that the operating system ran another thread, or that the guest
/// waited in a WASI function, which does not stop the meter.
const STRETCH: Duration = Duration::from_millis(2);

/// The CPU time of one guest call.
pub(crate) struct Cpu {
    entered: Arc<Entered>,
    used: Duration,
    allowed: Duration,
}

/// Time at which guest code was last entered. Shared with the future in which the guest waits for
/// its turn.
struct Entered {
    base: Instant,
    nanos: AtomicU64,
}

impl Entered {
    fn now(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn mark(&self) {
        self.nanos.store(self.now(), Ordering::Relaxed);
    }
}

impl Cpu {
    /// Creates a meter with a limit of `allowed_ms` milliseconds.
    pub(crate) fn new(allowed_ms: u64) -> Self {
        Self {
            entered: Arc::new(Entered { base: Instant::now(), nanos: AtomicU64::new(0) }),
            used: Duration::ZERO,
            allowed: Duration::from_millis(allowed_ms),
        }
    }

    /// Starts the meter: guest code continues.
    pub(crate) fn start(&mut self) {
        self.entered.mark();
    }

    /// Stops the meter: guest code waits for the host.
    pub(crate) fn stop(&mut self) {
        let entered = self.entered.nanos.load(Ordering::Relaxed);
        let stretch = Duration::from_nanos(self.entered.now().saturating_sub(entered));
        self.used += stretch.min(STRETCH);
    }

    /// Handles an epoch check: lets other tasks run, or ends the guest at its limit.
    pub(crate) fn tick(&mut self) -> wasmtime::Result<UpdateDeadline> {
        self.stop();
        if self.used >= self.allowed {
            return Err(Trapped::OutOfTime.into());
        }
        let entered = Arc::clone(&self.entered);
        let turn = async move {
            tokio::task::yield_now().await;
            entered.mark();
        };
        Ok(UpdateDeadline::YieldCustom(DEADLINE_TICKS, Box::pin(turn)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_guest_time_counts() {
        let mut cpu = Cpu::new(1_000);
        let mut counted = || {
            cpu.stop();
            let before = cpu.used;
            std::thread::sleep(2 * STRETCH);
            cpu.start();
            cpu.stop();
            cpu.used.checked_sub(before).unwrap()
        };
        // The operating system may run something else between two calls, but not each time.
        let least = (0..20).map(|_| counted()).min().unwrap();
        assert!(least < STRETCH, "{least:?}");
    }

    #[test]
    fn the_guest_ends_at_its_limit() {
        let mut cpu = Cpu::new(10);
        for _ in 0..4 {
            assert!(cpu.tick().is_ok());
            std::thread::sleep(Duration::from_millis(3));
        }
        cpu.used = Duration::from_millis(10);
        assert!(cpu.tick().is_err());
    }
}
