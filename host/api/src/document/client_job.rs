//! JSON representation of webhooks and crons.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wattle_run::ports::client_jobs::{Cron, CronRun, Webhook, WebhookAttempt, WebhookStatus};

/// A webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookDocument {
    /// Id of the run whose end the webhook reports.
    pub run: String,
    /// Id of its thread.
    pub thread: String,
    /// Tenant of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// URL that the client registered.
    pub url: String,
    /// `pending`, `abandoned` or `delivered`.
    pub status: WebhookDeliveryStatus,
    /// True if the run has ended. Before, no attempt is made.
    pub has_ended: bool,
    /// Number of failed attempts.
    pub attempts: u64,
    /// Earliest time of the next attempt, in milliseconds since 1970; absent before the end of the
    /// run, and if no attempt follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<i64>,
    /// Time at which the delivery was abandoned, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abandoned_ms: Option<i64>,
    /// Time at which a receiver accepted the webhook, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_ms: Option<i64>,
    /// Why the last attempt failed, at most 500 characters; absent before the first failure, and
    /// for a delivered webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The newest attempts, oldest first, at most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempt_log: Vec<WebhookAttemptDocument>,
    /// Id of the host that delivers the webhook, only for the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// One attempt to deliver a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookAttemptDocument {
    /// Start of the attempt, in milliseconds since 1970.
    pub at_ms: i64,
    /// Duration of the attempt, in milliseconds.
    pub duration_ms: u64,
    /// Status of the response; absent without a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why the attempt failed, at most 200 characters; absent if the receiver accepted the webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The status of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WebhookDeliveryStatus {
    /// The run has not ended, or another attempt follows.
    Pending,
    /// No attempt follows.
    Abandoned,
    /// A receiver accepted the webhook.
    Delivered,
}

/// A schedule that creates runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CronDocument {
    /// Id of the cron.
    pub cron: String,
    /// Tenant of the runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Id of the assistant.
    pub assistant: String,
    /// App of the graph; absent if no loaded app has the graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// Graph of the assistant; absent if no loaded app has the graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
    /// Id of the thread of the runs; absent if each run has a thread of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Schedule with five fields, as in `crontab`.
    pub schedule: String,
    /// Time zone of the schedule; absent for UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Time after which no run is created, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ms: Option<i64>,
    /// Whether runs are created.
    pub is_enabled: bool,
    /// Time at which the next run is created, in milliseconds since 1970; absent if none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<i64>,
    /// The newest run that was created; absent before the first, and until the next one after an
    /// update from a version that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<CronRunDocument>,
    /// Time of the creation of the cron, in milliseconds since 1970.
    pub created_ms: i64,
    /// Time of the last change of the cron, in milliseconds since 1970.
    pub updated_ms: i64,
}

/// A run that a cron created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CronRunDocument {
    /// Id of the run, which may be deleted.
    pub run: String,
    /// Time at which the run was due, in milliseconds since 1970.
    pub due_ms: i64,
}

impl WebhookDocument {
    /// Describes a webhook. Ids of hosts are shown only to the operator.
    pub fn new(webhook: Webhook, is_operator: bool) -> Self {
        Self {
            run: webhook.run.to_string(),
            thread: webhook.thread.to_string(),
            tenant: webhook.tenant,
            url: webhook.url,
            status: match webhook.status {
                WebhookStatus::Pending => WebhookDeliveryStatus::Pending,
                WebhookStatus::Abandoned => WebhookDeliveryStatus::Abandoned,
                WebhookStatus::Delivered => WebhookDeliveryStatus::Delivered,
            },
            has_ended: webhook.has_ended,
            attempts: webhook.attempts,
            next_ms: webhook.next_ms,
            abandoned_ms: webhook.abandoned_ms,
            delivered_ms: webhook.delivered_ms,
            last_error: webhook.last_error,
            attempt_log: webhook.attempt_log.into_iter().map(Into::into).collect(),
            host: webhook.host.filter(|_| is_operator),
        }
    }
}

impl From<WebhookAttempt> for WebhookAttemptDocument {
    fn from(attempt: WebhookAttempt) -> Self {
        let WebhookAttempt { at_ms, duration_ms, status, error } = attempt;
        Self { at_ms, duration_ms, status, error }
    }
}

impl From<Cron> for CronDocument {
    fn from(cron: Cron) -> Self {
        let (app, graph) = cron.graph.unzip();
        Self {
            cron: cron.cron,
            tenant: cron.tenant,
            assistant: cron.assistant,
            app: app.map(|app| app.to_string()),
            graph: graph.map(|graph| graph.to_string()),
            thread: cron.thread,
            schedule: cron.schedule,
            timezone: cron.timezone,
            end_ms: cron.end_ms,
            is_enabled: cron.is_enabled,
            next_ms: cron.next_ms,
            last: cron.last.map(Into::into),
            created_ms: cron.created_ms,
            updated_ms: cron.updated_ms,
        }
    }
}

impl From<CronRun> for CronRunDocument {
    fn from(CronRun { run, due_ms }: CronRun) -> Self {
        Self { run: run.to_string(), due_ms }
    }
}
