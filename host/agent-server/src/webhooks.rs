//! Webhooks: somebody is told when a run is over, whatever came of it.
//!
//! What is to be told is written down with the run, before that begins (`crate::doc::webhook`), and
//! forgotten when an answer says that it arrived. In between it is tried again, with pauses that
//! grow, also after the host has stopped and started: at least once, then, and never again after an
//! answer of 2xx that was read and noted. All attempts have the same `webhook-id`.
//!
//! Hosts that share their documents leave a webhook to the host that has it, as long as that says
//! often enough that it does.

mod deliver;
mod tell;

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use uuid::Uuid;
use wattle_graph::failure::Failure;
use wattle_graph::id::RunId;

pub use crate::wire::webhook::{AllowRule, AllowRuleError, Reachable, SigningKey, SigningKeyError};

use crate::agents::Agents;
use crate::doc::run::RunDoc;
use crate::doc::webhook::{Hook, hooks};
use crate::fault::Fault;
use crate::wire::webhook::Target;

/// Pauses before further attempts, about nine hours together: long enough for an outage that people
/// mend, short enough that what is told still matters.
pub const RETRIES: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(3),
    Duration::from_hours(3),
];

/// How long a host that shares its documents may be silent before another takes its webhooks on.
const LEASE_MS: i64 = 90_000;

/// How often it says that it has them, and looks for those of others.
const RENEWAL: Duration = Duration::from_secs(30);

/// Settings of webhooks.
#[derive(Clone, Debug)]
pub struct Webhooks {
    /// What messages are signed with; they are not, without it.
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
    /// Whether an address may be called, as far as can be seen by now.
    pub(crate) fn check(&self, url: &str) -> Result<(), Fault> {
        self.target(url).map(drop).map_err(Fault::unprocessable)
    }

    fn target(&self, url: &str) -> Result<Target, String> {
        Target::read(url, &self.allow, self.reachable)
    }
}

/// The webhooks that this host has in hand.
pub(crate) struct Hooks {
    /// This host among those that share documents.
    host: String,
    in_hand: Mutex<HashSet<RunId>>,
}

impl Default for Hooks {
    fn default() -> Self {
        Self { host: Uuid::new_v4().to_string(), in_hand: Mutex::default() }
    }
}

impl Hooks {
    /// No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.in_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A webhook that is written down for a run that is about to begin. It is looked after from the
/// moment in which this is dropped: then it is known whether there is such a run.
pub(crate) struct Booking {
    agents: Agents,
    hook: Hook,
    runtime: Handle,
}

impl Drop for Booking {
    fn drop(&mut self) {
        let _entered = self.runtime.enter();
        look_after(&self.agents, self.hook.clone());
    }
}

/// Writes down that a webhook is to be called at the end of a run, if the run has one.
///
/// # Errors
///
/// 422 for one that may not be called.
pub(crate) async fn book(agents: &Agents, doc: &RunDoc) -> Result<Option<Booking>, Fault> {
    let url = doc.kwargs.get("webhook").and_then(|url| url.as_str());
    let Some(url) = url else { return Ok(None) };
    agents.webhooks().check(url)?;
    let now_ms = agents.now_ms();
    let hook = Hook {
        run: doc.run.clone(),
        thread: doc.thread.clone(),
        tenant: doc.tenant.clone(),
        url: url.to_owned(),
        attempts: 0,
        next_ms: now_ms,
        is_told: false,
        host: agents.hooks().host.clone(),
        until_ms: now_ms.saturating_add(LEASE_MS),
    };
    let booking = Booking { agents: agents.clone(), hook, runtime: Handle::current() };
    booking.hook.save(agents.ports()).await?;
    Ok(Some(booking))
}

/// Forgets the webhook of a run that is about to be taken away with all that it did.
///
/// # Errors
///
/// Those of the memory.
pub(crate) async fn unbook(agents: &Agents, run: &RunId) -> Result<(), Failure> {
    hooks(agents.ports()).delete(run.as_str()).await
}

/// Sees to it that a webhook is called, in the background, until the host stops.
fn look_after(agents: &Agents, hook: Hook) {
    if !agents.hooks().lock().insert(hook.run.clone()) {
        return;
    }
    let agents = agents.clone();
    tokio::spawn(async move {
        let run = hook.run.clone();
        let mut stopping = agents.api().stopping.clone();
        tokio::select! {
            () = deliver::deliver(&agents, hook) => {}
            // It goes on after the next start.
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
        agents.hooks().lock().remove(&run);
    });
}

impl Agents {
    /// Looks after the webhooks that nobody has in hand.
    pub(crate) async fn take_up_hooks(&self) {
        if let Err(failure) = self.try_take_up_hooks().await {
            tracing::error!(%failure, "cannot look for webhooks that are to be called");
        }
    }

    async fn try_take_up_hooks(&self) -> Result<(), Failure> {
        let (own, now_ms) = (&self.hooks().host, self.now_ms());
        let is_shared = self.engine().is_shared();
        for mut hook in hooks(self.ports()).every::<Hook>().await? {
            // Without others, a webhook of another host is one from before this start.
            let is_left = !is_shared || hook.until_ms < now_ms;
            if self.hooks().lock().contains(&hook.run) || (hook.host != *own && !is_left) {
                continue;
            }
            hook.host.clone_from(own);
            hook.until_ms = now_ms.saturating_add(LEASE_MS);
            hook.save(self.ports()).await?;
            look_after(self, hook);
        }
        Ok(())
    }

    /// Does that again and again, where other hosts may die.
    pub(crate) fn keep_taking_up_hooks(&self) {
        if !self.engine().is_shared() {
            return;
        }
        let agents = self.clone();
        tokio::spawn(async move {
            let mut stopping = agents.api().stopping.clone();
            let taking = async {
                loop {
                    tokio::time::sleep(RENEWAL).await;
                    agents.take_up_hooks().await;
                }
            };
            tokio::select! {
                () = taking => {}
                _ = stopping.wait_for(|stopping| *stopping) => {}
            }
        });
    }
}
