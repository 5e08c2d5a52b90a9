//! Port: the webhooks and crons that clients requested, for lists. The API that creates them keeps
//! their records.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, GraphName, RunId, ThreadId};

/// Status of a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WebhookStatus {
    /// The run has not ended, or another attempt follows.
    #[default]
    Pending,
    /// No attempt follows.
    Abandoned,
    /// A receiver accepted the webhook.
    Delivered,
}

/// Selects webhooks.
#[derive(Clone, Debug, Default)]
pub struct WebhookQuery {
    /// Only webhooks with this status.
    pub status: WebhookStatus,
    /// Only webhooks of this tenant.
    pub tenant: Option<String>,
    /// The page.
    pub page: JobPageQuery,
}

/// Selects crons.
#[derive(Clone, Debug, Default)]
pub struct CronQuery {
    /// Only crons of this tenant.
    pub tenant: Option<String>,
    /// The page.
    pub page: JobPageQuery,
}

/// Selects a page.
#[derive(Clone, Debug, Default)]
pub struct JobPageQuery {
    /// [`JobPage::next`] of the page before; `None` for the first page.
    pub after: Option<String>,
    /// Maximum number of items.
    pub limit: usize,
}

/// A page of a list. A page may have fewer items than its limit, or none, although another page
/// follows, because one page examines the jobs of all tenants up to the budget of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPage<T> {
    /// Items of the page.
    pub items: Vec<T>,
    /// Position after the page; `None` on the last page. Of the id of an item that the query leaves
    /// out it has no more than what tells the item from the next one.
    pub next: Option<String>,
}

/// A webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Run whose end the webhook reports.
    pub run: RunId,
    /// Thread of the run.
    pub thread: ThreadId,
    /// Tenant of the run.
    pub tenant: Option<String>,
    /// URL that the client registered.
    pub url: String,
    /// Status.
    pub status: WebhookStatus,
    /// Whether the run has ended.
    pub has_ended: bool,
    /// Number of failed attempts.
    pub attempts: u64,
    /// Earliest time of the next attempt, in milliseconds since 1970; `None` if no attempt is
    /// scheduled.
    pub next_ms: Option<i64>,
    /// Time at which the delivery was abandoned, in milliseconds since 1970.
    pub abandoned_ms: Option<i64>,
    /// Time at which a receiver accepted the webhook, in milliseconds since 1970.
    pub delivered_ms: Option<i64>,
    /// Why the last attempt failed; `None` before the first failure, and for a delivered webhook.
    pub last_error: Option<String>,
    /// The newest attempts, oldest first. The number is bounded.
    pub attempt_log: Vec<WebhookAttempt>,
    /// Id of the host that delivers the webhook; `None` if no attempt follows.
    pub host: Option<String>,
}

/// One attempt to deliver a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookAttempt {
    /// Start of the attempt, in milliseconds since 1970.
    pub at_ms: i64,
    /// Duration of the attempt, in milliseconds.
    pub duration_ms: u64,
    /// Status of the response; `None` without a response.
    pub status: Option<u16>,
    /// Why the attempt failed; `None` if the receiver accepted the webhook.
    pub error: Option<String>,
}

/// A schedule that creates runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    /// Id of the cron.
    pub cron: String,
    /// Tenant of the runs.
    pub tenant: Option<String>,
    /// Id of the assistant.
    pub assistant: String,
    /// App and graph of the assistant; `None` if no loaded app has the graph.
    pub graph: Option<(AppName, GraphName)>,
    /// Thread of the runs. With `None`, each run has a thread of its own.
    pub thread: Option<String>,
    /// Schedule with five fields, as in `crontab`.
    pub schedule: String,
    /// Time zone of the schedule; UTC by default.
    pub timezone: Option<String>,
    /// Time after which no run is created, in milliseconds since 1970.
    pub end_ms: Option<i64>,
    /// Whether runs are created.
    pub is_enabled: bool,
    /// Time at which the next run is created, in milliseconds since 1970.
    pub next_ms: Option<i64>,
    /// The newest run that was created.
    pub last: Option<CronRun>,
    /// Time of the creation of the cron, in milliseconds since 1970.
    pub created_ms: i64,
    /// Time of the last change of the cron, in milliseconds since 1970.
    pub updated_ms: i64,
}

/// A run that a cron created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronRun {
    /// Id of the run, which may be deleted.
    pub run: RunId,
    /// Time at which the run was due, in milliseconds since 1970.
    pub due_ms: i64,
}

/// The webhooks and crons of clients.
#[async_trait]
pub trait ClientJobs: Send + Sync {
    /// Lists webhooks that were not delivered: pending ones by run, abandoned ones newest first.
    ///
    /// # Errors
    ///
    /// Those of the memory.
    async fn webhooks(&self, query: &WebhookQuery) -> Result<JobPage<Webhook>, Failure>;

    /// Lists crons, oldest first.
    ///
    /// # Errors
    ///
    /// Those of the memory.
    async fn crons(&self, query: &CronQuery) -> Result<JobPage<Cron>, Failure>;
}
