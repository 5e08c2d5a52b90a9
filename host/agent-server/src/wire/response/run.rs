//! The JSON body of a run.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use wattle_graph::event::RunStatus as StoredStatus;
use wattle_graph::failure::code;
use wattle_run::ports::store::RunRecord;

use crate::wire::request::Multitask;

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// The run has not started yet.
    Pending,
    /// The run is being executed.
    Running,
    /// The run completed, or stopped at an interrupt or a breakpoint.
    Success,
    /// The run failed.
    Error,
    /// The run failed because of a timeout.
    Timeout,
    /// The run was cancelled.
    Interrupted,
}

impl RunStatus {
    /// Returns the status of a run of the engine.
    pub fn from_record(record: &RunRecord) -> Self {
        let is_timeout = || record.failure.as_ref().is_some_and(|it| it.code == code::TIMEOUT);
        match record.status {
            StoredStatus::Pending => Self::Pending,
            StoredStatus::Running => Self::Running,
            StoredStatus::Completed | StoredStatus::Interrupted => Self::Success,
            StoredStatus::Failed if is_timeout() => Self::Timeout,
            StoredStatus::Failed => Self::Error,
            StoredStatus::Cancelled => Self::Interrupted,
        }
    }

    /// Returns whether the run has ended.
    pub fn has_ended(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// Id of the run, as in the paths of its endpoints.
    pub run_id: String,
    /// Id of the thread.
    pub thread_id: String,
    /// Id of the assistant.
    pub assistant_id: String,
    /// Time at which the run was requested.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time of the last change of the run.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// Arbitrary metadata.
    pub metadata: Map<String, Value>,
    /// Status of the run.
    pub status: RunStatus,
    /// Fields of the request.
    pub kwargs: Value,
    /// Multitask strategy with which the run was requested.
    pub multitask_strategy: Multitask,
}
