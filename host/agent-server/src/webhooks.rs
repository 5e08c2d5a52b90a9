//! Webhooks: a POST to a client's URL when a run has ended, whatever its result.
//!
//! A webhook is stored before its run starts (`crate::records::webhook`), and deleted after a
//! response with status 2xx. A failed attempt is retried with growing delays, also after a restart
//! of the host. A webhook is therefore delivered at least once, and not again after the host has
//! read and recorded a status 2xx. All attempts have the same `webhook-id`.
//!
//! If hosts share a store, each webhook has the id of the host that delivers it. The other hosts
//! deliver the webhook only if that host is no longer live (`crate::hosts`).

mod delivery;
mod delivery_tasks;
mod payload;
mod settings;

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio::runtime::Handle;
use tokio::sync::watch;
use uuid::Uuid;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::engine::Engine;
use wattle_run::ports::store::{LeaseHolder, PendingQuery, ThreadStatus};

use self::delivery_tasks::DeliveryTasks;
pub use self::settings::{RETRY_DELAYS, WebhookSettings};
pub use crate::wire::webhook::{
    AddressPolicy, AllowRule, AllowRuleError, SigningKey, SigningKeyError,
};

use crate::error::ApiError;
use crate::records::webhook::{Delivery, WebhookRecord, webhook_records};
use crate::records::{Versioned, retry_on_conflict};
use crate::resolve::run::RequestedRun;

/// The webhooks of the runs of this host. Clones share the state.
#[derive(Clone)]
pub(crate) struct Webhooks(Arc<Inner>);

struct Inner {
    engine: Engine,
    settings: WebhookSettings,
    tasks: DeliveryTasks,
    /// Number of webhooks that this host has delivered.
    delivered: AtomicUsize,
    stopping: watch::Receiver<bool>,
}

impl Webhooks {
    /// Creates the webhooks of a host that runs until `stopping` becomes true.
    pub(crate) fn new(
        engine: Engine,
        settings: WebhookSettings,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let (tasks, delivered) = (DeliveryTasks::default(), AtomicUsize::default());
        Self(Arc::new(Inner { engine, settings, tasks, delivered, stopping }))
    }

    /// Returns the engine whose runs have the webhooks.
    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// Returns the signal of the shutdown of the host.
    pub(crate) fn stopping(&self) -> &watch::Receiver<bool> {
        &self.0.stopping
    }

    /// Checks that the rules permit the URL of a webhook.
    ///
    /// # Errors
    ///
    /// 422 if the rules do not permit the URL.
    pub(crate) fn check(&self, url: &str) -> Result<(), ApiError> {
        self.0.settings.check(url)
    }

    /// Returns the id of this host among the hosts that share its store.
    fn host(&self) -> &str {
        &self.0.engine.holder().0
    }

    /// Stores the webhook of a run, if the request has one.
    ///
    /// A webhook of the same run may already be stored: another host crashed while it created the
    /// same run of a cron, or an earlier attempt of this host failed. The webhook is stored again
    /// with this request's id, so that a task that did not find the run cannot delete it.
    ///
    /// # Errors
    ///
    /// 422 for a URL that the rules do not permit.
    pub(crate) async fn register(
        &self,
        requested: &RequestedRun,
    ) -> Result<Option<Registration>, ApiError> {
        let url = requested.client.kwargs.get("webhook").and_then(|url| url.as_str());
        let Some(url) = url else { return Ok(None) };
        self.0.settings.check(url)?;
        let webhook = WebhookRecord {
            delivery: Delivery {
                run: requested.run.clone(),
                thread: requested.thread.clone(),
                tenant: requested.tenant.clone(),
                url: url.to_owned(),
                attempts: 0,
                attempt_log: Vec::new(),
            },
            next_ms: self.0.engine.ports().clock.now_ms(),
            has_payload: false,
            host: self.host().to_owned(),
            request: Uuid::new_v4().to_string(),
            last_error: None,
        };
        // Register the request before the webhook is stored. Otherwise another task could find the
        // webhook without a run and delete it.
        let starting = Some(StartGuard::new(self, &requested.run));
        let claim = Claim::take(self, &requested.run);
        let records = webhook_records(self.0.engine.ports());
        let stored = retry_on_conflict(|| async {
            if let Some(inserted) =
                records.insert(webhook.delivery.run.as_str(), webhook.clone()).await?
            {
                return Ok(Some(Some(inserted)));
            }
            let Some(existing) =
                records.get_versioned::<WebhookRecord>(webhook.delivery.run.as_str()).await?
            else {
                return Ok(None);
            };
            if existing.value.has_payload {
                // A stored payload means that the run has ended.
                return Ok(Some(None));
            }
            let WebhookRecord { host, request, .. } = webhook.clone();
            let updated = WebhookRecord { host, request, ..existing.value.clone() };
            Ok::<_, Failure>(records.replace(&existing, updated).await?.map(Some))
        });
        let write_conflict = || {
            let text = format!(
                "the webhook of run `{}` is being changed; try again",
                webhook.delivery.run
            );
            Failure::new(code::UNAVAILABLE, text)
        };
        let stored = stored.await;
        if let Ok(Some(Some(webhook))) = stored {
            let (webhooks, runtime) = (self.clone(), Handle::current());
            return Ok(Some(Registration { webhooks, webhook, claim, starting, runtime }));
        }
        // While this request held the claim, another task may have skipped the stored webhook.
        drop((claim, starting));
        self.deliver_stored(&requested.run).await;
        match stored? {
            Some(_) => Ok(None),
            None => Err(write_conflict().into()),
        }
    }

    /// Delivers the webhook of a run if the webhook belongs to this host and no other task delivers
    /// it.
    async fn deliver_stored(&self, run: &RunId) {
        match webhook_records(self.0.engine.ports())
            .get_versioned::<WebhookRecord>(run.as_str())
            .await
        {
            Ok(Some(webhook)) if webhook.value.host == self.host() => {
                self.ensure_delivery(webhook);
            }
            Ok(_) => {}
            Err(failure) => tracing::warn!(%run, %failure, "failed to read a webhook"),
        }
    }

    /// Delivers a webhook in the background until the host shuts down, unless another task delivers
    /// it.
    fn ensure_delivery(&self, webhook: Versioned<WebhookRecord>) {
        if let Some(claim) = Claim::take(self, &webhook.value.delivery.run) {
            spawn_delivery(webhook, ready(claim));
        }
    }

    /// Stores webhooks again whose runs were to be deleted, but may still exist. The delivery of a
    /// webhook whose run was deleted ends without a request. A failure is only logged: the client
    /// gets the reason why its request failed.
    pub(crate) async fn restore(&self, deleted: Vec<WebhookRecord>) {
        let records = webhook_records(self.0.engine.ports());
        for webhook in deleted {
            let run = webhook.delivery.run.clone();
            match records.insert(run.as_str(), webhook).await {
                Ok(Some(webhook)) if webhook.value.host == self.host() => {
                    // The task that delivered the webhook may be about to end, because it did not
                    // find the webhook.
                    spawn_delivery_once_free(self, webhook);
                }
                Ok(_) => {}
                Err(failure) => tracing::warn!(%run, %failure, "failed to restore a webhook"),
            }
        }
    }

    /// Returns the stored webhooks of all hosts.
    ///
    /// # Errors
    ///
    /// The errors of the memory.
    pub(crate) async fn list(&self) -> Result<Vec<Versioned<WebhookRecord>>, Failure> {
        webhook_records(self.0.engine.ports()).list_prefix("").await
    }

    /// Takes over and delivers the webhooks of hosts that are not live. Delivers the webhooks of
    /// this host that no task delivers yet.
    ///
    /// # Errors
    ///
    /// The errors of the memory.
    pub(crate) async fn take_over(
        &self,
        listed: Vec<Versioned<WebhookRecord>>,
        live: &BTreeSet<LeaseHolder>,
    ) -> Result<(), Failure> {
        let (own, records) = (self.host(), webhook_records(self.0.engine.ports()));
        for webhook in listed {
            if webhook.value.host == own {
                self.ensure_delivery(webhook);
            } else if !live.iter().any(|host| host.0 == webhook.value.host) {
                let taken = WebhookRecord { host: own.to_owned(), ..webhook.value.clone() };
                if let Some(taken) = records.replace(&webhook, taken).await? {
                    self.ensure_delivery(taken);
                }
            }
        }
        Ok(())
    }
}

/// The exclusive right of one task of this host to deliver the webhook of a run.
struct Claim {
    webhooks: Webhooks,
    run: RunId,
}

impl Claim {
    /// Claims the delivery. Returns `None` if another task holds the claim.
    fn take(webhooks: &Webhooks, run: &RunId) -> Option<Self> {
        let is_new = webhooks.0.tasks.lock().delivering.insert(run.clone());
        is_new.then(|| Self { webhooks: webhooks.clone(), run: run.clone() })
    }

    /// Waits until no other task holds the claim, and takes it.
    async fn wait(webhooks: Webhooks, run: RunId) -> Self {
        webhooks.0.tasks.wait_until(|tasks| tasks.delivering.insert(run.clone())).await;
        Self { webhooks, run }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.webhooks.0.tasks.lock().delivering.remove(&self.run);
        self.webhooks.0.tasks.changed.notify_waiters();
    }
}

/// Records that a request is starting a run, until the guard is dropped.
struct StartGuard {
    webhooks: Webhooks,
    run: RunId,
}

impl StartGuard {
    fn new(webhooks: &Webhooks, run: &RunId) -> Self {
        *webhooks.0.tasks.lock().starting.entry(run.clone()).or_default() += 1;
        Self { webhooks: webhooks.clone(), run: run.clone() }
    }
}

impl Drop for StartGuard {
    fn drop(&mut self) {
        {
            let mut tasks = self.webhooks.0.tasks.lock();
            if let Some(requests) = tasks.starting.get_mut(&self.run) {
                *requests -= 1;
                if *requests == 0 {
                    tasks.starting.remove(&self.run);
                }
            }
        }
        self.webhooks.0.tasks.changed.notify_waiters();
    }
}

/// A stored webhook of a run that is about to start. Dropping the registration starts the delivery.
/// The registration is dropped when the run exists or its creation has failed.
pub(crate) struct Registration {
    webhooks: Webhooks,
    webhook: Versioned<WebhookRecord>,
    /// `None` if another task of this host delivers a webhook of the same run.
    claim: Option<Claim>,
    starting: Option<StartGuard>,
    runtime: Handle,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let _entered = self.runtime.enter();
        self.starting = None;
        let webhook = self.webhook.clone();
        if let Some(claim) = self.claim.take() {
            spawn_delivery(webhook, ready(claim));
            return;
        }
        // The other task may have looked for the run before the run existed, so the delivery starts
        // again after that task has ended.
        spawn_delivery_once_free(&self.webhooks, webhook);
    }
}

/// Starts a delivery once no other task delivers the webhook.
fn spawn_delivery_once_free(webhooks: &Webhooks, webhook: Versioned<WebhookRecord>) {
    let claim = Claim::wait(webhooks.clone(), webhook.value.delivery.run.clone());
    spawn_delivery(webhook, claim);
}

/// Starts the task that waits for the claim and delivers the webhook.
fn spawn_delivery(
    webhook: Versioned<WebhookRecord>,
    claim: impl Future<Output = Claim> + Send + 'static,
) {
    tokio::spawn(async move {
        let claim = claim.await;
        let webhooks = &claim.webhooks;
        let mut stopping = webhooks.0.stopping.clone();
        tokio::select! {
            () = delivery::run_delivery(webhooks, webhook) => {}
            // The delivery continues after the next start, or on another host.
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    });
}

/// Deletes the webhook of a run that is about to be deleted.
///
/// # Errors
///
/// The errors of the memory.
pub(crate) async fn unregister(engine: &Engine, run: &RunId) -> Result<(), Failure> {
    webhook_records(engine.ports()).delete(run.as_str()).await
}

/// Deletes the webhooks of the pending and running runs of a thread. Returns these webhooks.
///
/// # Errors
///
/// The errors of the store and of the memory.
pub(crate) async fn unregister_thread(
    engine: &Engine,
    thread: &ThreadId,
) -> Result<Vec<WebhookRecord>, Failure> {
    let store = &engine.ports().store;
    let query =
        PendingQuery { thread: Some(thread.clone()), limit: usize::MAX, ..PendingQuery::default() };
    let pending = store.pending(&query).await?;
    let record = store.thread(thread).await?.map(|head| head.record);
    let running = record.filter(|record| record.status == ThreadStatus::Running);
    let running = running.and_then(|record| record.run);
    let mut deleted = Vec::new();
    for run in pending.into_iter().map(|pending| pending.run).chain(running) {
        let records = webhook_records(engine.ports());
        deleted.extend(records.get::<WebhookRecord>(run.as_str()).await?);
        unregister(engine, &run).await?;
    }
    Ok(deleted)
}
