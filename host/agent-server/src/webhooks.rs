//! Webhooks: a POST to a client's URL when a run has ended, whatever its result.
//!
//! A webhook is stored before its run starts (`crate::records::webhook`), and deleted after a response
//! with status 2xx. A failed attempt is retried with growing pauses, also after a restart of the
//! host. A webhook is therefore delivered at least once, and not again after the host has read and
//! recorded a status 2xx. All attempts have the same `webhook-id`.
//!
//! If hosts share a store, each webhook has the id of the host that delivers it. The other hosts
//! deliver it only if that host is no longer live (`crate::hosts`).

mod deliver;
mod payload;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use uuid::Uuid;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::RunId;
use wattle_run::ports::store::LeaseHolder;

pub use crate::wire::webhook::{AllowRule, AllowRuleError, Reachable, SigningKey, SigningKeyError};

use crate::error::ApiError;
use crate::records::webhook::{WebhookRecord, webhook_records};
use crate::records::{Versioned, retry_on_conflict};
use crate::resolve::run::RequestedRun;
use crate::state::AgentServer;
use crate::wire::webhook::Target;

/// Pauses before retries. Their sum is about nine hours: longer than most outages, and short enough
/// that the payload is still useful.
pub const RETRIES: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(3),
    Duration::from_hours(3),
];

/// Settings of webhooks.
#[derive(Clone, Debug)]
pub struct Webhooks {
    /// Key that signs requests. Without a key, requests are not signed.
    pub key: Option<SigningKey>,
    /// Private addresses that webhooks may call.
    pub allow: Vec<AllowRule>,
    /// Decides which IP addresses webhooks may call.
    pub reachable: Reachable,
    /// Pauses before retries; see [`RETRIES`].
    pub retries: Vec<Duration>,
}

impl Default for Webhooks {
    /// Returns settings without a key. They permit public host names only.
    fn default() -> Self {
        Self { key: None, allow: Vec::new(), reachable: |_, _| false, retries: RETRIES.to_vec() }
    }
}

impl Webhooks {
    /// Checks that the rules permit a URL. The IP addresses of its host name are checked at each
    /// attempt, because they can change.
    pub(crate) fn check(&self, url: &str) -> Result<(), ApiError> {
        self.target(url).map(drop).map_err(ApiError::unprocessable)
    }

    fn target(&self, url: &str) -> Result<Target, String> {
        Target::read(url, &self.allow, self.reachable)
    }
}

/// The webhooks that this host delivers, and the runs with webhooks that are being started.
#[derive(Default)]
pub(crate) struct Hooks {
    work: Mutex<Work>,
    /// Notified when an entry is removed from `work`.
    changed: Notify,
}

#[derive(Default)]
struct Work {
    delivering: HashSet<RunId>,
    /// Number of requests that are starting each run.
    beginning: HashMap<RunId, usize>,
}

impl Hooks {
    /// Locks the work and ignores poisoning: no code that can panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the work satisfies a condition.
    async fn until(&self, mut holds: impl FnMut(&mut Work) -> bool) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if holds(&mut self.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// Waits until no request of this host is starting the run.
    async fn begun(&self, run: &RunId) {
        self.until(|work| !work.beginning.contains_key(run)).await;
    }
}

/// The exclusive right of one task of this host to deliver the webhook of a run.
struct Claim {
    server: AgentServer,
    run: RunId,
}

impl Claim {
    /// Claims the delivery. Returns `None` if another task holds the claim.
    fn take(server: &AgentServer, run: &RunId) -> Option<Self> {
        let is_new = server.hooks().lock().delivering.insert(run.clone());
        is_new.then(|| Self { server: server.clone(), run: run.clone() })
    }

    /// Waits until no other task holds the claim, and takes it.
    async fn wait(server: AgentServer, run: RunId) -> Self {
        server.hooks().until(|work| work.delivering.insert(run.clone())).await;
        Self { server, run }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.server.hooks().lock().delivering.remove(&self.run);
        self.server.hooks().changed.notify_waiters();
    }
}

/// A request that is starting a run, until it is dropped.
struct Beginning {
    server: AgentServer,
    run: RunId,
}

impl Beginning {
    fn new(server: &AgentServer, run: &RunId) -> Self {
        *server.hooks().lock().beginning.entry(run.clone()).or_default() += 1;
        Self { server: server.clone(), run: run.clone() }
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        {
            let mut work = self.server.hooks().lock();
            if let Some(requests) = work.beginning.get_mut(&self.run) {
                *requests -= 1;
                if *requests == 0 {
                    work.beginning.remove(&self.run);
                }
            }
        }
        self.server.hooks().changed.notify_waiters();
    }
}

/// A stored webhook of a run that is about to start. Dropping it starts the delivery. At that time,
/// the run has started or will never exist.
pub(crate) struct Booking {
    server: AgentServer,
    webhook: Versioned<WebhookRecord>,
    /// `None` if another task of this host delivers a webhook of the same run.
    claim: Option<Claim>,
    beginning: Option<Beginning>,
    runtime: Handle,
}

impl Drop for Booking {
    fn drop(&mut self) {
        let _entered = self.runtime.enter();
        self.beginning = None;
        let webhook = self.webhook.clone();
        if let Some(claim) = self.claim.take() {
            spawn(webhook, claim);
            return;
        }
        // The other task may have looked for the run before the run existed, so the delivery starts
        // again after that task has ended.
        let claim = Claim::wait(self.server.clone(), webhook.value.run.clone());
        tokio::spawn(async move { spawn(webhook, claim.await) });
    }
}

/// Stores the webhook of a run, if the request has one.
///
/// A webhook of the same run may already be stored: another host crashed while it created the same
/// run of a cron, or an earlier attempt of this host failed. The webhook is stored again with this
/// request's id, so that a task that did not find the run cannot delete it.
///
/// # Errors
///
/// 422 for a URL that the rules do not permit.
pub(crate) async fn book(
    server: &AgentServer,
    requested: &RequestedRun,
) -> Result<Option<Booking>, ApiError> {
    let url = requested.client.kwargs.get("webhook").and_then(|url| url.as_str());
    let Some(url) = url else { return Ok(None) };
    server.webhooks().check(url)?;
    let webhook = WebhookRecord {
        run: requested.run.clone(),
        thread: requested.thread.clone(),
        tenant: requested.tenant.clone(),
        url: url.to_owned(),
        attempts: 0,
        next_ms: server.now_ms(),
        has_payload: false,
        host: server.host().to_owned(),
        request: Uuid::new_v4().to_string(),
    };
    // Register the request before the webhook is stored. Otherwise another task could find the
    // webhook without a run and delete it.
    let beginning = Some(Beginning::new(server, &requested.run));
    let claim = Claim::take(server, &requested.run);
    let records = webhook_records(server.ports());
    let stored = retry_on_conflict(|| async {
        if let Some(made) = records.insert(webhook.run.as_str(), webhook.clone()).await? {
            return Ok(Some(Some(made)));
        }
        let Some(known) = records.get_versioned::<WebhookRecord>(webhook.run.as_str()).await?
        else {
            return Ok(None);
        };
        if known.value.has_payload {
            // A stored payload means that the run has ended.
            return Ok(Some(None));
        }
        let WebhookRecord { host, request, .. } = webhook.clone();
        let again = WebhookRecord { host, request, ..known.value.clone() };
        Ok::<_, Failure>(records.replace(&known, again).await?.map(Some))
    });
    let contested = || {
        let text = format!("the webhook of run `{}` is being changed; try again", webhook.run);
        Failure::new(code::UNAVAILABLE, text)
    };
    let stored = stored.await;
    if let Ok(Some(Some(webhook))) = stored {
        let (server, runtime) = (server.clone(), Handle::current());
        return Ok(Some(Booking { server, webhook, claim, beginning, runtime }));
    }
    // While this request held the claim, another task may have skipped the stored webhook.
    drop((claim, beginning));
    deliver_stored(server, &requested.run).await;
    match stored? {
        Some(_) => Ok(None),
        None => Err(contested().into()),
    }
}

/// Delivers the webhook of a run, if it belongs to this host and no other task delivers it.
async fn deliver_stored(server: &AgentServer, run: &RunId) {
    match webhook_records(server.ports()).get_versioned::<WebhookRecord>(run.as_str()).await {
        Ok(Some(webhook)) if webhook.value.host == server.host() => {
            keep_delivering(server, webhook)
        }
        Ok(_) => {}
        Err(failure) => tracing::warn!(%run, %failure, "failed to read a webhook"),
    }
}

/// Deletes the webhook of a run that is about to be deleted.
///
/// # Errors
///
/// Those of the memory.
pub(crate) async fn unbook(server: &AgentServer, run: &RunId) -> Result<(), Failure> {
    webhook_records(server.ports()).delete(run.as_str()).await
}

/// Delivers a webhook in the background until the host shuts down, unless another task delivers it.
fn keep_delivering(server: &AgentServer, webhook: Versioned<WebhookRecord>) {
    if let Some(claim) = Claim::take(server, &webhook.value.run) {
        spawn(webhook, claim);
    }
}

fn spawn(webhook: Versioned<WebhookRecord>, claim: Claim) {
    tokio::spawn(async move {
        let server = &claim.server;
        let mut stopping = server.api().stopping.clone();
        tokio::select! {
            () = deliver::deliver(server, webhook) => {}
            // The delivery continues after the next start, or on another host.
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    });
}

/// Returns the stored webhooks of all hosts.
///
/// # Errors
///
/// Those of the memory.
pub(crate) async fn listed(server: &AgentServer) -> Result<Vec<Versioned<WebhookRecord>>, Failure> {
    webhook_records(server.ports()).list_prefix("").await
}

/// Takes over and delivers the webhooks of hosts that are not live. Delivers the webhooks of this
/// host that no task delivers yet.
///
/// # Errors
///
/// Those of the memory.
pub(crate) async fn take_over(
    server: &AgentServer,
    listed: Vec<Versioned<WebhookRecord>>,
    live: &BTreeSet<LeaseHolder>,
) -> Result<(), Failure> {
    let (own, records) = (server.host(), webhook_records(server.ports()));
    for webhook in listed {
        if webhook.value.host == own {
            keep_delivering(server, webhook);
        } else if !live.iter().any(|host| host.0 == webhook.value.host) {
            let taken = WebhookRecord { host: own.to_owned(), ..webhook.value.clone() };
            if let Some(taken) = records.replace(&webhook, taken).await? {
                keep_delivering(server, taken);
            }
        }
    }
    Ok(())
}
