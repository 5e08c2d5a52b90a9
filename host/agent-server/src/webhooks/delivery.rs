//! The delivery of one webhook: from the end of its run to a response with status 2xx.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use url::Host;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, PluginName};
use wattle_run::caller_id::CallerId;
use wattle_run::engine::Engine;
use wattle_run::grant::{Grants, HttpRule};
use wattle_run::hostcall::http::{HttpBody, HttpRequest};
use wattle_run::limit::{Limits, NetLimits};
use wattle_run::ports::Caller;

use super::{Webhooks, payload};
use crate::records::Versioned;
use crate::records::webhook::{self, DeliveryAttempt, Payload, WebhookRecord, webhook_records};
use crate::wire::webhook::WebhookUrl;

/// Pause after an error of the store.
const STORE_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Timeout of a request in milliseconds. A receiver should respond before it processes the webhook.
const TIMEOUT_MS: u32 = 15_000;

/// Name of the app and of the plugin that outbound HTTP uses as the caller of webhooks.
const CALLER_NAME: &str = "webhooks";

/// The step after an attempt.
enum DeliveryStep {
    /// No step follows: the webhook was delivered, abandoned, or taken over by another host.
    Done,
    /// Another attempt follows after a pause.
    RetryAfter(Duration),
}

/// The reason why an attempt failed.
struct DeliveryError {
    why: String,
    /// Status of the response; `None` without a response.
    status: Option<u16>,
    /// True if no retry can succeed.
    is_permanent: bool,
}

impl DeliveryError {
    fn transient(why: String) -> Self {
        Self { why, status: None, is_permanent: false }
    }

    fn permanent(why: String) -> Self {
        Self { why, status: None, is_permanent: true }
    }
}

/// Number of deliveries after which a host deletes the oldest ones above the maximum number. A
/// deletion reads all that are kept.
const PRUNE_INTERVAL: usize = 100;

/// Delivers a webhook after the end of its run.
pub(super) async fn run_delivery(webhooks: &Webhooks, mut webhook: Versioned<WebhookRecord>) {
    let due_ms = webhook.value.next_ms.saturating_sub(webhooks.0.engine.ports().clock.now_ms());
    tokio::time::sleep(Duration::from_millis(u64::try_from(due_ms).unwrap_or(0))).await;
    loop {
        match deliver_once(webhooks, &mut webhook).await {
            Ok(DeliveryStep::Done) => return,
            Ok(DeliveryStep::RetryAfter(delay)) => tokio::time::sleep(delay).await,
            Err(failure) => {
                let run = &webhook.value.delivery.run;
                tracing::warn!(%run, %failure, "failed to read or write a webhook");
                tokio::time::sleep(STORE_RETRY_DELAY).await;
            }
        }
    }
}

async fn deliver_once(
    webhooks: &Webhooks,
    webhook: &mut Versioned<WebhookRecord>,
) -> Result<DeliveryStep, Failure> {
    let engine = &webhooks.0.engine;
    let ports = engine.ports();
    if !webhook.value.has_payload {
        let payload = payload::wait_for_payload(webhooks, &webhook.value).await;
        let payload = payload.map_err(|error| Failure::internal(error.detail().to_owned()))?;
        // In the meantime, a client may have cancelled and deleted the run, or another host may
        // have taken over the webhook.
        if !webhook.value.is_unchanged(ports).await? {
            return reload(engine, webhook).await;
        }
        let Some(payload) = payload else {
            webhooks.0.tasks.wait_until_started(&webhook.value.delivery.run).await;
            // The webhook is not deleted if a request that was about to start the run has changed
            // it.
            if WebhookRecord::delete_unchanged(webhook, ports).await? {
                return Ok(DeliveryStep::Done);
            }
            return reload(engine, webhook).await;
        };
        webhook.value.save_payload(ports, &payload).await?;
        let ready = WebhookRecord { has_payload: true, ..webhook.value.clone() };
        let Some(ready) = webhook_records(ports).replace(webhook, ready).await? else {
            // If the run was deleted meanwhile, only this task can delete the payload.
            if webhook_records(ports)
                .get::<WebhookRecord>(webhook.value.delivery.run.as_str())
                .await?
                .is_none()
            {
                webhook.value.delete(ports).await?;
            }
            return reload(engine, webhook).await;
        };
        *webhook = ready;
    }
    if !webhook.value.is_unchanged(ports).await? {
        return reload(engine, webhook).await;
    }
    let Some(payload) = webhook.value.payload(ports).await? else {
        // A host that did not find the run has deleted an earlier webhook of the run together with
        // the payload.
        let updated = WebhookRecord { has_payload: false, ..webhook.value.clone() };
        let Some(updated) = webhook_records(ports).replace(webhook, updated).await? else {
            return reload(engine, webhook).await;
        };
        *webhook = updated;
        return Ok(DeliveryStep::RetryAfter(Duration::ZERO));
    };
    let (at_ms, started) = (ports.clock.now_ms(), Instant::now());
    let sent = send(webhooks, &webhook.value, &payload).await;
    let result = sent.as_ref().copied().map_err(|error| (error.status, error.why.as_str()));
    let attempt = DeliveryAttempt::new(at_ms, started.elapsed(), result);
    match sent {
        Ok(_) => {
            tracing::info!(run = %webhook.value.delivery.run, "webhook delivered");
            webhook.value.delete(ports).await?;
            log_delivered(webhooks, &webhook.value, attempt).await;
            Ok(DeliveryStep::Done)
        }
        Err(error) if error.is_permanent => {
            abandon(engine, &webhook.value, attempt, &error.why).await
        }
        Err(error) => schedule_retry(webhooks, webhook, attempt, &error.why).await,
    }
}

/// Stores that a webhook was delivered, and deletes the oldest deliveries from time to time. The
/// delivery is complete, so an error is only logged: a retry would send the webhook again.
async fn log_delivered(webhooks: &Webhooks, webhook: &WebhookRecord, attempt: DeliveryAttempt) {
    let ports = webhooks.0.engine.ports();
    let mut logged = webhook::save_delivered(ports, webhook, attempt).await;
    let before = webhooks.0.delivered.fetch_add(1, Ordering::Relaxed);
    if before.is_multiple_of(PRUNE_INTERVAL) {
        logged = logged.and(webhook::prune_delivered(ports).await);
    }
    if let Err(failure) = logged {
        tracing::warn!(run = %webhook.delivery.run, %failure, "failed to store a webhook delivery");
    }
}

/// Continues with the stored webhook. Ends the delivery if the webhook was deleted or another host
/// delivers it.
async fn reload(
    engine: &Engine,
    webhook: &mut Versioned<WebhookRecord>,
) -> Result<DeliveryStep, Failure> {
    let stored = webhook_records(engine.ports())
        .get_versioned::<WebhookRecord>(webhook.value.delivery.run.as_str())
        .await?;
    let stored = stored.filter(|stored| stored.value.host == webhook.value.host);
    Ok(stored.map_or(DeliveryStep::Done, |stored| {
        *webhook = stored;
        DeliveryStep::RetryAfter(Duration::ZERO)
    }))
}

async fn schedule_retry(
    webhooks: &Webhooks,
    webhook: &mut Versioned<WebhookRecord>,
    attempt: DeliveryAttempt,
    why: &str,
) -> Result<DeliveryStep, Failure> {
    let engine = &webhooks.0.engine;
    let failed = webhook.value.delivery.attempts;
    let Some(delay) = webhooks.0.settings.retry_delays.get(failed).copied() else {
        return abandon(engine, &webhook.value, attempt, why).await;
    };
    let delivery = webhook.value.delivery.after(attempt);
    let (run, attempts) = (&delivery.run, delivery.attempts);
    tracing::info!(%run, attempts, why, "webhook attempt failed; retrying");
    let delay_ms = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
    let next_ms = engine.ports().clock.now_ms().saturating_add(delay_ms);
    let last_error = Some(webhook::shorten_error(why));
    let later = WebhookRecord { delivery, next_ms, last_error, ..webhook.value.clone() };
    let Some(later) = webhook_records(engine.ports()).replace(webhook, later).await? else {
        return Ok(DeliveryStep::Done);
    };
    *webhook = later;
    Ok(DeliveryStep::RetryAfter(delay))
}

/// Abandons the delivery, and stores the reason, which clients get in the `kwargs` of the run.
async fn abandon(
    engine: &Engine,
    webhook: &WebhookRecord,
    attempt: DeliveryAttempt,
    why: &str,
) -> Result<DeliveryStep, Failure> {
    tracing::warn!(run = %webhook.delivery.run, why, "webhook delivery abandoned");
    let ports = engine.ports();
    webhook::save_delivery_error(ports, webhook, attempt, why).await?;
    webhook.delete(ports).await?;
    Ok(DeliveryStep::Done)
}

/// Sends a webhook. Returns the status of the response.
async fn send(
    webhooks: &Webhooks,
    webhook: &WebhookRecord,
    payload: &Payload,
) -> Result<u16, DeliveryError> {
    // The rules may have changed since the run was requested.
    let target =
        webhooks.0.settings.parse_url(&webhook.delivery.url).map_err(DeliveryError::permanent)?;
    let net = NetLimits { redirects: 0, ..NetLimits::default() };
    let limits = Limits { net, ..Limits::default() };
    let grants = Grants { http: vec![rule(&target)], limits, ..Grants::default() };
    let request = request(webhooks, webhook, &target, payload);
    let ports = webhooks.0.engine.ports();
    let sent = ports.net.send(&caller(webhook), &grants, &request, &*ports.blobs).await;
    match sent {
        Ok(response) if (200..300).contains(&response.status) => Ok(response.status),
        Ok(response) => {
            let why = format!("the URL responded with status {}", response.status);
            Err(DeliveryError { status: Some(response.status), ..DeliveryError::transient(why) })
        }
        Err(failure) if failure.code == code::DENIED => {
            let host = target.url.host_str().unwrap_or_default();
            let why = format!(
                "`{host}` resolves to an address that webhooks may not call; the operator can \
                 allow private addresses under `[server.webhooks]`"
            );
            Err(DeliveryError::permanent(why))
        }
        Err(failure) => Err(DeliveryError::transient(failure.message)),
    }
}

fn request(
    webhooks: &Webhooks,
    webhook: &WebhookRecord,
    target: &WebhookUrl,
    payload: &Payload,
) -> HttpRequest {
    let now_ms = webhooks.0.engine.ports().clock.now_ms();
    let (id, timestamp_s) = (webhook.delivery.run.as_str(), now_ms.div_euclid(1_000));
    let body = payload.body(now_ms);
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("webhook-id".to_owned(), id.to_owned()),
        ("webhook-timestamp".to_owned(), timestamp_s.to_string()),
    ];
    if let Some(key) = &webhooks.0.settings.signing_key {
        headers.push(("webhook-signature".to_owned(), key.sign(id, timestamp_s, &body)));
    }
    HttpRequest {
        method: "POST".to_owned(),
        url: target.url.to_string(),
        headers,
        body: HttpBody::Bytes(body),
        timeout_ms: Some(TIMEOUT_MS),
        idempotency_key: None,
        delay_ms: None,
    }
}

/// Returns a rule that allows only the URL of the webhook. The rule allows private addresses only
/// if the operator's rules allow them.
fn rule(target: &WebhookUrl) -> HttpRule {
    let url = &target.url;
    let host = match url.host() {
        Some(Host::Ipv6(address)) => address.to_string(),
        _ => url.host_str().unwrap_or_default().to_owned(),
    };
    HttpRule {
        host,
        scheme: url.scheme().to_owned(),
        port: url.port(),
        methods: vec!["POST".to_owned()],
        secrets: BTreeSet::new(),
        private: target.private,
    }
}

fn caller(webhook: &WebhookRecord) -> Caller {
    let app = AppName::new(CALLER_NAME).expect("the name is valid");
    let owner = CallerId::of_app(&app);
    let plugin = PluginName::new(CALLER_NAME).expect("the name is valid");
    Caller { app, plugin, tenant: webhook.delivery.tenant.clone(), owner }
}
