//! Lists of webhooks and crons for the native API.

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use wattle_graph::failure::Failure;
use wattle_run::ports::client_jobs::{
    ClientJobs, Cron, CronQuery, CronRun, JobPage, JobPageQuery, Webhook, WebhookAttempt,
    WebhookQuery, WebhookStatus,
};

use crate::assistants;
use crate::crons::cron_run_id;
use crate::records::cron::{CronRecord, DueEntry, due_entries};
use crate::records::webhook::{
    AbandonedWebhook, DeliveredWebhook, Delivery, DeliveryAttempt, WebhookRecord,
    abandoned_records, delivered_records, webhook_records,
};
use crate::records::{Collection, RecordPage};
use crate::state::AgentServer;

#[async_trait]
impl ClientJobs for AgentServer {
    async fn webhooks(&self, query: &WebhookQuery) -> Result<JobPage<Webhook>, Failure> {
        let WebhookQuery { status, tenant, page } = query;
        match status {
            WebhookStatus::Pending => {
                let records = webhook_records(self.ports());
                let found = read_page(&records, page, |webhook: &WebhookRecord| {
                    tenant.is_none() || webhook.delivery.tenant == *tenant
                });
                Ok(to_page(found.await?, pending_webhook))
            }
            WebhookStatus::Abandoned => {
                let records = abandoned_records(self.ports());
                let found = read_page(&records, page, |webhook: &AbandonedWebhook| {
                    tenant.is_none() || webhook.delivery.tenant == *tenant
                });
                Ok(to_page(found.await?, abandoned_webhook))
            }
            WebhookStatus::Delivered => {
                let records = delivered_records(self.ports());
                let found = read_page(&records, page, |webhook: &DeliveredWebhook| {
                    tenant.is_none() || webhook.delivery.tenant == *tenant
                });
                Ok(to_page(found.await?, delivered_webhook))
            }
        }
    }

    async fn crons(&self, query: &CronQuery) -> Result<JobPage<Cron>, Failure> {
        let CronQuery { tenant, page } = query;
        let records = due_entries(self.ports());
        let entries =
            read_page(&records, page, |due: &DueEntry| tenant.is_none() || due.tenant == *tenant);
        let entries = to_page(entries.await?, |due| due);
        let mut items = Vec::new();
        for due in entries.items {
            // The cron may have been deleted since its entry was read.
            if let Some(record) = due.read_cron(self.ports()).await? {
                items.push(self.describe_cron(record, &due).await);
            }
        }
        Ok(JobPage { items, next: entries.next })
    }
}

impl AgentServer {
    async fn describe_cron(&self, record: CronRecord, due: &DueEntry) -> Cron {
        let engine = self.run_creator().engine();
        let found = assistants::find(engine, record.tenant.as_ref(), &record.assistant).await;
        let graph = found.ok().map(|graph| (graph.app.name.clone(), graph.name().clone()));
        let last = due.last_ms.and_then(|due_ms| {
            let run = cron_run_id(&record.cron, due_ms).ok()?;
            Some(CronRun { run, due_ms })
        });
        Cron {
            cron: record.cron.to_string(),
            tenant: record.tenant,
            assistant: record.assistant,
            graph,
            thread: record.thread,
            schedule: record.schedule,
            timezone: record.timezone,
            end_ms: record.end_ms,
            is_enabled: record.enabled,
            next_ms: due.next_ms,
            last,
            created_ms: record.created_ms,
            updated_ms: record.updated_ms,
        }
    }
}

async fn read_page<T: DeserializeOwned + Send>(
    records: &Collection<'_>,
    page: &JobPageQuery,
    is_wanted: impl Fn(&T) -> bool + Send,
) -> Result<RecordPage<T>, Failure> {
    let after = page.after.as_deref().unwrap_or_default();
    records.page(after, page.limit, is_wanted).await
}

fn to_page<T, U>(found: RecordPage<T>, describe: impl Fn(T) -> U) -> JobPage<U> {
    let RecordPage { records, next } = found;
    JobPage { items: records.into_iter().map(|(_, record)| describe(record)).collect(), next }
}

/// Describes a delivery without what only some statuses have.
fn webhook(status: WebhookStatus, delivery: Delivery) -> Webhook {
    Webhook {
        run: delivery.run,
        thread: delivery.thread,
        tenant: delivery.tenant,
        url: delivery.url,
        status,
        has_ended: true,
        attempts: delivery.attempts as u64,
        next_ms: None,
        abandoned_ms: None,
        delivered_ms: None,
        last_error: None,
        attempt_log: attempts(delivery.attempt_log),
        host: None,
    }
}

fn pending_webhook(record: WebhookRecord) -> Webhook {
    Webhook {
        has_ended: record.has_payload,
        // Before the end of the run, `next_ms` is the time of the request.
        next_ms: record.has_payload.then_some(record.next_ms),
        last_error: record.last_error,
        host: Some(record.host),
        ..webhook(WebhookStatus::Pending, record.delivery)
    }
}

fn abandoned_webhook(record: AbandonedWebhook) -> Webhook {
    Webhook {
        abandoned_ms: Some(record.abandoned_ms),
        last_error: Some(record.last_error),
        ..webhook(WebhookStatus::Abandoned, record.delivery)
    }
}

fn delivered_webhook(record: DeliveredWebhook) -> Webhook {
    Webhook {
        delivered_ms: Some(record.delivered_ms),
        ..webhook(WebhookStatus::Delivered, record.delivery)
    }
}

fn attempts(log: Vec<DeliveryAttempt>) -> Vec<WebhookAttempt> {
    let attempt = |DeliveryAttempt { at_ms, duration_ms, status, error }| WebhookAttempt {
        at_ms,
        duration_ms,
        status,
        error,
    };
    log.into_iter().map(attempt).collect()
}
