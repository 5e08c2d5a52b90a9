//! One webhook from the end of its run to the answer that says that it arrived.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use url::Host;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, PluginName};
use wattle_run::call::http::{HttpBody, HttpRequest};
use wattle_run::grant::HttpRule;
use wattle_run::limit::NetLimits;
use wattle_run::ports::Caller;
use wattle_run::ports::memory::MemoryScope;

use super::{LEASE_MS, RENEWAL, tell};
use crate::agents::Agents;
use crate::doc::run::{RunDoc, shelf};
use crate::doc::webhook::{Hook, Tidings};
use crate::wire::webhook::Target;

/// Pause before looking again at what cannot be read or written right now.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long an answer may take: whoever is told should do the work afterwards.
const TIMEOUT_MS: u32 = 15_000;

/// Who asks, for the outbound guard.
const NAME: &str = "webhooks";

/// The field of a run's `kwargs` that says why its webhook was given up.
const PROBLEM: &str = "webhook_error";

/// What comes after an attempt.
enum Next {
    /// Nothing: it arrived, was given up, or is another host's.
    Nothing,
    /// Another attempt.
    Again(Duration),
}

/// Why an attempt came to nothing.
enum Miss {
    /// It may go better another time.
    Retry(String),
    /// It never will.
    Never(String),
}

/// Tells a webhook of the end of its run.
pub(super) async fn deliver(agents: &Agents, mut hook: Hook) {
    let due_ms = hook.next_ms.saturating_sub(agents.now_ms());
    rest(agents, &mut hook, Duration::from_millis(u64::try_from(due_ms).unwrap_or(0))).await;
    loop {
        match step(agents, &mut hook).await {
            Ok(Next::Nothing) => return,
            Ok(Next::Again(pause)) => rest(agents, &mut hook, pause).await,
            Err(failure) => {
                tracing::warn!(run = %hook.run, %failure, "a webhook waits on");
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
    }
}

async fn step(agents: &Agents, hook: &mut Hook) -> Result<Next, Failure> {
    let ports = agents.ports();
    if !hook.is_told {
        let Some(tidings) = wait_for_end(agents, hook).await? else {
            hook.forget(ports).await?;
            return Ok(Next::Nothing);
        };
        // The run may have been taken away: then nobody is told that it was cancelled before.
        if hook.stored(ports).await?.is_none() {
            return Ok(Next::Nothing);
        }
        hook.tell(ports, &tidings).await?;
    }
    // Another host may have taken it on, or told it already.
    let stored = hook.stored(ports).await?.filter(|stored| stored.host == hook.host);
    let (Some(_), Some(tidings)) = (stored, hook.told(ports).await?) else {
        return Ok(Next::Nothing);
    };
    match send(agents, hook, &tidings).await {
        Ok(()) => {
            tracing::info!(run = %hook.run, "a webhook was told");
            hook.forget(ports).await?;
            Ok(Next::Nothing)
        }
        Err(Miss::Never(why)) => give_up(agents, hook, &why).await,
        Err(Miss::Retry(why)) => again(agents, hook, &why).await,
    }
}

/// The end of the run. Meanwhile other hosts are told that this one waits for it.
async fn wait_for_end(agents: &Agents, hook: &mut Hook) -> Result<Option<Tidings>, Failure> {
    let watched = hook.clone();
    let mut waiting = Box::pin(tell::tidings(agents, &watched));
    loop {
        tokio::select! {
            end = &mut waiting => {
                return end.map_err(|fault| Failure::internal(fault.detail().to_owned()));
            }
            () = tokio::time::sleep(RENEWAL) => renew(agents, hook).await?,
        }
    }
}

/// Waits, and tells other hosts so.
async fn rest(agents: &Agents, hook: &mut Hook, pause: Duration) {
    let mut left = pause;
    while left > Duration::ZERO {
        let some = left.min(RENEWAL);
        tokio::time::sleep(some).await;
        left -= some;
        if let Err(failure) = renew(agents, hook).await {
            tracing::debug!(run = %hook.run, %failure, "others may take a webhook on");
        }
    }
}

/// Says that this host still has it, where others might think otherwise.
async fn renew(agents: &Agents, hook: &mut Hook) -> Result<(), Failure> {
    if !agents.engine().is_shared() {
        return Ok(());
    }
    let stored = hook.stored(agents.ports()).await?;
    if stored.is_some_and(|stored| stored.host == hook.host) {
        hook.until_ms = agents.now_ms().saturating_add(LEASE_MS);
        hook.save(agents.ports()).await?;
    }
    Ok(())
}

async fn again(agents: &Agents, hook: &mut Hook, why: &str) -> Result<Next, Failure> {
    let Some(pause) = agents.webhooks().retries.get(hook.attempts).copied() else {
        return give_up(agents, hook, why).await;
    };
    hook.attempts += 1;
    tracing::info!(run = %hook.run, attempts = hook.attempts, why, "a webhook was not told yet");
    let pause_ms = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
    hook.next_ms = agents.now_ms().saturating_add(pause_ms);
    hook.save(agents.ports()).await?;
    Ok(Next::Again(pause))
}

/// The document of the run says so from now on.
async fn give_up(agents: &Agents, hook: &Hook, why: &str) -> Result<Next, Failure> {
    tracing::warn!(run = %hook.run, why, "a webhook is given up");
    let ports = agents.ports();
    let scope = MemoryScope::Host(hook.tenant.clone());
    let doc: Option<RunDoc> = shelf(ports, scope, &hook.thread).get(hook.run.as_str()).await?;
    if let Some(mut doc) = doc {
        doc.kwargs.insert(PROBLEM.to_owned(), Value::from(why));
        doc.save(ports).await?;
    }
    hook.forget(ports).await?;
    Ok(Next::Nothing)
}

async fn send(agents: &Agents, hook: &Hook, tidings: &Tidings) -> Result<(), Miss> {
    // The rules may be others since the run was asked for.
    let target = agents.webhooks().target(&hook.url).map_err(Miss::Never)?;
    let rule = rule(&target);
    let limits = NetLimits { redirects: 0, ..NetLimits::default() };
    let request = request(agents, hook, &target, tidings);
    let ports = agents.ports();
    let sent = ports.net.send(&caller(hook), &[rule], &limits, &request, &*ports.blobs).await;
    match sent {
        Ok(answer) if (200..300).contains(&answer.status) => Ok(()),
        Ok(answer) => Err(Miss::Retry(format!("it answered with status {}", answer.status))),
        Err(failure) if failure.code == code::DENIED => {
            let host = target.url.host_str().unwrap_or_default();
            let why = format!(
                "`{host}` leads to an address that this host may not call; its operator can allow \
                 private ones under `[server.webhooks]`"
            );
            Err(Miss::Never(why))
        }
        Err(failure) => Err(Miss::Retry(failure.message)),
    }
}

fn request(agents: &Agents, hook: &Hook, target: &Target, tidings: &Tidings) -> HttpRequest {
    let now_ms = agents.now_ms();
    let (id, timestamp_s) = (hook.run.as_str(), now_ms.div_euclid(1_000));
    let body = tidings.body(now_ms);
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("webhook-id".to_owned(), id.to_owned()),
        ("webhook-timestamp".to_owned(), timestamp_s.to_string()),
    ];
    if let Some(key) = &agents.webhooks().key {
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

/// This one address, and private ones behind its name only if the operator wants that.
fn rule(target: &Target) -> HttpRule {
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

fn caller(hook: &Hook) -> Caller {
    Caller {
        app: AppName::new(NAME).expect("it is a name"),
        plugin: PluginName::new(NAME).expect("it is a name"),
        tenant: hook.tenant.clone(),
    }
}
