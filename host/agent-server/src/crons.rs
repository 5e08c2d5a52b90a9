//! Runs that come again: each begins when its time has come.
//!
//! The id of a run derives from its cron and from the time at which it is due, so hosts that share
//! a store begin it once, and so does a host that died between beginning it and noting that. What
//! came due while no host was there begins once, late, however often it would have come.
//!
//! When the next run is due is reckoned from the time at which a host looked, and noted only if
//! nobody has noted anything else since: a host that takes long skips nothing that comes due
//! meanwhile, and takes nothing back that others have done.

use std::time::Duration;

use tokio::sync::Notify;
use uuid::{Builder, Uuid};
use wattle_graph::failure::Failure;
use wattle_graph::id::{RunId, ThreadId};
use wattle_project::agent_server::time::iso;

use crate::agents::Agents;
use crate::asked::run::CRON_FACT;
use crate::caller::Caller;
use crate::doc::cron::{CronDoc, Due, dues};
use crate::fault::Fault;
use crate::order;
use crate::wire::request::{IfMissing, run_of};

/// Pause between looks at what is due, also if nothing is for longer: other hosts write the same
/// entries, and a clock may be set.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// Shortest pause between looks: what cannot begin right now is tried again.
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);

/// Milliseconds until a run that could not begin is tried again: whatever stands in its way, such as
/// a full queue, is rarely gone at once.
const LATE_MS: i64 = 15_000;

/// What requests tell the one that begins the runs.
#[derive(Default)]
pub(crate) struct Crons {
    changed: Notify,
}

impl Crons {
    /// Something may be due earlier than it was.
    pub(crate) fn change(&self) {
        self.changed.notify_one();
    }
}

/// The run of a cron that is due at a time. The id begins with that, as ids of other runs begin with
/// the time at which they were asked for: lists go by them.
pub(crate) fn run_id(cron: &Uuid, due_ms: i64) -> Result<RunId, Fault> {
    let name = Uuid::new_v5(cron, iso(due_ms).as_bytes());
    let [_, _, _, _, _, _, rest @ ..] = name.into_bytes();
    let due_ms = u64::try_from(due_ms).unwrap_or(0);
    let id = Builder::from_unix_timestamp_millis(due_ms, &rest).into_uuid();
    RunId::new(id.to_string()).map_err(|error| Fault::unprocessable(error.to_string()))
}

impl Agents {
    /// Begins what is due, and answers when the next is, milliseconds since 1970.
    pub async fn run_crons(&self) -> Option<i64> {
        let looked_ms = self.now_ms();
        let entries = match dues(self.ports()).every::<Due>().await {
            Ok(entries) => entries,
            Err(failure) => {
                tracing::error!(%failure, "cannot look for runs that are due");
                return None;
            }
        };
        let mut next = None;
        for due in entries {
            let Some(mut next_ms) = due.next_ms else { continue };
            if next_ms > looked_ms && due.is_of_the_future(looked_ms) {
                match self.compute_again(&due, looked_ms).await {
                    Ok(Some(earlier_ms)) => next_ms = earlier_ms,
                    Ok(None) => continue,
                    Err(failure) => {
                        tracing::warn!(cron = %due.cron, %failure, "a due time is not computed again");
                    }
                }
            }
            if next_ms <= looked_ms {
                match self.run_cron(&due, looked_ms).await {
                    Ok(Some(later_ms)) => next_ms = later_ms,
                    Ok(None) => continue,
                    Err(failure) => {
                        tracing::info!(cron = %due.cron, %failure, "a run is late");
                        next_ms = self.now_ms().saturating_add(LATE_MS);
                    }
                }
            }
            next = Some(next.map_or(next_ms, |next: i64| next.min(next_ms)));
        }
        next
    }

    pub(crate) fn keep_running_crons(&self) {
        let agents = self.clone();
        tokio::spawn(async move {
            let mut stopping = agents.api().stopping.clone();
            let running = async {
                loop {
                    let next_ms = agents.run_crons().await;
                    let left_ms = next_ms.map(|next_ms| next_ms.saturating_sub(agents.now_ms()));
                    let left = left_ms.map(|ms| Duration::from_millis(ms.try_into().unwrap_or(0)));
                    let pause = left.unwrap_or(LOOK_AGAIN).clamp(SHORTEST_PAUSE, LOOK_AGAIN);
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = agents.crons().changed.notified() => {}
                    }
                }
            };
            tokio::select! {
                () = running => {}
                // What is due then begins after the next start.
                _ = stopping.wait_for(|stopping| *stopping) => {}
            }
        });
    }

    /// Computes when the next run is due after the clock was set back; otherwise it would be as late
    /// as the clock was early.
    async fn compute_again(&self, listed: &Due, looked_ms: i64) -> Result<Option<i64>, Failure> {
        let (ports, key) = (self.ports(), listed.cron.to_string());
        let Some(entry) = dues(ports).get_to_change::<Due>(&key).await? else { return Ok(None) };
        let Some(doc) = entry.doc.document(ports).await? else { return Ok(entry.doc.next_ms) };
        if entry.doc != *listed {
            return Ok(entry.doc.next_ms);
        }
        let due = doc.due(looked_ms);
        let next_ms = due.next_ms;
        dues(ports).change(&entry, due).await?;
        Ok(next_ms)
    }

    /// Begins a run that was due when it was looked for, and notes when the next is.
    ///
    /// # Errors
    ///
    /// Why that is to be tried again.
    async fn run_cron(&self, listed: &Due, looked_ms: i64) -> Result<Option<i64>, Failure> {
        let (ports, key) = (self.ports(), listed.cron.to_string());
        let Some(due) = dues(ports).get_to_change::<Due>(&key).await? else { return Ok(None) };
        // Another host was faster, or it was changed while others were begun.
        let (true, Some(due_ms)) = (due.doc == *listed, listed.next_ms) else {
            return Ok(due.doc.next_ms);
        };
        let Some(doc) = due.doc.document(ports).await? else {
            due.doc.forget(ports).await?;
            return Ok(None);
        };
        if doc.revision == due.doc.revision {
            match self.begin_cron(&doc, due_ms).await {
                Ok(()) => {}
                Err(fault) if fault.status().is_server_error() => {
                    return Err(Failure::internal(fault.detail().to_owned()));
                }
                Err(fault) => {
                    tracing::warn!(cron = %doc.cron, why = fault.detail(), "a run does not begin");
                    if self.has_lost_its_thread(&doc).await? {
                        doc.forget(ports).await?;
                        return Ok(None);
                    }
                }
            }
        }
        if let Some(later) = dues(ports).change(&due, doc.due(looked_ms)).await? {
            return Ok(later.doc.next_ms);
        }
        // It was changed or deleted while its run began, or another host was faster.
        let noted: Option<Due> = dues(ports).get(&key).await?;
        Ok(noted.and_then(|due| due.next_ms))
    }

    async fn begin_cron(&self, doc: &CronDoc, due_ms: i64) -> Result<(), Fault> {
        let run = run_id(&doc.cron, due_ms)?;
        let mut request = run_of(&doc.payload)?;
        let fact = (CRON_FACT.to_owned(), doc.cron.to_string().into());
        request.metadata.get_or_insert_default().extend([fact]);
        let caller = Caller::of(doc.tenant.clone());
        let thread = doc.thread.as_deref().unwrap_or(run.as_str());
        if self.has_begun(&run).await? {
            return Ok(());
        }
        tracing::info!(cron = %doc.cron, %run, "a run is due");
        let asked = if doc.thread.is_some() {
            request.if_not_exists = Some(IfMissing::Reject);
            order::on_thread(self, &caller, thread, run.clone(), &request).await
        } else {
            request.on_completion = doc.on_run_completed;
            order::alone(self, &caller, run.clone(), &request).await
        };
        match asked {
            // By another host meanwhile.
            Err(_) if matches!(self.has_begun(&run).await, Ok(true)) => Ok(()),
            asked => asked.map(drop),
        }
    }

    /// Whether the thread of a cron is gone: it may have expired.
    async fn has_lost_its_thread(&self, doc: &CronDoc) -> Result<bool, Failure> {
        let Some(thread) = &doc.thread else { return Ok(false) };
        let Ok(thread) = ThreadId::new(thread) else { return Ok(true) };
        let head = self.ports().store.thread(&thread).await;
        Ok(head.map_err(|error| Failure::internal(error.to_string()))?.is_none())
    }

    /// Whether a run has begun or is pending, on any host.
    async fn has_begun(&self, run: &RunId) -> Result<bool, Fault> {
        Ok(self.ports().store.run(run).await?.is_some())
    }
}
