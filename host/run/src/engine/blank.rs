//! Unbound threads, which have no graph until their first run or edit, and updates of threads
//! outside of runs.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{RunId, ThreadId};

use super::owner::check_owner;
use super::{Asked, Engine, Slot, new_run_id, new_thread_id, no_thread};
use crate::app::{App, GraphPack};
use crate::facts;
use crate::json::check_depth;
use crate::log::{Amended, Amendment};
use crate::ports::store::{Batch, StoreError, ThreadHead, ThreadRecord, ThreadTtl, Turn};
use crate::view::store_failure;

/// Maximum number of attempts to update a thread while another operation uses it: a run that is
/// starting or has just ended, or an edit.
const AMEND_ATTEMPTS: u32 = 20;

/// Delay between two attempts.
const AMEND_PAUSE: Duration = Duration::from_millis(25);

/// A thread to create without a graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewThread {
    /// Id of the thread. Default: a new UUID.
    pub thread: Option<ThreadId>,
    /// Tenant that owns the thread.
    pub tenant: Option<String>,
    /// Metadata of the client.
    pub metadata: BTreeMap<String, Value>,
    /// Time to live. Default: the engine's `thread_ttl`.
    pub ttl: Option<ThreadTtl>,
    /// Creation time, milliseconds since 1970. Default: now.
    pub created_ms: Option<i64>,
}

/// An update of a thread outside of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateThread {
    /// The thread to update.
    pub thread: ThreadId,
    /// Tenant of the caller. A thread of another tenant is not found.
    pub tenant: Option<String>,
    /// Metadata to add. It replaces entries with the same key.
    pub metadata: BTreeMap<String, Value>,
    /// New time to live. Default: unchanged.
    pub ttl: Option<ThreadTtl>,
}

impl Engine {
    /// Creates a thread without a graph. Its first run binds it to one.
    ///
    /// # Errors
    ///
    /// `conflict` if the thread exists; `busy` if it is being created; `limit` if the metadata is
    /// too large or the tenant has reached a cap.
    pub async fn create_thread(&self, new: NewThread) -> Result<ThreadRecord, Failure> {
        new.metadata.values().try_for_each(|value| check_depth("the metadata", value))?;
        // A thread that is created again keeps its metadata, even if that is older than the limit.
        if new.created_ms.is_none() {
            facts::check(&new.metadata)?;
        }
        let thread = new.thread.unwrap_or_else(new_thread_id);
        let mut slot = self.claim(&thread, new_run_id()).await?;
        if self.live_thread(&thread).await?.is_some() {
            let text = format!("there is a thread `{thread}` already; choose another id");
            return Err(
                Failure::new(code::CONFLICT, text).with_details(json!({ "thread": thread }))
            );
        }
        self.admit_new(new.tenant.as_deref()).await?;
        let now_ms = self.now_ms();
        let record = ThreadRecord {
            created_ms: new.created_ms.unwrap_or(now_ms),
            tenant: new.tenant,
            metadata: new.metadata,
            ttl: new.ttl.or(self.0.thread_ttl),
            born: Some(new_run_id()),
            ..ThreadRecord::blank(thread.clone(), now_ms)
        };
        let batch =
            Batch { epoch: Some(slot.epoch), record: Some(record.clone()), ..Batch::default() };
        self.0.ports.store.append(&thread, batch).await.await.map_err(store_failure)?;
        slot.release().await;
        Ok(record)
    }

    /// Updates the metadata and time to live of a thread. An active run does not observe the
    /// update.
    ///
    /// # Errors
    ///
    /// `not-found`; `busy` while a run is active on another host, or if another operation uses the
    /// thread for too long; `limit` if the metadata becomes too large.
    pub async fn update_thread(&self, update: UpdateThread) -> Result<ThreadRecord, Failure> {
        update.metadata.values().try_for_each(|value| check_depth("the metadata", value))?;
        let thread = &update.thread;
        let head = self.live_thread(thread).await?.ok_or_else(|| no_thread(thread))?;
        check_owner(&head, None, update.tenant.as_ref())?;
        let mut attempt = 1;
        loop {
            if let Some(record) = self.amend(&update).await? {
                return Ok(record);
            }
            match self.update_standing(&update).await {
                Err(failure) if failure.code == code::BUSY && attempt < AMEND_ATTEMPTS => {}
                updated => return updated,
            }
            tokio::time::sleep(AMEND_PAUSE).await;
            attempt += 1;
        }
    }

    /// Updates a thread through the log of its active run. Returns `None` if no run is active, or
    /// if the run is just starting or ending.
    async fn amend(&self, update: &UpdateThread) -> Result<Option<ThreadRecord>, Failure> {
        let at_work = self.active().get(&update.thread).and_then(|active| active.log.upgrade());
        let Some(log) = at_work else { return Ok(None) };
        let amendment = Amendment { metadata: update.metadata.clone(), ttl: update.ttl };
        match log.amend(amendment).await {
            Ok(Amended::Done(record)) => Ok(Some(record)),
            Ok(Amended::TooLarge(failure)) => Err(failure),
            Ok(Amended::TooEarly) | Err(StoreError::Fenced { .. }) => Ok(None),
            Err(error) => Err(store_failure(error)),
        }
    }

    /// Updates a thread without an active run.
    async fn update_standing(&self, update: &UpdateThread) -> Result<ThreadRecord, Failure> {
        let thread = &update.thread;
        let mut slot = self.claim(thread, new_run_id()).await?;
        let head = self.live_thread(thread).await?.ok_or_else(|| no_thread(thread))?;
        self.refuse_cut(&head).await?;
        let mut record = head.record;
        facts::check_added(&record.metadata, &update.metadata)?;
        let amendment = Amendment { metadata: update.metadata.clone(), ttl: update.ttl };
        amendment.apply(&mut record);
        record.updated_ms = self.now_ms();
        let batch =
            Batch { epoch: Some(slot.epoch), record: Some(record.clone()), ..Batch::default() };
        self.0.ports.store.append(thread, batch).await.await.map_err(store_failure)?;
        slot.release().await;
        Ok(record)
    }

    /// Claims a thread for a run that starts, under the requested run id if no other run has it.
    ///
    /// # Errors
    ///
    /// `conflict` if the run id is taken; `busy` if a run is active on the thread.
    pub(super) async fn claim_new(&self, thread: &ThreadId, asked: Asked) -> Result<Slot, Failure> {
        let mut slot = match asked.run.clone() {
            None => self.claim(thread, new_run_id()).await?,
            // The run is pending under this id, and starts in its turn.
            Some(run) if asked.turn == Turn::Own => self.claim(thread, run).await?,
            Some(run) => self.claim_chosen(thread, run).await?,
        };
        slot.asked = asked;
        Ok(slot)
    }

    async fn claim_chosen(&self, thread: &ThreadId, run: RunId) -> Result<Slot, Failure> {
        if self.active().values().any(|active| active.run == run) {
            return Err(taken(&run));
        }
        self.refuse_known(&run).await?;
        let slot = self.claim(thread, run).await?;
        // Another host may have started and ended the same run during the wait for the lease.
        self.refuse_known(&slot.run).await?;
        Ok(slot)
    }

    pub(super) async fn refuse_known(&self, run: &RunId) -> Result<(), Failure> {
        let known = self.0.ports.store.run(run).await.map_err(store_failure)?;
        known.map_or(Ok(()), |_| Err(taken(run)))
    }
}

pub(super) fn taken(run: &RunId) -> Failure {
    let text = format!("there is a run `{run}` already; choose another id");
    Failure::new(code::CONFLICT, text).with_details(json!({ "run_id": run }))
}

/// Binds an unbound thread to a graph. Other fields of the record are kept.
pub(super) fn bound(head: ThreadHead, app: &App, pack: &GraphPack) -> ThreadHead {
    let record = ThreadRecord {
        app: app.name.clone(),
        graph: pack.graph.name.clone(),
        version: pack.version,
        ..head.record
    };
    ThreadHead { record, ..head }
}
