//! Time that a guest computes. Waiting in host calls, and waiting for its turn, does not count.
//!
//! A ticker advances the engine's epoch each millisecond. Guest code looks at it on loops and
//! calls, and when it has moved, [`Cpu::tick`] runs: it adds the time since guest code was last
//! entered, ends the guest if that is too much, and lets other tasks run. Host functions mark
//! where they begin and end ([`Cpu::stop`], [`Cpu::start`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wasmtime::UpdateDeadline;

use crate::halt::Trapped;

/// How often guests can be interrupted. Short against any limit, and rare enough to cost less
/// than a percent.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// Ticks until guest code must look up.
pub(crate) const DEADLINE_TICKS: u64 = 1;

/// The most that one stretch between two looks counts. Guest code that runs is looked at each
/// tick; a longer stretch means that the operating system ran something else meanwhile, or that
/// the guest waited in a host function that does not mark itself (WASI).
const STRETCH: Duration = Duration::from_millis(2);

/// The time account of one guest call.
pub(crate) struct Cpu {
    entered: Arc<Entered>,
    used: Duration,
    allowed: Duration,
}

/// When guest code was entered last. Shared with the future that waits for the guest's next turn.
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
    /// An account over `allowed_ms` milliseconds.
    pub(crate) fn new(allowed_ms: u64) -> Self {
        Self {
            entered: Arc::new(Entered { base: Instant::now(), nanos: AtomicU64::new(0) }),
            used: Duration::ZERO,
            allowed: Duration::from_millis(allowed_ms),
        }
    }

    /// Guest code goes on.
    pub(crate) fn start(&mut self) {
        self.entered.mark();
    }

    /// Guest code waits for the host.
    pub(crate) fn stop(&mut self) {
        let entered = self.entered.nanos.load(Ordering::Relaxed);
        let stretch = Duration::from_nanos(self.entered.now().saturating_sub(entered));
        self.used += stretch.min(STRETCH);
    }

    /// Guest code looked up: lets others run, or ends the guest.
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
    fn time_runs_out() {
        let mut cpu = Cpu::new(10);
        for _ in 0..4 {
            assert!(cpu.tick().is_ok());
            std::thread::sleep(Duration::from_millis(3));
        }
        cpu.used = Duration::from_millis(10);
        assert!(cpu.tick().is_err());
    }
}
