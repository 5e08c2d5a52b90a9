//! The JSON body of a cron.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::wire::request::OnCompletion;

/// A schedule that requests runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Cron {
    /// Id of the cron.
    #[schema(format = "uuid")]
    pub cron_id: String,
    /// Id of the assistant.
    pub assistant_id: String,
    /// Thread of the runs; `null` if each run has a thread of its own.
    pub thread_id: Option<String>,
    /// What happens to the thread of a stateless run after the run has ended.
    pub on_run_completed: Option<OnCompletion>,
    /// Time after which no run is created.
    #[schema(format = DateTime)]
    pub end_time: Option<String>,
    /// Schedule with five fields, as in `crontab`.
    pub schedule: String,
    /// Time zone of the schedule. The default is UTC.
    pub timezone: Option<String>,
    /// Creation time.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time of the last change.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// Run request from which each run is created, with the id of the cron in
    /// `config.configurable`.
    pub payload: Map<String, Value>,
    /// Always `null`: API keys belong to tenants, not to users.
    pub user_id: Option<String>,
    /// Next time of the schedule. No run is created then if the cron is disabled.
    #[schema(format = DateTime)]
    pub next_run_date: Option<String>,
    /// Arbitrary metadata.
    pub metadata: Map<String, Value>,
    /// Whether runs are created.
    pub enabled: bool,
}
