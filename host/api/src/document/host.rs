//! JSON representation of hosts that share a store.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wattle_run::ports::store::LiveHost;

use crate::traffic::Traffic;

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
    /// Numbers of requests and connections that the host rejected or closed since its start, by the
    /// `reason` of the metric `wattle_http_cut`. Absent if all of them are 0, and for hosts other
    /// than the one that responds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cut: BTreeMap<String, u64>,
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
    /// Describes a live host. `own` has the counts of the host that responds, and is `None` for
    /// another one.
    pub fn new(host: LiveHost, own: Option<&Traffic>) -> Self {
        let LiveHost { holder, heartbeat_age_ms: silent_ms, report } = host;
        Self {
            host: holder.0,
            is_this: own.is_some(),
            version: report.version,
            status: if report.is_stopping { HostStatus::Stopping } else { HostStatus::Running },
            started_ms: report.started_ms,
            silent_ms,
            runs: report.runs,
            max_runs: report.max_runs,
            cut: own.map(Traffic::cuts_by_label).unwrap_or_default(),
        }
    }
}
