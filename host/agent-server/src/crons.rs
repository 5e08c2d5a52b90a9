//! The cron scheduler: creates the run of a cron when the cron is due.
//!
//! The id of a run derives from its cron and the due time. Hosts that share a store therefore
//! create the run only once. The run is also created only once if a host crashes after the creation
//! and before it has stored the next due time. If a due time passed while no host was running, the
//! run is created late, and only once.
//!
//! The scheduler computes the next due time from the time at which it listed the crons. It stores
//! the due time only if the entry of the cron has not changed since then. A slow host therefore
//! neither skips a due time nor overwrites the changes of another host.

pub(crate) mod signal;

use std::time::Duration;

use serde_json::json;
use uuid::{Builder, Uuid};
use wattle_graph::failure::Failure;
use wattle_graph::id::{RunId, ThreadId};
use wattle_project::agent_server::time::format_time_with_micros;

use crate::error::ApiError;
use crate::extractors::Caller;
use crate::records::cron::{CronRecord, DueEntry, due_entries};
use crate::state::AgentServer;
use crate::wire::request::{CRON_ID, IfNotExists, parse_run};

/// Maximum pause between two lists of all crons. It limits the delay of a run after another host
/// changes a due time or after the clock is set.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(15);

/// Minimum pause between two lists. It limits the rate of retries of a run that cannot be created.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Delay in milliseconds before the creation of a run is retried. The cause of a failure, such as a
/// full queue, usually persists for a while.
const RETRY_DELAY_MS: i64 = 15_000;

/// Returns the id of the run of a cron for a due time. Like the ids of other runs, the id begins
/// with a time, by which lists of runs are sorted.
pub(crate) fn cron_run_id(cron: &Uuid, due_ms: i64) -> Result<RunId, ApiError> {
    let name = Uuid::new_v5(cron, format_time_with_micros(due_ms).as_bytes());
    let [_, _, _, _, _, _, rest @ ..] = name.into_bytes();
    let due_ms = u64::try_from(due_ms).unwrap_or(0);
    let id = Builder::from_unix_timestamp_millis(due_ms, &rest).into_uuid();
    RunId::new(id.to_string()).map_err(|error| ApiError::unprocessable(error.to_string()))
}

impl AgentServer {
    /// Creates the runs that are due. Returns the next due time in milliseconds since 1970; `None`
    /// if no cron has a due time.
    pub async fn create_due_runs(&self) -> Option<i64> {
        let listed_ms = self.now_ms();
        let entries = match due_entries(self.ports()).list::<DueEntry>().await {
            Ok(entries) => entries,
            Err(failure) => {
                tracing::error!(%failure, "failed to list due crons");
                return None;
            }
        };
        let mut next = None;
        for due in entries {
            let Some(mut next_ms) = due.next_ms else { continue };
            if next_ms > listed_ms && due.is_from_future(listed_ms) {
                match self.recompute_due_time(&due, listed_ms).await {
                    Ok(Some(earlier_ms)) => next_ms = earlier_ms,
                    Ok(None) => continue,
                    Err(failure) => {
                        let cron = due.cron;
                        tracing::warn!(%cron, %failure, "failed to recompute a due time");
                    }
                }
            }
            if next_ms <= listed_ms {
                match self.process_due_entry(&due, listed_ms).await {
                    Ok(Some(later_ms)) => next_ms = later_ms,
                    Ok(None) => continue,
                    Err(failure) => {
                        let cron = due.cron;
                        tracing::info!(%cron, %failure, "failed to create a cron run; retrying");
                        next_ms = self.now_ms().saturating_add(RETRY_DELAY_MS);
                    }
                }
            }
            next = Some(next.map_or(next_ms, |next: i64| next.min(next_ms)));
        }
        next
    }

    pub(crate) fn spawn_cron_scheduler(&self) {
        let server = self.clone();
        tokio::spawn(async move {
            let mut stopping = server.run_creator().stopping().clone();
            let scheduler = async {
                loop {
                    let next_ms = server.create_due_runs().await;
                    let left_ms = next_ms.map(|next_ms| next_ms.saturating_sub(server.now_ms()));
                    let left = left_ms.map(|ms| Duration::from_millis(ms.try_into().unwrap_or(0)));
                    let pause = left
                        .unwrap_or(MAX_POLL_INTERVAL)
                        .clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL);
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = server.cron_signal().wait() => {}
                    }
                }
            };
            tokio::select! {
                () = scheduler => {}
                // A run that becomes due during the shutdown is created after the next start of a
                // host.
                _ = stopping.wait_for(|stopping| *stopping) => {}
            }
        });
    }

    /// Recomputes a due time that was computed while the clock was ahead. Without the
    /// recomputation, the run would be late by the error of the clock.
    async fn recompute_due_time(
        &self,
        listed: &DueEntry,
        listed_ms: i64,
    ) -> Result<Option<i64>, Failure> {
        let (ports, key) = (self.ports(), listed.cron.to_string());
        let Some(entry) = due_entries(ports).get_versioned::<DueEntry>(&key).await? else {
            return Ok(None);
        };
        let Some(record) = entry.value.read_cron(ports).await? else {
            return Ok(entry.value.next_ms);
        };
        if entry.value != *listed {
            return Ok(entry.value.next_ms);
        }
        let due = record.next_entry(listed_ms, &entry.value);
        let next_ms = due.next_ms;
        due_entries(ports).replace(&entry, due).await?;
        Ok(next_ms)
    }

    /// Creates a run that was due when the crons were listed, and stores the next due time.
    ///
    /// # Errors
    ///
    /// Returns the failure if the creation of the run must be retried.
    async fn process_due_entry(
        &self,
        listed: &DueEntry,
        listed_ms: i64,
    ) -> Result<Option<i64>, Failure> {
        let (ports, key) = (self.ports(), listed.cron.to_string());
        let Some(due) = due_entries(ports).get_versioned::<DueEntry>(&key).await? else {
            return Ok(None);
        };
        // The entry differs if another host created the run, or if the cron changed while this host
        // created other runs.
        let (true, Some(due_ms)) = (due.value == *listed, listed.next_ms) else {
            return Ok(due.value.next_ms);
        };
        let Some(record) = due.value.read_cron(ports).await? else {
            due.value.delete(ports).await?;
            return Ok(None);
        };
        let mut later = record.next_entry(listed_ms, &due.value);
        if record.revision == due.value.revision {
            match self.create_cron_run(&record, due_ms).await {
                Ok(()) => later.last_ms = Some(due_ms),
                Err(error) if error.status().is_server_error() => {
                    return Err(Failure::internal(error.detail().to_owned()));
                }
                Err(error) => {
                    let why = error.detail();
                    tracing::warn!(cron = %record.cron, why, "failed to create a cron run");
                    if self.is_thread_gone(&record).await? {
                        record.delete(ports).await?;
                        return Ok(None);
                    }
                }
            }
        }
        if let Some(later) = due_entries(ports).replace(&due, later).await? {
            return Ok(later.value.next_ms);
        }
        // The cron changed or was deleted while its run was created, or another host stored the due
        // time first.
        let stored: Option<DueEntry> = due_entries(ports).get(&key).await?;
        Ok(stored.and_then(|due| due.next_ms))
    }

    async fn create_cron_run(&self, record: &CronRecord, due_ms: i64) -> Result<(), ApiError> {
        let run = cron_run_id(&record.cron, due_ms)?;
        let mut request = parse_run(&record.payload)?;
        let metadata = (CRON_ID.to_owned(), record.cron.to_string().into());
        request.metadata.get_or_insert_default().extend([metadata]);
        let caller = Caller::for_cron(record.tenant.clone());
        let thread = record.thread.as_deref().unwrap_or(run.as_str());
        if self.run_exists(&run).await? {
            return Ok(());
        }
        tracing::info!(cron = %record.cron, %run, "creating a cron run");
        if request.input().is_none() && self.starts_thread(record).await? {
            request.input = Some(json!({}));
        }
        let creator = self.run_creator();
        let created = if record.thread.is_some() {
            request.if_not_exists = Some(IfNotExists::Reject);
            creator.create_on_thread(&caller, thread, run.clone(), &request).await
        } else {
            request.on_completion = record.on_run_completed;
            creator.create_stateless(&caller, run.clone(), &request).await
        };
        match created {
            // Another host has created the run meanwhile.
            Err(_) if matches!(self.run_exists(&run).await, Ok(true)) => Ok(()),
            created => created.map(drop),
        }
    }

    /// Returns whether the run of a cron is the first one of its thread, so that it has no state to
    /// continue.
    async fn starts_thread(&self, record: &CronRecord) -> Result<bool, ApiError> {
        let Some(thread) = &record.thread else { return Ok(true) };
        let Ok(thread) = ThreadId::new(thread) else { return Ok(false) };
        let head = self.engine().visible_thread(&thread).await?;
        Ok(head.is_some_and(|head| head.record.is_unbound()))
    }

    /// Returns whether the thread of a cron was deleted or has expired.
    async fn is_thread_gone(&self, record: &CronRecord) -> Result<bool, Failure> {
        let Some(thread) = &record.thread else { return Ok(false) };
        let Ok(thread) = ThreadId::new(thread) else { return Ok(true) };
        Ok(self.engine().visible_thread(&thread).await?.is_none())
    }

    /// Returns whether the store has the run, pending or not.
    async fn run_exists(&self, run: &RunId) -> Result<bool, ApiError> {
        Ok(self.ports().store.run(run).await?.is_some())
    }
}
