//! A run as a document.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use wattle_graph::event::RunStatus as Stands;
use wattle_graph::failure::code;
use wattle_run::ports::store::RunRecord;

use crate::wire::request::Multitask;

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Waits for its turn.
    Pending,
    /// Is at work.
    Running,
    /// Reached its end, or stands still at a question.
    Success,
    /// Failed.
    Error,
    /// Took too long.
    Timeout,
    /// Was cancelled.
    Interrupted,
}

impl RunStatus {
    /// How a run of the engine stands.
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

    /// Whether nothing more will come of it.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// Its id.
    pub run_id: String,
    /// Its thread.
    pub thread_id: String,
    /// What runs.
    pub assistant_id: String,
    /// When it was asked for.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it changed.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// Free facts.
    pub metadata: Map<String, Value>,
    /// How it stands.
    pub status: RunStatus,
    /// What was asked for.
    pub kwargs: Value,
    /// What happens if the thread is at work already.
    pub multitask_strategy: Multitask,
}
