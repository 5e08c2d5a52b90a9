//! JSON bodies of the list and the counts of the runs of all threads.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wattle_graph::event::RunStatus;
use wattle_run::ports::statistics::ModelPrices;
use wattle_run::ports::store::{FoundRun, RunCounts, ThreadFailure};

use crate::document::run::FailureDocument;

/// A run with its thread, as in a list over all threads.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunSummaryDocument {
    /// Id of the run.
    pub run: String,
    /// Thread of the run.
    pub thread: String,
    /// Same value as `thread`, under the field name that requests use.
    pub thread_id: String,
    /// App of the thread.
    pub app: String,
    /// Graph of the thread.
    pub graph: String,
    /// Tenant of the thread; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// `pending`, `running`, `completed`, `interrupted`, `failed` or `cancelled`.
    #[schema(value_type = String)]
    pub status: RunStatus,
    /// Failure of a failed run. Its message is cut to 200 characters and its details are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureDocument>,
    /// Time at which the run was requested, in milliseconds since 1970.
    pub created_ms: i64,
    /// Earliest start of a pending run, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_ms: Option<i64>,
    /// Time of the start, in milliseconds since 1970; absent for a run that has not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<i64>,
    /// Time of the end, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
    /// Cost of the tokens of the run's model calls, in the currency of the operator's prices.
    /// Absent before the end of the run, if none of its models has a price, and if not all of its
    /// calls were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl RunSummaryDocument {
    /// Describes a run with its cost.
    pub fn new(FoundRun { run, app, graph, tenant }: FoundRun, prices: &ModelPrices) -> Self {
        let is_pending = run.status == RunStatus::Pending;
        let thread = String::from(run.thread);
        Self {
            run: run.id.into(),
            thread_id: thread.clone(),
            thread,
            app: app.into(),
            graph: graph.into(),
            tenant,
            status: run.status,
            failure: run.failure.as_ref().map(|it| ThreadFailure::from(it).into()),
            created_ms: run.created_ms,
            due_ms: is_pending.then_some(run.due_ms),
            started_ms: run.started_ms,
            ended_ms: run.ended_ms,
            cost: run.usage.cost(prices),
        }
    }
}

/// The number of runs that match some conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunCountsDocument {
    /// Number of runs.
    pub total: u64,
    /// Number of runs by status.
    pub by_status: RunStatusCountsDocument,
    /// False if more runs may match, because not all runs were examined.
    pub is_complete: bool,
}

/// Numbers of runs by status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunStatusCountsDocument {
    /// Number of pending runs.
    pub pending: u64,
    /// Number of running runs.
    pub running: u64,
    /// Number of completed runs.
    pub completed: u64,
    /// Number of interrupted runs.
    pub interrupted: u64,
    /// Number of failed runs.
    pub failed: u64,
    /// Number of cancelled runs.
    pub cancelled: u64,
}

impl From<RunCounts> for RunCountsDocument {
    fn from(counts: RunCounts) -> Self {
        let total = counts.total();
        let RunCounts { pending, running, completed, interrupted, failed, cancelled, is_complete } =
            counts;
        let by_status =
            RunStatusCountsDocument { pending, running, completed, interrupted, failed, cancelled };
        Self { total, by_status, is_complete }
    }
}
