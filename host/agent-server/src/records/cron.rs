//! Crons. A cron is a schedule and the run request from which its runs are created.
//!
//! The record of a cron contains the values from the client. Only requests of clients write the
//! record. The next due time is in a separate entry, which hosts write when they create runs. Hosts
//! list all entries often, so the entries are small. An entry whose revision differs from that of
//! the record is recomputed from the record.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;
use wattle_graph::failure::Failure;
use wattle_project::agent_server::time::format_time_with_micros;
use wattle_run::ports::Ports;
use wattle_run::ports::memory::MemoryScope;

use crate::records::{Collection, Versioned, retry_on_conflict};
use crate::wire::request::{CRON_ID, OnCompletion};
use crate::wire::response::Cron;
use crate::wire::schedule::Schedule;

/// A cron, as the store keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CronRecord {
    pub(crate) cron: Uuid,
    pub(crate) tenant: Option<String>,
    /// Id of the assistant.
    pub(crate) assistant: String,
    /// Thread of the runs. With `None`, each run has a thread of its own.
    pub(crate) thread: Option<String>,
    pub(crate) schedule: String,
    pub(crate) timezone: Option<String>,
    /// Time after which no run is created, in milliseconds since 1970.
    pub(crate) end_ms: Option<i64>,
    pub(crate) enabled: bool,
    pub(crate) on_run_completed: Option<OnCompletion>,
    /// The run request of each run.
    pub(crate) payload: Map<String, Value>,
    /// Creation time, in milliseconds since 1970.
    pub(crate) created_ms: i64,
    /// Time of the last change, in milliseconds since 1970.
    pub(crate) updated_ms: i64,
    /// Revision of the cron. Each change sets a new id.
    pub(crate) revision: Uuid,
}

impl CronRecord {
    /// Returns the first due time after `after_ms`, in milliseconds since 1970; `None` if no due
    /// time follows. A disabled cron is never due.
    pub(crate) fn next_ms(&self, after_ms: i64) -> Option<i64> {
        self.scheduled_ms(after_ms).filter(|_| self.enabled)
    }

    /// Returns the first time of the schedule after `after_ms`, whether the cron is enabled or not.
    fn scheduled_ms(&self, after_ms: i64) -> Option<i64> {
        let schedule = Schedule::parse(&self.schedule, self.timezone.as_deref()).ok()?;
        let next = schedule.next_after(after_ms)?;
        self.end_ms.is_none_or(|end_ms| next <= end_ms).then_some(next)
    }

    /// Returns the entry of the cron with the first due time after `now_ms`.
    pub(crate) fn due_entry(&self, now_ms: i64) -> DueEntry {
        DueEntry {
            cron: self.cron,
            tenant: self.tenant.clone(),
            thread: self.thread.clone(),
            next_ms: self.next_ms(now_ms),
            as_of_ms: now_ms,
            revision: self.revision,
            last_ms: None,
        }
    }

    /// Returns the entry that replaces another one of the cron, with the first due time after
    /// `now_ms`.
    pub(crate) fn next_entry(&self, now_ms: i64, replaced: &DueEntry) -> DueEntry {
        DueEntry { last_ms: replaced.last_ms, ..self.due_entry(now_ms) }
    }

    /// Describes the cron for clients, as JSON.
    pub(crate) fn to_body(&self, now_ms: i64) -> Cron {
        let metadata = self.payload.get("metadata").and_then(Value::as_object);
        Cron {
            cron_id: self.cron.to_string(),
            assistant_id: self.assistant.clone(),
            thread_id: self.thread.clone(),
            on_run_completed: self.on_run_completed,
            end_time: self.end_ms.map(format_time_with_micros),
            schedule: self.schedule.clone(),
            timezone: self.timezone.clone(),
            created_at: format_time_with_micros(self.created_ms),
            updated_at: format_time_with_micros(self.updated_ms),
            payload: self.payload_with_cron_id(),
            user_id: None,
            next_run_date: self.scheduled_ms(now_ms).map(format_time_with_micros),
            metadata: metadata.cloned().unwrap_or_default(),
            enabled: self.enabled,
        }
    }

    /// Returns the run request of the cron with the cron id in `config.configurable`, where clients
    /// of LangGraph servers look for the id.
    fn payload_with_cron_id(&self) -> Map<String, Value> {
        let mut payload = self.payload.clone();
        let config = object(payload.entry("config").or_insert(Value::Null));
        let configurable =
            config.and_then(|config| object(config.entry("configurable").or_insert(Value::Null)));
        if let Some(configurable) = configurable {
            configurable.insert(CRON_ID.to_owned(), self.cron.to_string().into());
        }
        payload
    }

    /// Stores a new cron with its entry. The entry is written first, because a crash can occur
    /// between the two writes. The scheduler deletes an entry without a cron when the entry is due,
    /// but a cron without an entry would never run.
    pub(crate) async fn save(&self, ports: &Ports, now_ms: i64) -> Result<(), Failure> {
        self.due_entry(now_ms).save(ports).await?;
        cron_records(ports, self.tenant.as_ref()).put(&self.cron.to_string(), self, None).await
    }

    /// Replaces the stored cron and then its entry. The change is durable when this method returns.
    /// Returns `None` if the cron was changed or deleted since it was read.
    pub(crate) async fn replace(
        self,
        ports: &Ports,
        now_ms: i64,
        old: &Versioned<Self>,
    ) -> Result<Option<Self>, Failure> {
        let key = self.cron.to_string();
        // The scheduler ignores an entry without a due time. Such an entry gets a due time before
        // the cron is written, so that the cron also runs after a crash between the two writes.
        if self.next_ms(now_ms).is_some()
            && let Some(entry) = due_entries(ports).get_versioned::<DueEntry>(&key).await?
            && entry.value.next_ms.is_none()
        {
            let due = self.next_entry(now_ms, &entry.value);
            due_entries(ports).replace(&entry, due).await?;
        }
        let records = cron_records(ports, old.value.tenant.as_ref());
        let Some(new) = records.replace(old, self).await? else { return Ok(None) };
        new.value.sync_due_entry(ports, now_ms).await?;
        Ok(Some(new.value))
    }

    /// Updates the entry to match the stored cron, which another request may have changed or
    /// deleted. The entry is read before the cron, so that a concurrent change of the cron makes
    /// the compare-and-swap of the entry fail.
    async fn sync_due_entry(&self, ports: &Ports, now_ms: i64) -> Result<(), Failure> {
        let key = self.cron.to_string();
        let synced = retry_on_conflict(|| async {
            let entry = due_entries(ports).get_versioned::<DueEntry>(&key).await?;
            let record: Option<Self> = cron_records(ports, self.tenant.as_ref()).get(&key).await?;
            let (Some(entry), Some(record)) = (entry, record) else { return Ok(Some(())) };
            if entry.value.revision == record.revision {
                return Ok(Some(()));
            }
            let due = record.next_entry(now_ms, &entry.value);
            Ok(due_entries(ports).replace(&entry, due).await?.map(drop))
        });
        // If all attempts fail, the scheduler recomputes the entry when the entry is due.
        synced.await.map(drop)
    }

    /// Deletes the cron with its entry.
    pub(crate) async fn delete(&self, ports: &Ports) -> Result<(), Failure> {
        let key = self.cron.to_string();
        cron_records(ports, self.tenant.as_ref()).delete(&key).await?;
        due_entries(ports).delete(&key).await
    }
}

/// Returns the fields of an object. `null` becomes an empty object.
fn object(value: &mut Value) -> Option<&mut Map<String, Value>> {
    if value.is_null() {
        *value = Map::new().into();
    }
    value.as_object_mut()
}

/// Tolerated difference between the clocks of hosts that share a store, in milliseconds.
const CLOCK_SKEW_MS: i64 = 60_000;

/// The entry with the next due time of a cron.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DueEntry {
    pub(crate) cron: Uuid,
    pub(crate) tenant: Option<String>,
    pub(crate) thread: Option<String>,
    /// Next due time, in milliseconds since 1970; `None` if the cron is never due.
    pub(crate) next_ms: Option<i64>,
    /// The time from which `next_ms` was computed, in milliseconds since 1970; 0 in entries of
    /// older versions.
    #[serde(default)]
    pub(crate) as_of_ms: i64,
    /// The revision of the cron from which `next_ms` was computed.
    pub(crate) revision: Uuid,
    /// Due time of the newest run that was created, in milliseconds since 1970; `None` before the
    /// first, and after a host of an older version has written the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_ms: Option<i64>,
}

impl DueEntry {
    /// Writes the entry. The entry is durable when this method returns.
    async fn save(&self, ports: &Ports) -> Result<(), Failure> {
        due_entries(ports).put(&self.cron.to_string(), self, None).await
    }

    /// Returns whether the entry was computed from a time in the future, because the clock of the
    /// host was ahead at that time.
    pub(crate) fn is_from_future(&self, now_ms: i64) -> bool {
        self.as_of_ms > now_ms.saturating_add(CLOCK_SKEW_MS)
    }

    /// Deletes the stored entry.
    pub(crate) async fn delete(&self, ports: &Ports) -> Result<(), Failure> {
        due_entries(ports).delete(&self.cron.to_string()).await
    }

    /// Reads the cron to which the entry belongs.
    pub(crate) async fn read_cron(&self, ports: &Ports) -> Result<Option<CronRecord>, Failure> {
        cron_records(ports, self.tenant.as_ref()).get(&self.cron.to_string()).await
    }
}

/// Returns the collection of the crons of a tenant.
pub(crate) fn cron_records<'p>(ports: &'p Ports, tenant: Option<&String>) -> Collection<'p> {
    Collection::new(ports, MemoryScope::Host(tenant.cloned()), &["crons"])
}

/// Returns the collection of the due-time entries of all tenants.
pub(crate) fn due_entries(ports: &Ports) -> Collection<'_> {
    Collection::new(ports, MemoryScope::Host(None), &["dues"])
}
