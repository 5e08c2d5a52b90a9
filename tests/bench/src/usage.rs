//! What a process has taken so far, as the kernel tells it.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// In so many parts of a second Linux counts time for programs, on every machine.
const TICKS_PER_SECOND: f64 = 100.0;

/// Place of the time in user mode in `/proc/<id>/stat`, behind the name in parentheses; that in the
/// kernel comes next.
const USER_TIME: usize = 11;

/// What a process has taken so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// On all cores together.
    pub(crate) cpu: Duration,
    /// The most memory that it had.
    pub(crate) peak_rss_bytes: u64,
}

impl Usage {
    /// Of a process, by its number or `self`.
    pub(crate) fn of(process: &str) -> Result<Self> {
        Ok(Self { cpu: cpu(process)?, peak_rss_bytes: peak_rss_bytes(process)? })
    }

    /// Cores that were busy on average for so long.
    pub(crate) fn cores_since(&self, before: &Self, elapsed: Duration) -> f64 {
        self.cpu.saturating_sub(before.cpu).as_secs_f64() / elapsed.as_secs_f64()
    }
}

fn cpu(process: &str) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("no name in /proc/<id>/stat")?;
    let times = fields.split_whitespace().skip(USER_TIME).take(2);
    let ticks: u64 = times.map(str::parse::<u64>).sum::<Result<_, _>>()?;
    Ok(Duration::from_secs_f64(ticks as f64 / TICKS_PER_SECOND))
}

/// Not by `getrusage`, whose peak begins with the memory of the parent process.
fn peak_rss_bytes(process: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
    Ok(kilobytes.context("no VmHWM in /proc/<id>/status")?.parse::<u64>()? * 1_024)
}
