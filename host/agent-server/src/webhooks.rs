//! Webhooks: a POST to a client's URL when a run is over, whatever its result.
//!
//! A webhook is stored before its run begins (`crate::doc::webhook`) and deleted after an answer of
//! 2xx. A failed attempt is repeated, with pauses that grow, also after a restart of the host. So a
//! webhook is delivered at least once, and never again after a 2xx that was read and stored. All
//! attempts have the same `webhook-id`.
//!
//! Hosts that share a store leave a webhook to the host whose name it has, while that host is live
//! (`crate::hosts`).

mod deliver;
mod payload;

use std::collections::{BTreeSet, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use wattle_graph::failure::Failure;
use wattle_graph::id::RunId;
use wattle_run::ports::store::Holder;

pub use crate::wire::webhook::{AllowRule, AllowRuleError, Reachable, SigningKey, SigningKeyError};

use crate::agents::Agents;
use crate::asked::run::AskedRun;
use crate::doc::Kept;
use crate::doc::webhook::{Hook, hooks};
use crate::fault::Fault;
use crate::wire::webhook::Target;

/// Pauses before further attempts, about nine hours together: longer than most outages, and short
/// enough that the payload is of use.
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
    /// The key that signs requests. Without it they are not signed.
    pub key: Option<SigningKey>,
    /// Private addresses that may be called.
    pub allow: Vec<AllowRule>,
    /// Which addresses may be reached at all.
    pub reachable: Reachable,
    /// Pauses before further attempts; see [`RETRIES`].
    pub retries: Vec<Duration>,
}

impl Default for Webhooks {
    /// Unsigned, to names on the internet alone.
    fn default() -> Self {
        Self { key: None, allow: Vec::new(), reachable: |_, _| false, retries: RETRIES.to_vec() }
    }
}

impl Webhooks {
    /// Whether a URL may be called. What its name resolves to is checked by each attempt.
    pub(crate) fn check(&self, url: &str) -> Result<(), Fault> {
        self.target(url).map(drop).map_err(Fault::unprocessable)
    }

    fn target(&self, url: &str) -> Result<Target, String> {
        Target::read(url, &self.allow, self.reachable)
    }
}

/// The webhooks that this host delivers.
#[derive(Default)]
pub(crate) struct Hooks {
    delivering: Mutex<HashSet<RunId>>,
}

impl Hooks {
    /// No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.delivering.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to deliver the webhook of a run: at most one task of this host has it.
struct Claim {
    agents: Agents,
    run: RunId,
}

impl Claim {
    /// `None` if another task has it.
    fn take(agents: &Agents, run: &RunId) -> Option<Self> {
        let is_new = agents.hooks().lock().insert(run.clone());
        is_new.then(|| Self { agents: agents.clone(), run: run.clone() })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.agents.hooks().lock().remove(&self.run);
    }
}

/// A stored webhook of a run that is about to begin. Its delivery starts when this is dropped: then
/// the run has begun or does not exist.
pub(crate) struct Booking {
    agents: Agents,
    hook: Kept<Hook>,
    /// `None` if this host delivers a webhook of the same run already.
    claim: Option<Claim>,
    runtime: Handle,
}

impl Drop for Booking {
    fn drop(&mut self) {
        let _entered = self.runtime.enter();
        match self.claim.take() {
            Some(claim) => spawn(self.hook.clone(), claim),
            None => keep_delivering(&self.agents, self.hook.clone()),
        }
    }
}

/// Stores the webhook of a run, if the request has one.
///
/// # Errors
///
/// 422 for one that may not be called.
pub(crate) async fn book(agents: &Agents, asked: &AskedRun) -> Result<Option<Booking>, Fault> {
    let url = asked.terms.kwargs.get("webhook").and_then(|url| url.as_str());
    let Some(url) = url else { return Ok(None) };
    agents.webhooks().check(url)?;
    let now_ms = agents.now_ms();
    let hook = Hook {
        run: asked.run.clone(),
        thread: asked.thread.clone(),
        tenant: asked.tenant.clone(),
        url: url.to_owned(),
        attempts: 0,
        next_ms: now_ms,
        has_payload: false,
        host: agents.host().to_owned(),
    };
    // Before it is stored: another task would find no such run and delete the webhook.
    let claim = Claim::take(agents, &asked.run);
    // A webhook that is stored already is of the same run of a cron, which another host begins, or
    // which this one could not begin before. Its delivery waits for the run.
    let hook = hooks(agents.ports()).make(asked.run.as_str(), hook).await?;
    let runtime = Handle::current();
    Ok(hook.map(|hook| Booking { agents: agents.clone(), hook, claim, runtime }))
}

/// Deletes the webhook of a run that is about to be deleted.
///
/// # Errors
///
/// Those of the memory.
pub(crate) async fn unbook(agents: &Agents, run: &RunId) -> Result<(), Failure> {
    hooks(agents.ports()).delete(run.as_str()).await
}

/// Delivers a webhook in the background, until the host stops, unless a task does so already.
fn keep_delivering(agents: &Agents, hook: Kept<Hook>) {
    if let Some(claim) = Claim::take(agents, &hook.doc.run) {
        spawn(hook, claim);
    }
}

fn spawn(hook: Kept<Hook>, claim: Claim) {
    tokio::spawn(async move {
        let agents = &claim.agents;
        let mut stopping = agents.api().stopping.clone();
        tokio::select! {
            () = deliver::deliver(agents, hook) => {}
            // It goes on after the next start, or on another host.
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    });
}

/// The stored webhooks of all hosts.
///
/// # Errors
///
/// Those of the memory.
pub(crate) async fn listed(agents: &Agents) -> Result<Vec<Kept<Hook>>, Failure> {
    hooks(agents.ports()).under("").await
}

/// Delivers the webhooks of hosts that are not live, and those of this host that it does not deliver
/// yet.
///
/// # Errors
///
/// Those of the memory.
pub(crate) async fn take_over(
    agents: &Agents,
    listed: Vec<Kept<Hook>>,
    live: &BTreeSet<Holder>,
) -> Result<(), Failure> {
    let (own, shelf) = (agents.host(), hooks(agents.ports()));
    for hook in listed {
        if hook.doc.host == own {
            keep_delivering(agents, hook);
        } else if !live.iter().any(|host| host.0 == hook.doc.host) {
            let taken = Hook { host: own.to_owned(), ..hook.doc.clone() };
            if let Some(taken) = shelf.change(&hook, taken).await? {
                keep_delivering(agents, taken);
            }
        }
    }
    Ok(())
}
