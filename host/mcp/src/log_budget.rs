//! Limits the lines that a server adds to the log of the host.

use std::time::Duration;

use tokio::time::Instant;

/// Lines that a server may add at once.
const BURST_LINES: u32 = 1_000;

/// Interval at which a server may add a line after the burst.
const LINE_INTERVAL: Duration = Duration::from_millis(50);

/// The lines that a server may still add to the log.
#[derive(Debug)]
pub(crate) struct LogBudget {
    /// The time at which the lines so far would have been added at the interval.
    due: Instant,
    /// Lines that were left out since the last line.
    left_out: u64,
}

impl LogBudget {
    pub(crate) fn new() -> Self {
        Self { due: Instant::now(), left_out: 0 }
    }

    /// Counts a line. Returns the number of lines that were left out before the line, or `None` if
    /// the line itself must be left out.
    pub(crate) fn take(&mut self) -> Option<u64> {
        let now = Instant::now();
        let due = self.due.max(now) + LINE_INTERVAL;
        if due > now + LINE_INTERVAL * BURST_LINES {
            self.left_out += 1;
            return None;
        }
        self.due = due;
        Some(std::mem::take(&mut self.left_out))
    }
}
