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

use super::tell;
use crate::agents::Agents;
use crate::doc::Kept;
use crate::doc::run::{RunDoc, shelf};
use crate::doc::webhook::{Hook, Tidings, hooks};
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
pub(super) async fn deliver(agents: &Agents, mut hook: Kept<Hook>) {
    let due_ms = hook.doc.next_ms.saturating_sub(agents.now_ms());
    tokio::time::sleep(Duration::from_millis(u64::try_from(due_ms).unwrap_or(0))).await;
    loop {
        match step(agents, &mut hook).await {
            Ok(Next::Nothing) => return,
            Ok(Next::Again(pause)) => tokio::time::sleep(pause).await,
            Err(failure) => {
                tracing::warn!(run = %hook.doc.run, %failure, "a webhook waits on");
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
    }
}

async fn step(agents: &Agents, hook: &mut Kept<Hook>) -> Result<Next, Failure> {
    let ports = agents.ports();
    if !hook.doc.is_told {
        let end = tell::tidings(agents, &hook.doc).await;
        let end = end.map_err(|fault| Failure::internal(fault.detail().to_owned()))?;
        // The run may have been taken away: then nobody is told that it was cancelled before.
        // Another host may have the webhook by now.
        if !hook.doc.is_own(ports).await? {
            return Ok(Next::Nothing);
        }
        let Some(tidings) = end else {
            hook.doc.forget(ports).await?;
            return Ok(Next::Nothing);
        };
        hook.doc.tell(ports, &tidings).await?;
        let told = Hook { is_told: true, ..hook.doc.clone() };
        let Some(told) = hooks(ports).change(hook, told).await? else {
            // What was written down is nobody's if the run was taken away right now.
            if hooks(ports).get::<Hook>(hook.doc.run.as_str()).await?.is_none() {
                hook.doc.forget(ports).await?;
            }
            return Ok(Next::Nothing);
        };
        *hook = told;
    }
    let (true, Some(tidings)) = (hook.doc.is_own(ports).await?, hook.doc.told(ports).await?) else {
        return Ok(Next::Nothing);
    };
    match send(agents, &hook.doc, &tidings).await {
        Ok(()) => {
            tracing::info!(run = %hook.doc.run, "a webhook was told");
            hook.doc.forget(ports).await?;
            Ok(Next::Nothing)
        }
        Err(Miss::Never(why)) => give_up(agents, &hook.doc, &why).await,
        Err(Miss::Retry(why)) => again(agents, hook, &why).await,
    }
}

async fn again(agents: &Agents, hook: &mut Kept<Hook>, why: &str) -> Result<Next, Failure> {
    let Some(pause) = agents.webhooks().retries.get(hook.doc.attempts).copied() else {
        return give_up(agents, &hook.doc, why).await;
    };
    let (run, attempts) = (&hook.doc.run, hook.doc.attempts + 1);
    tracing::info!(%run, attempts, why, "a webhook was not told yet");
    let pause_ms = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
    let next_ms = agents.now_ms().saturating_add(pause_ms);
    let later = Hook { attempts, next_ms, ..hook.doc.clone() };
    let Some(later) = hooks(agents.ports()).change(hook, later).await? else {
        return Ok(Next::Nothing);
    };
    *hook = later;
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
