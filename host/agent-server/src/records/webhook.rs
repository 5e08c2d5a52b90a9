//! Stored webhooks. A webhook is stored before its run starts, so that a host that restarts or
//! recovers the run finds the webhook.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wattle_graph::failure::Failure;
use wattle_graph::id::{RunId, ThreadId};
use wattle_project::agent_server::time::format_time_with_micros;
use wattle_run::ports::Ports;
use wattle_run::ports::memory::MemoryScope;

use crate::records::{Collection, Versioned};

/// The delivery of a webhook: its run, its URL and its attempts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Delivery {
    pub(crate) run: RunId,
    pub(crate) thread: ThreadId,
    pub(crate) tenant: Option<String>,
    /// URL that the client registered.
    pub(crate) url: String,
    /// Number of failed attempts.
    pub(crate) attempts: usize,
    /// The newest attempts, oldest first; without those that older versions made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) attempt_log: Vec<DeliveryAttempt>,
}

/// A webhook whose delivery is not complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WebhookRecord {
    #[serde(flatten)]
    pub(crate) delivery: Delivery,
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

/// One attempt to deliver a webhook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeliveryAttempt {
    /// Start, in milliseconds since 1970.
    pub(crate) at_ms: i64,
    pub(crate) duration_ms: u64,
    /// Status of the response; `None` without a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// Why the attempt failed; `None` if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// Maximum number of attempts in a record. The default settings permit fewer.
const LOGGED_ATTEMPTS: usize = 10;

/// Maximum number of characters of the error of an attempt.
const ATTEMPT_ERROR_CHARS: usize = 200;

impl DeliveryAttempt {
    /// Creates an attempt that began at `at_ms`, milliseconds since 1970. `result` is the status of
    /// the response of an attempt that succeeded, or the status and the reason.
    pub(crate) fn new(
        at_ms: i64,
        duration: Duration,
        result: Result<u16, (Option<u16>, &str)>,
    ) -> Self {
        let (status, error) = match result {
            Ok(status) => (Some(status), None),
            Err((status, why)) => (status, Some(why.chars().take(ATTEMPT_ERROR_CHARS).collect())),
        };
        let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self { at_ms, duration_ms, status, error }
    }
}

/// A webhook whose delivery was abandoned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AbandonedWebhook {
    #[serde(flatten)]
    pub(crate) delivery: Delivery,
    /// Why the last attempt failed.
    pub(crate) last_error: String,
    /// Time at which the delivery was abandoned, in milliseconds since 1970.
    pub(crate) abandoned_ms: i64,
}

/// A webhook that a receiver accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeliveredWebhook {
    #[serde(flatten)]
    pub(crate) delivery: Delivery,
    /// Time at which the receiver accepted the webhook, in milliseconds since 1970.
    pub(crate) delivered_ms: i64,
}

/// Returns a key by which lists have the newest record first.
fn newest_first_key(at_ms: i64, run: &RunId) -> String {
    let age = u64::MAX - u64::try_from(at_ms).unwrap_or(0);
    format!("{age:016x}-{run}")
}

/// Maximum number of delivered webhooks of one tenant, or without a tenant, that are kept.
const DELIVERED_PER_TENANT: usize = 200;

/// Maximum number of delivered webhooks of all tenants that are kept.
const DELIVERED: usize = 2_000;

/// Decides which delivered webhooks are kept, newest first: a bounded number of all tenants and of
/// each, so that one tenant does not displace the webhooks of others.
#[derive(Default)]
struct KeptDeliveries {
    count: usize,
    by_tenant: BTreeMap<Option<String>, usize>,
}

impl KeptDeliveries {
    /// Returns true if a webhook is kept.
    fn keeps(&mut self, webhook: &DeliveredWebhook) -> bool {
        let of_tenant = self.by_tenant.entry(webhook.delivery.tenant.clone()).or_default();
        if self.count >= DELIVERED || *of_tenant >= DELIVERED_PER_TENANT {
            return false;
        }
        *of_tenant += 1;
        self.count += 1;
        true
    }
}

/// Maximum number of characters of an error in a record. Lists have many records, and a message of
/// a peer can be long.
const ERROR_CHARS: usize = 500;

/// Returns the part of an error that a record contains.
pub(crate) fn shorten_error(why: &str) -> String {
    why.chars().take(ERROR_CHARS).collect()
}

impl Delivery {
    /// Returns the delivery after a further attempt. If the attempt failed, the number of failed
    /// attempts grows by one.
    pub(crate) fn after(&self, attempt: DeliveryAttempt) -> Self {
        let mut after = self.clone();
        if attempt.error.is_some() {
            after.attempts = after.attempts.saturating_add(1);
        }
        after.attempt_log.push(attempt);
        let surplus = after.attempt_log.len().saturating_sub(LOGGED_ATTEMPTS);
        after.attempt_log.drain(..surplus);
        after
    }
}

impl WebhookRecord {
    /// Returns whether the stored webhook equals `self`. If so, no host has changed, taken over or
    /// deleted the webhook since it was read.
    pub(crate) async fn is_unchanged(&self, ports: &Ports) -> Result<bool, Failure> {
        Ok(webhook_records(ports).get(self.delivery.run.as_str()).await?.as_ref() == Some(self))
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
        webhook_records(ports).delete(self.delivery.run.as_str()).await?;
        payload_records(ports).delete(self.delivery.run.as_str()).await
    }

    /// Stores the payload. The payload is durable when this method returns.
    pub(crate) async fn save_payload(
        &self,
        ports: &Ports,
        payload: &Payload,
    ) -> Result<(), Failure> {
        payload_records(ports).put(self.delivery.run.as_str(), payload, None).await
    }

    /// Reads the stored payload.
    pub(crate) async fn payload(&self, ports: &Ports) -> Result<Option<Payload>, Failure> {
        payload_records(ports).get(self.delivery.run.as_str()).await
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

/// Time in milliseconds for which the store keeps abandoned and delivered webhooks. It is 30 days,
/// so that an operator can investigate a delivery.
const ENDED_TTL_MS: u64 = 30 * 86_400_000;

/// Reads the reason why the delivery of a webhook was abandoned.
pub(crate) async fn delivery_error(ports: &Ports, run: &RunId) -> Result<Option<String>, Failure> {
    delivery_error_records(ports).get(run.as_str()).await
}

/// Stores why the delivery of a webhook is abandoned, for the run and for lists of webhooks.
pub(crate) async fn save_delivery_error(
    ports: &Ports,
    webhook: &WebhookRecord,
    attempt: DeliveryAttempt,
    why: &str,
) -> Result<(), Failure> {
    let ttl_ms = Some(ENDED_TTL_MS);
    let delivery = webhook.delivery.after(attempt);
    delivery_error_records(ports).put(delivery.run.as_str(), &why, ttl_ms).await?;
    let abandoned_ms = ports.clock.now_ms();
    let key = newest_first_key(abandoned_ms, &delivery.run);
    let abandoned = AbandonedWebhook { delivery, last_error: shorten_error(why), abandoned_ms };
    abandoned_records(ports).put(&key, &abandoned, ttl_ms).await
}

/// Stores that a webhook was delivered, for lists of webhooks.
pub(crate) async fn save_delivered(
    ports: &Ports,
    webhook: &WebhookRecord,
    attempt: DeliveryAttempt,
) -> Result<(), Failure> {
    let delivery = webhook.delivery.after(attempt);
    let delivered_ms = ports.clock.now_ms();
    let key = newest_first_key(delivered_ms, &delivery.run);
    let delivered = DeliveredWebhook { delivery, delivered_ms };
    delivered_records(ports).put(&key, &delivered, Some(ENDED_TTL_MS)).await
}

/// Deletes the delivered webhooks above the maximum number.
pub(crate) async fn prune_delivered(ports: &Ports) -> Result<(), Failure> {
    let mut kept = KeptDeliveries::default();
    delivered_records(ports).retain(|webhook: &DeliveredWebhook| kept.keeps(webhook)).await
}

/// Returns the collection of the delivered webhooks of all tenants.
pub(crate) fn delivered_records(ports: &Ports) -> Collection<'_> {
    Collection::new(ports, MemoryScope::Host(None), &["delivered-webhooks"])
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

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::json;

    use super::*;

    fn delivery(tenant: Option<&str>) -> Delivery {
        Delivery {
            run: RunId::new("r").unwrap(),
            thread: ThreadId::new("t").unwrap(),
            tenant: tenant.map(str::to_owned),
            url: "https://hooks.example/".to_owned(),
            attempts: 0,
            attempt_log: Vec::new(),
        }
    }

    #[test]
    fn records_of_older_versions_are_read_and_written_unchanged() {
        let delivery = json!({
            "run": "r", "thread": "t", "tenant": null, "url": "https://hooks.example/",
            "attempts": 2,
        });
        let logged = json!([
            { "at_ms": 1, "duration_ms": 2, "status": 500, "error": "no" },
            { "at_ms": 3, "duration_ms": 2, "status": 204 },
        ]);
        fn unchanged<T: Serialize + DeserializeOwned>(delivery: &Value, fields: Value) {
            let mut stored = delivery.clone();
            let (Value::Object(stored_fields), Value::Object(fields)) = (&mut stored, fields)
            else {
                panic!("records are objects");
            };
            stored_fields.extend(fields);
            let read: T = serde_json::from_value(stored.clone()).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), stored);
        }
        unchanged::<WebhookRecord>(
            &delivery,
            json!({ "next_ms": 7, "is_told": true, "host": "h" }),
        );
        unchanged::<WebhookRecord>(
            &delivery,
            json!({
                "next_ms": 7, "is_told": false, "host": "h", "request": "q", "last_error": "no",
                "attempt_log": logged,
            }),
        );
        unchanged::<AbandonedWebhook>(&delivery, json!({ "last_error": "no", "abandoned_ms": 8 }));
        unchanged::<DeliveredWebhook>(
            &delivery,
            json!({ "delivered_ms": 9, "attempt_log": logged }),
        );
    }

    #[test]
    fn the_log_of_a_webhook_has_the_newest_attempts() {
        let mut delivery = delivery(None);
        for at_ms in 0..20 {
            let why = "x".repeat(2 * ATTEMPT_ERROR_CHARS);
            let failed = Err((Some(500), why.as_str()));
            delivery =
                delivery.after(DeliveryAttempt::new(at_ms, Duration::from_millis(3), failed));
        }
        let times: Vec<i64> = delivery.attempt_log.iter().map(|attempt| attempt.at_ms).collect();
        assert_eq!(times, (10..20).collect::<Vec<_>>());
        let error = delivery.attempt_log[0].error.as_deref();
        assert_eq!(error.map(str::len), Some(ATTEMPT_ERROR_CHARS));
        let delivered = delivery.after(DeliveryAttempt::new(20, Duration::ZERO, Ok(204)));
        assert_eq!((delivery.attempts, delivered.attempts), (20, 20), "failed attempts");
    }

    #[test]
    fn a_bounded_number_of_deliveries_is_kept_for_each_tenant_and_together() {
        let of =
            |tenant: Option<&str>| DeliveredWebhook { delivery: delivery(tenant), delivered_ms: 0 };
        let mut kept = KeptDeliveries::default();
        let of_one = (0..1_000).filter(|_| kept.keeps(&of(Some("noisy")))).count();
        assert_eq!(of_one, DELIVERED_PER_TENANT);
        assert!(kept.keeps(&of(None)), "others are kept");
        let tenants = (0..5_000).map(|number| number.to_string());
        let of_others = tenants.filter(|tenant| kept.keeps(&of(Some(tenant)))).count();
        assert_eq!(of_one + 1 + of_others, DELIVERED);
    }
}
