//! The JSON body of a thread.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use wattle_run::ports::store::{
    PruneStrategy, ThreadRecord, ThreadStatus as StoredStatus, ThreadTtl,
};
use wattle_run::time_travel::StateView;

use wattle_project::agent_server::document::Interrupt;
use wattle_project::agent_server::id::task_uuid;
use wattle_project::agent_server::thread_info::ThreadInfo;
use wattle_project::agent_server::time::format_time_with_micros;

use super::interrupt::interrupt;

/// Milliseconds of a minute, the unit of TTLs.
const MINUTE_MS: f64 = 60_000.0;

/// The status of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThreadStatus {
    /// The thread has no active run.
    Idle,
    /// The thread has a running or pending run.
    Busy,
    /// The last run stopped at an interrupt or a breakpoint, or was cancelled before the end of the
    /// graph, and can be resumed.
    Interrupted,
    /// The last run failed.
    Error,
}

impl ThreadStatus {
    /// Returns the status of a thread for clients. `stopped` is the field of the thread record: in
    /// the native API, a thread whose run was cancelled is idle.
    pub fn from_stored(status: StoredStatus, stopped: bool) -> Self {
        match status {
            StoredStatus::Idle if stopped => Self::Interrupted,
            StoredStatus::Idle => Self::Idle,
            StoredStatus::Running => Self::Busy,
            StoredStatus::Interrupted => Self::Interrupted,
            StoredStatus::Error => Self::Error,
        }
    }
}

/// The data that is deleted when the TTL of a thread expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TtlStrategy {
    /// The whole thread.
    #[default]
    Delete,
    /// All states except the newest one.
    KeepLatest,
}

/// The TTL of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Ttl {
    /// The data that is deleted when the TTL expires.
    #[serde(default)]
    pub strategy: TtlStrategy,
    /// Minutes from the last change of the thread to its expiry.
    #[serde(rename = "ttl", alias = "default_ttl")]
    #[schema(minimum = 0)]
    pub minutes: f64,
}

impl Ttl {
    /// Returns the TTL of the engine; `None` if the minutes are not valid.
    pub fn parse(self) -> Option<ThreadTtl> {
        let is_time = self.minutes.is_finite() && self.minutes >= 0.0;
        let strategy = match self.strategy {
            TtlStrategy::Delete => PruneStrategy::Delete,
            TtlStrategy::KeepLatest => PruneStrategy::KeepLatest,
        };
        #[expect(clippy::cast_sign_loss, reason = "a time is not negative")]
        is_time.then_some(ThreadTtl { after_ms: (self.minutes * MINUTE_MS) as u64, strategy })
    }
}

impl From<ThreadTtl> for Ttl {
    fn from(ttl: ThreadTtl) -> Self {
        let strategy = match ttl.strategy {
            PruneStrategy::Delete => TtlStrategy::Delete,
            PruneStrategy::KeepLatest => TtlStrategy::KeepLatest,
        };
        Self { strategy, minutes: ttl.after_ms as f64 / MINUTE_MS }
    }
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Thread {
    /// Id of the thread.
    pub thread_id: String,
    /// Creation time.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time of the last change.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// Time of the last change of the state.
    #[schema(format = DateTime)]
    pub state_updated_at: String,
    /// Arbitrary metadata.
    pub metadata: Map<String, Value>,
    /// Status of the thread.
    pub status: ThreadStatus,
    /// Settings of the runs.
    pub config: Value,
    /// Channel values. `null` before the first run.
    pub values: Option<Value>,
    /// Pending interrupts by task id.
    pub interrupts: BTreeMap<String, Vec<Interrupt>>,
    /// Failure or cancel of the last run.
    pub error: Option<Value>,
    /// TTL of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Ttl>,
    /// Values at the paths that the `extract` field of a search request names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extracted: Option<Value>,
}

impl Thread {
    /// Describes a thread with its current state. `state` is `None` before the first run.
    pub fn new(thread_info: &ThreadInfo, record: &ThreadRecord, state: Option<&StateView>) -> Self {
        let changed_ms = state.map_or(record.updated_ms, |state| state.at_ms);
        Self {
            thread_id: record.id.to_string(),
            created_at: format_time_with_micros(record.created_ms),
            updated_at: format_time_with_micros(record.updated_ms),
            state_updated_at: format_time_with_micros(changed_ms),
            metadata: record.metadata.clone().into_iter().collect(),
            status: ThreadStatus::from_stored(record.status, record.stopped),
            config: json!({}),
            values: state.map(|state| thread_info.values(&state.values)),
            interrupts: state.map(interrupts_by_task).unwrap_or_default(),
            error: None,
            ttl: record.ttl.map(Into::into),
            extracted: None,
        }
    }
}

fn interrupts_by_task(state: &StateView) -> BTreeMap<String, Vec<Interrupt>> {
    let interrupted = state.tasks.iter().filter(|task| !task.interrupts.is_empty());
    let open = interrupted
        .map(|task| (task_uuid(&task.id), task.interrupts.iter().map(interrupt).collect()));
    open.collect()
}
