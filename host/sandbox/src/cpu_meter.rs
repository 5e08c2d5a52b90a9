//! CPU time of guests. Time in host calls does not count, nor does time in which the runtime polls
//! other tasks.
//!
//! A ticker increments the engine's epoch every millisecond. Guest code checks the epoch in loops
//! and calls. If the epoch has changed, [`CpuMeter::on_epoch`] runs: it adds the time since guest
//! code was last entered, ends the guest at its limit, and yields to the other async tasks of the
//! runtime. Host functions call [`CpuMeter::leave_guest`] when they begin and
//! [`CpuMeter::enter_guest`] when they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wasmtime::UpdateDeadline;

use crate::import_error::TrapReason;

/// Interval between two epochs. Guests can be interrupted once in each epoch. The interval is short
/// compared with every limit of CPU time, and long enough that epochs cost less than one percent.
pub(crate) const EPOCH_INTERVAL: Duration = Duration::from_millis(1);

/// Number of epochs after which guest code calls [`CpuMeter::on_epoch`].
pub(crate) const EPOCH_DEADLINE: u64 = 1;

/// Upper bound of the CPU time charged between two epoch checks. A running guest is checked at
/// every epoch. A longer gap means that the operating system ran another thread, or that the guest
/// waited in a WASI function, which does not stop the meter.
const MAX_SLICE: Duration = Duration::from_millis(2);

/// The CPU time of one guest call.
pub(crate) struct CpuMeter {
    entry_time: Arc<EntryTime>,
    used: Duration,
    allowed: Duration,
}

/// Time at which guest code was last entered. The meter shares this time with the future that
/// yields to the runtime. The future sets the time when the guest continues.
struct EntryTime {
    base: Instant,
    nanos: AtomicU64,
}

impl EntryTime {
    fn now(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn set_now(&self) {
        self.nanos.store(self.now(), Ordering::Relaxed);
    }
}

impl CpuMeter {
    /// Creates a meter with a limit of `allowed_ms` milliseconds.
    pub(crate) fn new(allowed_ms: u64) -> Self {
        Self {
            entry_time: Arc::new(EntryTime { base: Instant::now(), nanos: AtomicU64::new(0) }),
            used: Duration::ZERO,
            allowed: Duration::from_millis(allowed_ms),
        }
    }

    /// Starts the meter: guest code continues.
    pub(crate) fn enter_guest(&mut self) {
        self.entry_time.set_now();
    }

    /// Stops the meter: guest code waits for the host.
    pub(crate) fn leave_guest(&mut self) {
        let entered = self.entry_time.nanos.load(Ordering::Relaxed);
        let stretch = Duration::from_nanos(self.entry_time.now().saturating_sub(entered));
        self.used += stretch.min(MAX_SLICE);
    }

    /// Returns the CPU time until the guest last left.
    pub(crate) fn used(&self) -> Duration {
        self.used
    }

    /// Handles a change of the epoch: yields to the runtime, or ends the guest at its limit of CPU
    /// time.
    pub(crate) fn on_epoch(&mut self) -> wasmtime::Result<UpdateDeadline> {
        self.leave_guest();
        if self.used >= self.allowed {
            return Err(TrapReason::CpuLimit.into());
        }
        let entered = Arc::clone(&self.entry_time);
        let turn = async move {
            tokio::task::yield_now().await;
            entered.set_now();
        };
        Ok(UpdateDeadline::YieldCustom(EPOCH_DEADLINE, Box::pin(turn)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_guest_time_counts() {
        let mut cpu = CpuMeter::new(1_000);
        let mut counted = || {
            cpu.leave_guest();
            let before = cpu.used;
            std::thread::sleep(2 * MAX_SLICE);
            cpu.enter_guest();
            cpu.leave_guest();
            cpu.used.checked_sub(before).unwrap()
        };
        // The operating system may run another thread between two calls, but not in all 20 rounds.
        let least = (0..20).map(|_| counted()).min().unwrap();
        assert!(least < MAX_SLICE, "{least:?}");
    }

    #[test]
    fn guest_ends_at_its_limit_of_cpu_time() {
        let mut cpu = CpuMeter::new(10);
        for _ in 0..4 {
            assert!(cpu.on_epoch().is_ok());
            std::thread::sleep(Duration::from_millis(3));
        }
        cpu.used = Duration::from_millis(10);
        assert!(cpu.on_epoch().is_err());
    }
}
