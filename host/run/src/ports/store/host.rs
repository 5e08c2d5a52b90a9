//! Reports of hosts that share a store.

use crate::ports::store::LeaseHolder;

/// The report of a host about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostReport {
    /// Version of the program.
    pub version: String,
    /// Time of the start by the clock of the host, milliseconds since 1970.
    pub started_ms: i64,
    /// Number of active runs.
    pub runs: u32,
    /// Maximum number of active runs.
    pub max_runs: u32,
    /// True if the host is shutting down.
    pub is_stopping: bool,
}

/// A live host: its newest heartbeat is younger than the lease duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveHost {
    /// Name of the host as a lease holder.
    pub holder: LeaseHolder,
    /// Milliseconds since the newest heartbeat, by the clock of the store.
    pub heartbeat_age_ms: u64,
    /// The newest report.
    pub report: HostReport,
}
