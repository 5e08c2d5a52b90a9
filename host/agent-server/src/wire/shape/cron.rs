//! Runs that come again, as a document.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::wire::request::Completion;

/// Runs that come again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Cron {
    /// Its id.
    #[schema(format = "uuid")]
    pub cron_id: String,
    /// What runs.
    pub assistant_id: String,
    /// On which thread; on one of its own each time without it.
    pub thread_id: Option<String>,
    /// What happens at their ends to threads of their own.
    pub on_run_completed: Option<Completion>,
    /// Not after that.
    #[schema(format = DateTime)]
    pub end_time: Option<String>,
    /// When, as five fields.
    pub schedule: String,
    /// In which zone; UTC without it.
    pub timezone: Option<String>,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was changed.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// What is asked for each time.
    pub payload: Map<String, Value>,
    /// Who made it: always `null`, since keys stand for tenants and not for people.
    pub user_id: Option<String>,
    /// When the next run begins.
    #[schema(format = DateTime)]
    pub next_run_date: Option<String>,
    /// Free facts.
    pub metadata: Map<String, Value>,
    /// Whether runs come at all.
    pub enabled: bool,
}
