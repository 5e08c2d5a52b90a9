//! Documents of hosts that share a store.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wattle_run::ports::store::LiveHost;

/// A live host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostDocument {
    /// The name under which it holds threads: another one after each start.
    pub host: String,
    /// Whether it is the host that answers.
    pub is_this: bool,
    /// Version of Wattle.
    pub version: String,
    /// `running`, or `stopping` while it shuts down.
    pub status: HostStatus,
    /// When it started, milliseconds since 1970, by its own clock.
    pub started_ms: i64,
    /// Milliseconds since its newest heartbeat.
    pub silent_ms: u64,
    /// Runs that it has at work.
    pub runs: u32,
    /// Runs that it has at work at most; others are pending.
    pub max_runs: u32,
}

/// Whether a host begins runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum HostStatus {
    /// It begins runs.
    Running,
    /// It shuts down.
    Stopping,
}

impl HostDocument {
    /// A live host; `is_this` for the one that answers.
    pub fn new(host: LiveHost, is_this: bool) -> Self {
        let LiveHost { holder, silent_ms, report } = host;
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
