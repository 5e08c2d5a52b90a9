//! The limits of one guest call.

use serde::{Deserialize, Serialize};

use super::call_limits::{NetLimits, SqlLimits};
use super::{
    CPU_MS, HOST_CALL_BYTES, HOST_CALLS, LIFT_BYTES, MEMORY_BYTES, NODE_TIMEOUT_MS, OUTPUT_BYTES,
    TASK_JOURNAL_BYTES,
};

/// Limits of one guest call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// See [`MEMORY_BYTES`].
    pub memory_bytes: u64,
    /// See [`CPU_MS`].
    pub cpu_ms: u64,
    /// See [`NODE_TIMEOUT_MS`].
    pub node_timeout_ms: u64,
    /// See [`HOST_CALLS`].
    pub host_calls: u32,
    /// See [`HOST_CALL_BYTES`].
    pub host_call_bytes: u64,
    /// See [`TASK_JOURNAL_BYTES`].
    #[serde(skip)]
    pub task_journal_bytes: u64,
    /// See [`OUTPUT_BYTES`].
    pub output_bytes: u64,
    /// Maximum bytes that the host copies out of the guest in one call; see [`LIFT_BYTES`].
    pub lift_bytes: u64,
    /// Limits of outbound HTTP.
    pub net: NetLimits,
    /// Limits of SQL.
    pub sql: SqlLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: MEMORY_BYTES,
            cpu_ms: CPU_MS,
            node_timeout_ms: NODE_TIMEOUT_MS,
            host_calls: HOST_CALLS,
            host_call_bytes: HOST_CALL_BYTES,
            task_journal_bytes: TASK_JOURNAL_BYTES,
            output_bytes: OUTPUT_BYTES,
            lift_bytes: LIFT_BYTES,
            net: NetLimits::default(),
            sql: SqlLimits::default(),
        }
    }
}

impl Limits {
    /// Returns the smaller value of each limit.
    #[must_use]
    pub fn min(&self, most: &Self) -> Self {
        Self {
            memory_bytes: self.memory_bytes.min(most.memory_bytes),
            cpu_ms: self.cpu_ms.min(most.cpu_ms),
            node_timeout_ms: self.node_timeout_ms.min(most.node_timeout_ms),
            host_calls: self.host_calls.min(most.host_calls),
            host_call_bytes: self.host_call_bytes.min(most.host_call_bytes),
            task_journal_bytes: self.task_journal_bytes.min(most.task_journal_bytes),
            output_bytes: self.output_bytes.min(most.output_bytes),
            lift_bytes: self.lift_bytes.min(most.lift_bytes),
            net: self.net.min(&most.net),
            sql: self.sql.min(&most.sql),
        }
    }
}
