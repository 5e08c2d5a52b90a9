//! JSON representation of hosts that share a store.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wattle_run::ports::store::LiveHost;

/// A live host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostDocument {
    /// Id of the host as a lease holder, which changes with each start.
    pub host: String,
    /// True for the host that responds.
    pub is_this: bool,
    /// Version of Wattle.
    pub version: String,
    /// `running`, or `stopping` while it shuts down.
    pub status: HostStatus,
    /// Start time of the host by its own clock, in milliseconds since 1970.
    pub started_ms: i64,
    /// Milliseconds since the newest heartbeat of the host.
    pub silent_ms: u64,
    /// Number of running runs of the host.
    pub runs: u32,
    /// Maximum number of running runs of the host; further runs are pending.
    pub max_runs: u32,
}

/// The status of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum HostStatus {
    /// The host starts runs.
    Running,
    /// The host shuts down and starts no runs.
    Stopping,
}

impl HostDocument {
    /// Describes a live host. `is_this` is true for the host that responds.
    pub fn new(host: LiveHost, is_this: bool) -> Self {
        let LiveHost { holder, heartbeat_age_ms: silent_ms, report } = host;
        Self {
            host: holder.0,
            is_this,
            version: report.version,
            status: if report.is_stopping { HostStatus::Stopping } else { HostStatus::Running },
            started_ms: report.started_ms,
            silent_ms,
            runs: report.runs,
            max_runs: report.max_runs,
        }
    }
}
