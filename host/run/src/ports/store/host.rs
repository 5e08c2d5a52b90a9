//! What hosts that share a store tell of themselves.

use crate::ports::store::Holder;

/// What a host tells of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostReport {
    /// The version of its program.
    pub version: String,
    /// When it started, milliseconds since 1970, by its own clock.
    pub started_ms: i64,
    /// Runs that it has at work.
    pub runs: u32,
    /// Runs that it has at work at most.
    pub max_runs: u32,
    /// Whether it is shutting down.
    pub is_stopping: bool,
}

/// A live host: its heartbeat is younger than its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveHost {
    /// The name under which it holds threads.
    pub holder: Holder,
    /// Milliseconds since its newest heartbeat, by the clock of the store.
    pub silent_ms: u64,
    /// Its last report.
    pub report: HostReport,
}
