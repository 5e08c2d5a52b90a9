//! Stored webhooks. A webhook is stored before its run starts, so that a host that restarts or
//! recovers the run finds the webhook.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wattle_graph::failure::Failure;
use wattle_graph::id::{RunId, ThreadId};
use wattle_project::agent_server::time::format_time_with_micros;
use wattle_run::ports::Ports;
use wattle_run::ports::memory::MemoryScope;

use crate::records::{Collection, Versioned};

/// A webhook whose delivery is not complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WebhookRecord {
    pub(crate) run: RunId,
    pub(crate) thread: ThreadId,
    pub(crate) tenant: Option<String>,
    /// URL that the client registered.
    pub(crate) url: String,
    /// Number of failed attempts.
    pub(crate) attempts: usize,
    /// Earliest time of the next attempt, in milliseconds since 1970.
    pub(crate) next_ms: i64,
    /// Whether the payload is stored.
    #[serde(rename = "is_told")]
    pub(crate) has_payload: bool,
    /// Id of the host that delivers the webhook.
    pub(crate) host: String,
    /// Id of the request that last started the run, or is about to start it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) request: String,
    /// Why the last attempt failed; `None` before the first failure, and in records of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<String>,
}

/// A webhook whose delivery was abandoned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AbandonedWebhook {
    pub(crate) run: RunId,
    pub(crate) thread: ThreadId,
    pub(crate) tenant: Option<String>,
    pub(crate) url: String,
    /// Number of attempts.
    pub(crate) attempts: usize,
    /// Why the last attempt failed.
    pub(crate) last_error: String,
    /// Time at which the delivery was abandoned, in milliseconds since 1970.
    pub(crate) abandoned_ms: i64,
}

impl AbandonedWebhook {
    /// Returns the key of the record, by which lists have the newest record first.
    fn key(&self) -> String {
        let age = u64::MAX - u64::try_from(self.abandoned_ms).unwrap_or(0);
        format!("{age:016x}-{}", self.run)
    }
}

/// Maximum number of characters of an error in a record. Lists have many records, and a message of
/// a peer can be long.
const ERROR_CHARS: usize = 500;

/// Returns the part of an error that a record contains.
pub(crate) fn shorten_error(why: &str) -> String {
    why.chars().take(ERROR_CHARS).collect()
}

impl WebhookRecord {
    /// Returns whether the stored webhook equals `self`. If so, no host has changed, taken over or
    /// deleted the webhook since it was read.
    pub(crate) async fn is_unchanged(&self, ports: &Ports) -> Result<bool, Failure> {
        Ok(webhook_records(ports).get(self.run.as_str()).await?.as_ref() == Some(self))
    }

    /// Deletes the webhook and then its payload. Returns `false` without deleting anything if the
    /// webhook was changed since it was read.
    pub(crate) async fn delete_unchanged(
        versioned: &Versioned<Self>,
        ports: &Ports,
    ) -> Result<bool, Failure> {
        if !webhook_records(ports).delete_unchanged(versioned).await? {
            return Ok(false);
        }
        payload_records(ports).delete(&versioned.key).await?;
        Ok(true)
    }

    /// Deletes the webhook first and then its payload, so that the payload of a stored webhook is
    /// also stored. The exception is a webhook that is stored again between the two deletions.
    pub(crate) async fn delete(&self, ports: &Ports) -> Result<(), Failure> {
        webhook_records(ports).delete(self.run.as_str()).await?;
        payload_records(ports).delete(self.run.as_str()).await
    }

    /// Stores the payload. The payload is durable when this method returns.
    pub(crate) async fn save_payload(
        &self,
        ports: &Ports,
        payload: &Payload,
    ) -> Result<(), Failure> {
        payload_records(ports).put(self.run.as_str(), payload, None).await
    }

    /// Reads the stored payload.
    pub(crate) async fn payload(&self, ports: &Ports) -> Result<Option<Payload>, Failure> {
        payload_records(ports).get(self.run.as_str()).await
    }
}

/// The payload of a webhook: the run at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Payload(pub(crate) Map<String, Value>);

impl Payload {
    /// Returns the body of a request that is sent at `now_ms`, milliseconds since 1970.
    pub(crate) fn body(&self, now_ms: i64) -> Bytes {
        let mut fields = self.0.clone();
        fields.insert("webhook_sent_at".to_owned(), format_time_with_micros(now_ms).into());
        Value::Object(fields).to_string().into()
    }
}

/// The field of a run's `kwargs` that contains the reason why the delivery of its webhook was
/// abandoned.
pub(crate) const WEBHOOK_ERROR: &str = "webhook_error";

/// Time in milliseconds for which the store keeps the reason why a delivery was abandoned. It is 30
/// days, so that an operator can investigate the failure.
const DELIVERY_ERROR_TTL_MS: u64 = 30 * 86_400_000;

/// Reads the reason why the delivery of a webhook was abandoned.
pub(crate) async fn delivery_error(ports: &Ports, run: &RunId) -> Result<Option<String>, Failure> {
    delivery_error_records(ports).get(run.as_str()).await
}

/// Stores why the delivery of a webhook is abandoned, for the run and for lists of webhooks.
pub(crate) async fn save_delivery_error(
    ports: &Ports,
    webhook: &WebhookRecord,
    why: &str,
) -> Result<(), Failure> {
    let ttl_ms = Some(DELIVERY_ERROR_TTL_MS);
    delivery_error_records(ports).put(webhook.run.as_str(), &why, ttl_ms).await?;
    let WebhookRecord { run, thread, tenant, url, attempts, .. } = webhook.clone();
    let abandoned = AbandonedWebhook {
        run,
        thread,
        tenant,
        url,
        attempts: attempts.saturating_add(1),
        last_error: shorten_error(why),
        abandoned_ms: ports.clock.now_ms(),
    };
    abandoned_records(ports).put(&abandoned.key(), &abandoned, ttl_ms).await
}

/// Returns the collection of the abandoned webhooks of all tenants.
pub(crate) fn abandoned_records(ports: &Ports) -> Collection<'_> {
    Collection::new(ports, MemoryScope::Host(None), &["abandoned-webhooks"])
}

fn delivery_error_records(ports: &Ports) -> Collection<'_> {
    Collection::new(ports, MemoryScope::Host(None), &["webhook-problems"])
}

/// Returns the collection of the webhooks of all tenants. Payloads are in another collection,
/// because a list reads whole records and payloads can be large.
pub(crate) fn webhook_records(ports: &Ports) -> Collection<'_> {
    Collection::new(ports, MemoryScope::Host(None), &["webhooks"])
}

fn payload_records(ports: &Ports) -> Collection<'_> {
    Collection::new(ports, MemoryScope::Host(None), &["tidings"])
}
