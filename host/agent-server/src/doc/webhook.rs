//! Stored webhooks. A webhook is stored before its run begins, so a host that starts again or that
//! recovers the run finds it.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wattle_graph::failure::Failure;
use wattle_graph::id::{RunId, ThreadId};
use wattle_project::agent_server::time::iso;
use wattle_run::ports::Ports;
use wattle_run::ports::memory::MemoryScope;

use crate::doc::{Kept, Shelf};

/// A webhook whose delivery is not complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hook {
    pub(crate) run: RunId,
    pub(crate) thread: ThreadId,
    pub(crate) tenant: Option<String>,
    /// The client's URL.
    pub(crate) url: String,
    /// Failed attempts.
    pub(crate) attempts: usize,
    /// Earliest time of the next attempt, milliseconds since 1970.
    pub(crate) next_ms: i64,
    /// Whether its payload is stored.
    #[serde(rename = "is_told")]
    pub(crate) has_payload: bool,
    /// The host that delivers it.
    pub(crate) host: String,
    /// The request that began the run last, or is about to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) request: String,
}

impl Hook {
    /// Whether the stored webhook is this one: no host has changed, taken over or deleted it since.
    pub(crate) async fn is_own(&self, ports: &Ports) -> Result<bool, Failure> {
        Ok(hooks(ports).get(self.run.as_str()).await?.as_ref() == Some(self))
    }

    /// Deletes it unless it was changed since, and its payload afterwards. `false` if it was changed.
    pub(crate) async fn forget_unchanged(
        kept: &Kept<Self>,
        ports: &Ports,
    ) -> Result<bool, Failure> {
        if !hooks(ports).remove(kept).await? {
            return Ok(false);
        }
        payloads(ports).delete(&kept.key).await?;
        Ok(true)
    }

    /// Deletes it, and its payload afterwards: a stored webhook has its payload, unless it was made again in between.
    pub(crate) async fn forget(&self, ports: &Ports) -> Result<(), Failure> {
        hooks(ports).delete(self.run.as_str()).await?;
        payloads(ports).delete(self.run.as_str()).await
    }

    /// Stores its payload, durable when this returns.
    pub(crate) async fn save_payload(
        &self,
        ports: &Ports,
        payload: &Payload,
    ) -> Result<(), Failure> {
        payloads(ports).put(self.run.as_str(), payload, None).await
    }

    /// Its stored payload.
    pub(crate) async fn payload(&self, ports: &Ports) -> Result<Option<Payload>, Failure> {
        payloads(ports).get(self.run.as_str()).await
    }
}

/// What a webhook sends: the run as it was at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Payload(pub(crate) Map<String, Value>);

impl Payload {
    /// The body of a request at a time, milliseconds since 1970.
    pub(crate) fn body(&self, now_ms: i64) -> Bytes {
        let mut fields = self.0.clone();
        fields.insert("webhook_sent_at".to_owned(), iso(now_ms).into());
        Value::Object(fields).to_string().into()
    }
}

/// The field of a run's `kwargs` that says why its webhook was given up.
pub(crate) const PROBLEM: &str = "webhook_error";

/// How long that field is kept, in milliseconds: 30 days, so that a person can look into the failure.
const PROBLEM_MS: u64 = 30 * 86_400_000;

/// Why the webhook of a run was given up.
pub(crate) async fn problem(ports: &Ports, run: &RunId) -> Result<Option<String>, Failure> {
    problems(ports).get(run.as_str()).await
}

/// Notes why the webhook of a run is given up.
pub(crate) async fn note_problem(ports: &Ports, run: &RunId, why: &str) -> Result<(), Failure> {
    problems(ports).put(run.as_str(), &why, Some(PROBLEM_MS)).await
}

fn problems(ports: &Ports) -> Shelf<'_> {
    Shelf::new(ports, MemoryScope::Host(None), &["webhook-problems"])
}

/// The webhooks of all tenants. Payloads stand apart, because lists read whole documents.
pub(crate) fn hooks(ports: &Ports) -> Shelf<'_> {
    Shelf::new(ports, MemoryScope::Host(None), &["webhooks"])
}

fn payloads(ports: &Ports) -> Shelf<'_> {
    Shelf::new(ports, MemoryScope::Host(None), &["tidings"])
}
