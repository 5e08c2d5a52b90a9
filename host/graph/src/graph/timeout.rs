//! The timeouts of one attempt of a node.

use crate::definition::{HeartbeatSource, HumanDuration, TimeoutDef};

/// Timeouts of one attempt of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeoutPolicy {
    /// Maximum duration, in milliseconds; `None` applies the host's own limit.
    pub run_ms: Option<u64>,
    /// Maximum time without a heartbeat, in milliseconds; `None` is unlimited.
    pub idle_ms: Option<u64>,
    /// Which activity counts as a heartbeat.
    pub refresh: HeartbeatSource,
}

impl From<&TimeoutDef> for TimeoutPolicy {
    fn from(def: &TimeoutDef) -> Self {
        match def {
            TimeoutDef::Run(span) => Self { run_ms: Some(span.as_ms()), ..Self::default() },
            TimeoutDef::Detailed(both) => Self {
                run_ms: both.run.map(HumanDuration::as_ms),
                idle_ms: both.idle.map(HumanDuration::as_ms),
                refresh: both.refresh,
            },
        }
    }
}
