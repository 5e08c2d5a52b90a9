//! Webhooks: somebody is told when a run is over, whatever came of it.
//!
//! What is to be told is written down with the run, before that begins (`crate::doc::webhook`), and
//! forgotten when an answer says that it arrived. In between it is tried again, with pauses that
//! grow, also after the host has stopped and started: at least once, then, and never again after an
//! answer of 2xx that was read and noted. All attempts have the same `webhook-id`.
//!
//! Hosts that share their documents leave a webhook to the host that has it in hand, as long as that
//! is there (`crate::hosts`).

mod deliver;
mod tell;

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use wattle_graph::failure::Failure;
use wattle_graph::id::RunId;

pub use crate::wire::webhook::{AllowRule, AllowRuleError, Reachable, SigningKey, SigningKeyError};

use crate::agents::Agents;
use crate::doc::Kept;
use crate::doc::run::RunDoc;
use crate::doc::webhook::{Hook, hooks};
use crate::fault::Fault;
use crate::hosts::Present;
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
#[derive(Default)]
pub(crate) struct Hooks {
    in_hand: Mutex<HashSet<RunId>>,
}

impl Hooks {
    /// No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.in_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The webhook of a run is in hand, for as long as this lives.
struct InHand {
    agents: Agents,
    run: RunId,
}

impl InHand {
    /// `None` if it is in hand already.
    fn take(agents: &Agents, run: &RunId) -> Option<Self> {
        let is_new = agents.hooks().lock().insert(run.clone());
        is_new.then(|| Self { agents: agents.clone(), run: run.clone() })
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.agents.hooks().lock().remove(&self.run);
    }
}

/// A webhook that is written down for a run that is about to begin. It is in hand all the time, and
/// looked after from the moment in which this is dropped: then it is known whether there is such a
/// run.
pub(crate) struct Booking {
    agents: Agents,
    hook: Kept<Hook>,
    /// `None` if this host still had one of the same run in hand.
    in_hand: Option<InHand>,
    runtime: Handle,
}

impl Drop for Booking {
    fn drop(&mut self) {
        let _entered = self.runtime.enter();
        match self.in_hand.take() {
            Some(in_hand) => watch(self.hook.clone(), in_hand),
            None => look_after(&self.agents, self.hook.clone()),
        }
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
        host: agents.host().to_owned(),
    };
    // Before anybody can find it and would see that there is no such run.
    let in_hand = InHand::take(agents, &doc.run);
    // One that is there is of the same run of a cron, which another host wants to begin, or which
    // this one could not begin before. Whoever has it in hand knows of the run by now or hears of it.
    let hook = hooks(agents.ports()).make(doc.run.as_str(), hook).await?;
    let runtime = Handle::current();
    Ok(hook.map(|hook| Booking { agents: agents.clone(), hook, in_hand, runtime }))
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
fn look_after(agents: &Agents, hook: Kept<Hook>) {
    if let Some(in_hand) = InHand::take(agents, &hook.doc.run) {
        watch(hook, in_hand);
    }
}

fn watch(hook: Kept<Hook>, in_hand: InHand) {
    tokio::spawn(async move {
        let agents = &in_hand.agents;
        let mut stopping = agents.api().stopping.clone();
        tokio::select! {
            () = deliver::deliver(agents, hook) => {}
            // It goes on after the next start, or on another host.
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    });
}

/// The webhooks that are to be called, on all hosts.
///
/// # Errors
///
/// Those of the memory.
pub(crate) async fn listed(agents: &Agents) -> Result<Vec<Kept<Hook>>, Failure> {
    hooks(agents.ports()).under("").await
}

/// Looks after those webhooks that no host has in hand which is present.
///
/// # Errors
///
/// Those of the memory.
pub(crate) async fn take_up(
    agents: &Agents,
    listed: Vec<Kept<Hook>>,
    present: &Present,
) -> Result<(), Failure> {
    let (own, shelf) = (agents.host(), hooks(agents.ports()));
    for hook in listed {
        if hook.doc.host == own {
            look_after(agents, hook);
        } else if !present.has(&hook.doc.host) {
            let taken = Hook { host: own.to_owned(), ..hook.doc.clone() };
            if let Some(taken) = shelf.change(&hook, taken).await? {
                look_after(agents, taken);
            }
        }
    }
    Ok(())
}
