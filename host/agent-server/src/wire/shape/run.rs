//! A run as a document.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use wattle_graph::event::RunStatus as Stands;
use wattle_graph::failure::code;
use wattle_run::ports::store::RunRecord;

use crate::wire::request::Multitask;

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It has not started yet.
    Pending,
    /// It is being executed.
    Running,
    /// It completed, or stopped at an interrupt or a breakpoint.
    Success,
    /// It failed.
    Error,
    /// It failed because of a timeout.
    Timeout,
    /// It was cancelled.
    Interrupted,
}

impl RunStatus {
    /// Returns the status of a run of the engine.
    pub fn of(record: &RunRecord) -> Self {
        let too_long = || record.failure.as_ref().is_some_and(|it| it.code == code::TIMEOUT);
        match record.status {
            Stands::Pending => Self::Pending,
            Stands::Running => Self::Running,
            Stands::Completed | Stands::Interrupted => Self::Success,
            Stands::Failed if too_long() => Self::Timeout,
            Stands::Failed => Self::Error,
            Stands::Cancelled => Self::Interrupted,
        }
    }

    /// Returns whether the run has ended.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// Id of the run.
    pub run_id: String,
    /// Id of the thread.
    pub thread_id: String,
    /// Id of the assistant.
    pub assistant_id: String,
    /// Time of its creation.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time of its last change.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// Arbitrary metadata.
    pub metadata: Map<String, Value>,
    /// Status of the run.
    pub status: RunStatus,
    /// Fields of the request.
    pub kwargs: Value,
    /// What happens if the thread has an active run.
    pub multitask_strategy: Multitask,
}
