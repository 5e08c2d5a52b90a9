//! Runs that come again: what is to be run, and when.
//!
//! The document says what the client wants, and only requests write it. When the next run is due
//! stands apart, in an entry that is small and that hosts write as runs begin: they look at all
//! entries often. An entry that does not go with its document is made anew from that.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;
use wattle_graph::failure::Failure;
use wattle_project::agent_server::time::iso;
use wattle_run::ports::Ports;
use wattle_run::ports::memory::MemoryScope;

use crate::doc::{Kept, Shelf, attempts};
use crate::wire::request::Completion;
use crate::wire::schedule::Schedule;
use crate::wire::shape::Cron;

/// Runs that come again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CronDoc {
    pub(crate) cron: Uuid,
    pub(crate) tenant: Option<String>,
    /// The assistant's id.
    pub(crate) assistant: String,
    /// The thread; each run gets one of its own without it.
    pub(crate) thread: Option<String>,
    pub(crate) schedule: String,
    pub(crate) timezone: Option<String>,
    /// Milliseconds since 1970.
    pub(crate) end_ms: Option<i64>,
    pub(crate) enabled: bool,
    pub(crate) on_run_completed: Option<Completion>,
    /// What is asked for each time.
    pub(crate) payload: Map<String, Value>,
    /// Milliseconds since 1970.
    pub(crate) created_ms: i64,
    /// Milliseconds since 1970.
    pub(crate) updated_ms: i64,
    /// Changes with every change.
    pub(crate) revision: Uuid,
}

impl CronDoc {
    /// When the first run after a time is due; `None` if there is none.
    pub(crate) fn next_ms(&self, after_ms: i64) -> Option<i64> {
        let schedule = Schedule::read(&self.schedule, self.timezone.as_deref()).ok()?;
        let next = schedule.after(after_ms).filter(|_| self.enabled)?;
        self.end_ms.is_none_or(|end_ms| next <= end_ms).then_some(next)
    }

    /// When it is due, as of now.
    pub(crate) fn due(&self, now_ms: i64) -> Due {
        Due {
            cron: self.cron,
            tenant: self.tenant.clone(),
            thread: self.thread.clone(),
            next_ms: self.next_ms(now_ms),
            as_of_ms: now_ms,
            revision: self.revision,
        }
    }

    /// As clients see it.
    pub(crate) fn shape(&self, now_ms: i64) -> Cron {
        let metadata = self.payload.get("metadata").and_then(Value::as_object);
        Cron {
            cron_id: self.cron.to_string(),
            assistant_id: self.assistant.clone(),
            thread_id: self.thread.clone(),
            on_run_completed: self.on_run_completed,
            end_time: self.end_ms.map(iso),
            schedule: self.schedule.clone(),
            timezone: self.timezone.clone(),
            created_at: iso(self.created_ms),
            updated_at: iso(self.updated_ms),
            payload: self.payload.clone(),
            user_id: None,
            next_run_date: self.next_ms(now_ms).map(iso),
            metadata: metadata.cloned().unwrap_or_default(),
            enabled: self.enabled,
        }
    }

    /// Writes a new one down with its entry, which comes first: one without a document is removed when it
    /// is due, and a document without an entry would never be due.
    pub(crate) async fn save(&self, ports: &Ports, now_ms: i64) -> Result<(), Failure> {
        self.due(now_ms).save(ports).await?;
        shelf(ports, self.tenant.as_ref()).put(&self.cron.to_string(), self, None).await
    }

    /// Writes it down in place of what it was, and then its entry, durable when this returns. `None`
    /// if somebody else has changed or deleted that meanwhile.
    pub(crate) async fn replace(
        self,
        ports: &Ports,
        now_ms: i64,
        old: &Kept<Self>,
    ) -> Result<Option<Self>, Failure> {
        let (key, due) = (self.cron.to_string(), self.due(now_ms));
        // One that is never due is never looked at: so not, should the host die after the document.
        if due.next_ms.is_some()
            && let Some(entry) = dues(ports).get_to_change::<Due>(&key).await?
            && entry.doc.next_ms.is_none()
        {
            dues(ports).change(&entry, due).await?;
        }
        let shelf = shelf(ports, old.doc.tenant.as_ref());
        let Some(new) = shelf.change(old, self).await? else { return Ok(None) };
        new.doc.settle(ports, now_ms).await?;
        Ok(Some(new.doc))
    }

    /// Makes the entry match the stored document, which other requests may have changed or deleted.
    /// The entry is read first: a later change of the document updates the entry later as well.
    async fn settle(&self, ports: &Ports, now_ms: i64) -> Result<(), Failure> {
        let key = self.cron.to_string();
        let settled = attempts(|| async {
            let entry = dues(ports).get_to_change::<Due>(&key).await?;
            let doc: Option<Self> = shelf(ports, self.tenant.as_ref()).get(&key).await?;
            let (Some(entry), Some(doc)) = (entry, doc) else { return Ok(Some(())) };
            if entry.doc.revision == doc.revision {
                return Ok(Some(()));
            }
            Ok(dues(ports).change(&entry, doc.due(now_ms)).await?.map(drop))
        });
        // If it is not, the entry is made anew when it is due.
        settled.await.map(drop)
    }

    /// Forgets it with its entry.
    pub(crate) async fn forget(&self, ports: &Ports) -> Result<(), Failure> {
        let key = self.cron.to_string();
        shelf(ports, self.tenant.as_ref()).delete(&key).await?;
        dues(ports).delete(&key).await
    }
}

/// How far the clocks of hosts that share a store may differ, in milliseconds.
const CLOCK_SKEW_MS: i64 = 60_000;

/// When the next run is due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Due {
    pub(crate) cron: Uuid,
    pub(crate) tenant: Option<String>,
    pub(crate) thread: Option<String>,
    /// Milliseconds since 1970; never without it.
    pub(crate) next_ms: Option<i64>,
    /// The time from which that was computed, milliseconds since 1970; 0 in entries of older versions.
    #[serde(default)]
    pub(crate) as_of_ms: i64,
    /// Of the document that it goes with.
    pub(crate) revision: Uuid,
}

impl Due {
    /// Writes it down, durable when this returns.
    async fn save(&self, ports: &Ports) -> Result<(), Failure> {
        dues(ports).put(&self.cron.to_string(), self, None).await
    }

    /// Whether it was computed from a time that has not come: the clock was set back since.
    pub(crate) fn is_of_the_future(&self, now_ms: i64) -> bool {
        self.as_of_ms > now_ms.saturating_add(CLOCK_SKEW_MS)
    }

    /// Forgets it.
    pub(crate) async fn forget(&self, ports: &Ports) -> Result<(), Failure> {
        dues(ports).delete(&self.cron.to_string()).await
    }

    /// What it is the entry of.
    pub(crate) async fn document(&self, ports: &Ports) -> Result<Option<CronDoc>, Failure> {
        shelf(ports, self.tenant.as_ref()).get(&self.cron.to_string()).await
    }
}

/// The documents of a tenant.
pub(crate) fn shelf<'p>(ports: &'p Ports, tenant: Option<&String>) -> Shelf<'p> {
    Shelf::new(ports, MemoryScope::Host(tenant.cloned()), &["crons"])
}

/// The entries of all tenants.
pub(crate) fn dues(ports: &Ports) -> Shelf<'_> {
    Shelf::new(ports, MemoryScope::Host(None), &["dues"])
}
