//! Resource usage of a process, from `/proc`.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};
use wattle_kit::process::peak_rss_bytes;

/// Unit of times in `/proc/<id>/stat`. Linux reports 100 ticks per second to programs on every
/// machine.
const TICKS_PER_SECOND: f64 = 100.0;

/// Index of the user time in `/proc/<id>/stat`, counted after the name in parentheses. The system
/// time follows.
const USER_TIME: usize = 11;

/// Resource usage of a process since its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// CPU time, summed over all cores.
    pub(crate) cpu: Duration,
    /// Peak memory.
    pub(crate) peak_rss_bytes: u64,
}

impl Usage {
    /// Reads the usage of a process, given by its id or as `self`.
    pub(crate) fn of(process: &str) -> Result<Self> {
        let peak_rss_bytes = peak_rss_bytes(process)?.context("this system has no /proc")?;
        Ok(Self { cpu: cpu(process)?, peak_rss_bytes })
    }

    /// Returns the average number of busy cores since an earlier measurement.
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
