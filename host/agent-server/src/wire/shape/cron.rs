//! A cron as a document.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::wire::request::Completion;

/// A schedule that requests runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Cron {
    /// Id of the cron.
    #[schema(format = "uuid")]
    pub cron_id: String,
    /// Id of the assistant.
    pub assistant_id: String,
    /// Thread of the runs. By default each run has a thread of its own.
    pub thread_id: Option<String>,
    /// What happens to a run's own thread when the run has ended.
    pub on_run_completed: Option<Completion>,
    /// Time after which no run is created.
    #[schema(format = DateTime)]
    pub end_time: Option<String>,
    /// Schedule of five fields, as in `crontab`.
    pub schedule: String,
    /// Time zone of the schedule. The default is UTC.
    pub timezone: Option<String>,
    /// Time of its creation.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time of its last change.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// Request of each run.
    pub payload: Map<String, Value>,
    /// User who created it: always `null`, because keys stand for tenants and not for users.
    pub user_id: Option<String>,
    /// Time of the next run.
    #[schema(format = DateTime)]
    pub next_run_date: Option<String>,
    /// Arbitrary metadata.
    pub metadata: Map<String, Value>,
    /// Whether runs are created.
    pub enabled: bool,
}
