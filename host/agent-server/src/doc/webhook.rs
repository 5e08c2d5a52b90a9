//! Webhooks that are to be called, written before their runs begin: whoever takes a run on takes
//! its webhook on, and a host that starts again finds both.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wattle_graph::failure::Failure;
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::Ports;
use wattle_run::ports::memory::MemoryScope;

use crate::doc::Shelf;
use crate::wire::time::iso;

/// A webhook that is to be called when its run is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hook {
    pub(crate) run: RunId,
    pub(crate) thread: ThreadId,
    pub(crate) tenant: Option<String>,
    /// Whom to tell.
    pub(crate) url: String,
    /// How often that was tried.
    pub(crate) attempts: usize,
    /// When to try next, milliseconds since 1970.
    pub(crate) next_ms: i64,
    /// Whether what is to be told is written down.
    pub(crate) is_told: bool,
    /// The host that has it in hand.
    pub(crate) host: String,
}

impl Hook {
    /// Whether it is written down so: nobody has taken it on or away, or told it.
    pub(crate) async fn is_own(&self, ports: &Ports) -> Result<bool, Failure> {
        Ok(hooks(ports).get(self.run.as_str()).await?.as_ref() == Some(self))
    }

    /// Forgets it: its end before what it told, so that no end is left without.
    pub(crate) async fn forget(&self, ports: &Ports) -> Result<(), Failure> {
        hooks(ports).delete(self.run.as_str()).await?;
        tidings(ports).delete(self.run.as_str()).await
    }

    /// Writes down what is to be told.
    pub(crate) async fn tell(&self, ports: &Ports, told: &Tidings) -> Result<(), Failure> {
        tidings(ports).put(self.run.as_str(), told, None).await
    }

    /// What is to be told.
    pub(crate) async fn told(&self, ports: &Ports) -> Result<Option<Tidings>, Failure> {
        tidings(ports).get(self.run.as_str()).await
    }
}

/// What a webhook is told: the run as it was at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tidings(pub(crate) Map<String, Value>);

impl Tidings {
    /// The body that is sent at a time.
    pub(crate) fn body(&self, now_ms: i64) -> Bytes {
        let mut fields = self.0.clone();
        fields.insert("webhook_sent_at".to_owned(), iso(now_ms).into());
        Value::Object(fields).to_string().into()
    }
}

/// The webhooks of all tenants. What they are told is kept apart: lists read documents whole.
pub(crate) fn hooks(ports: &Ports) -> Shelf<'_> {
    Shelf::new(ports, MemoryScope::Host(None), &["webhooks"])
}

fn tidings(ports: &Ports) -> Shelf<'_> {
    Shelf::new(ports, MemoryScope::Host(None), &["tidings"])
}
