//! Unbound threads, which have no graph until their first run or edit, and updates of threads
//! outside of runs.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, GraphName, ThreadId};

use super::app_code::select_graph;
use super::owner::thread_exists;
use super::{Engine, new_run_id, new_thread_id, thread_not_found};
use crate::app::{App, GraphVersion};
use crate::hostcall::runs::UpdateThread;
use crate::json::check_depth;
use crate::log::{MetadataUpdate, UpdateOutcome};
use crate::metadata;
use crate::ports::store::{Batch, RunSpec, StoreError, ThreadHead, ThreadRecord, ThreadTtl};

/// Maximum number of attempts to update a thread while another operation uses it: a run that is
/// starting or has just ended, or an edit.
const UPDATE_ATTEMPTS: u32 = 20;

/// Delay between two attempts.
const UPDATE_RETRY_DELAY: Duration = Duration::from_millis(25);

/// A thread to create without a graph. Its first run or edit binds the thread to a graph.
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
    /// App and graph that the first run requests, for lists. They do not bind the thread. Default:
    /// no run was requested.
    pub requested_graph: Option<(AppName, GraphName)>,
}

impl Engine {
    /// Creates a thread without a graph. Its first run or edit binds the thread to a graph.
    ///
    /// # Errors
    ///
    /// `conflict` if the thread exists; `busy` if it is being created; `limit` if the metadata is
    /// too large or the tenant has reached a cap; `unavailable` below the floor of free disk space.
    pub async fn create_thread(&self, new: NewThread) -> Result<ThreadRecord, Failure> {
        new.metadata.values().try_for_each(|value| check_depth("the metadata", value))?;
        // A thread that is created again keeps its metadata, even if the metadata was accepted
        // before the limit existed.
        if new.created_ms.is_none() {
            metadata::check_size(&new.metadata)?;
        }
        let record = self.unbound_thread(new);
        self.store_new_thread(&record).await?;
        Ok(record)
    }

    /// Returns the record of a thread without a graph, which is not stored yet.
    /// [`ThreadCreation::New`](crate::hostcall::runs::ThreadCreation::New) stores the record
    /// together with the first run.
    pub fn unbound_thread(&self, new: NewThread) -> ThreadRecord {
        let unbound = self.new_thread(new.thread.unwrap_or_else(new_thread_id), new.tenant);
        let (app, graph) =
            new.requested_graph.unwrap_or_else(|| (unbound.app.clone(), unbound.graph.clone()));
        ThreadRecord {
            app,
            graph,
            created_ms: new.created_ms.unwrap_or(unbound.created_ms),
            metadata: new.metadata,
            ttl: new.ttl.or(unbound.ttl),
            ..unbound
        }
    }

    /// Stores the record of a new thread.
    ///
    /// # Errors
    ///
    /// `conflict` if the thread exists; `busy` if it is being created; `limit` if the tenant has
    /// reached a cap; `unavailable` below the floor of free disk space.
    pub(super) async fn store_new_thread(&self, record: &ThreadRecord) -> Result<(), Failure> {
        let thread = &record.id;
        let mut slot = self.claim(thread, new_run_id()).await?;
        if self.unexpired_thread(thread).await?.is_some() {
            return Err(thread_exists(thread));
        }
        self.admit_new_thread(thread, record.tenant.as_deref()).await?;
        let batch =
            Batch { epoch: Some(slot.epoch), record: Some(record.clone()), ..Batch::default() };
        self.0.ports.store.append(thread, batch).await.await?;
        slot.release().await;
        Ok(())
    }

    /// Returns the record of a new unbound thread, which is not stored yet.
    pub(super) fn new_thread(&self, thread: ThreadId, tenant: Option<String>) -> ThreadRecord {
        ThreadRecord {
            tenant,
            ttl: self.0.thread_ttl,
            incarnation: Some(new_run_id()),
            ..ThreadRecord::unbound(thread, self.now_ms())
        }
    }

    /// Returns the app and the graph that a run requests. Returns `None` if the run names no graph,
    /// and its app is not loaded or has several graphs.
    pub(super) fn requested_graph(&self, spec: &RunSpec) -> Option<(AppName, GraphName)> {
        let graph = spec.graph.clone().or_else(|| {
            let app = self.0.catalog.app(&spec.app)?;
            Some(select_graph(&app, None).ok()?.graph.name.clone())
        })?;
        Some((spec.app.clone(), graph))
    }

    /// See [`RunService::update_thread`](crate::hostcall::runs::RunService::update_thread).
    pub(super) async fn apply_update(&self, update: UpdateThread) -> Result<ThreadRecord, Failure> {
        update.metadata.values().try_for_each(|value| check_depth("the metadata", value))?;
        let thread = &update.thread;
        let head = self.visible_thread(thread).await?.ok_or_else(|| thread_not_found(thread))?;
        check_target(&update, &head.record)?;
        let mut attempt = 1;
        loop {
            if let Some(record) = self.update_active_thread(&update).await? {
                return Ok(record);
            }
            match self.update_idle_thread(&update).await {
                Err(failure) if failure.code == code::BUSY && attempt < UPDATE_ATTEMPTS => {}
                updated => return updated,
            }
            tokio::time::sleep(UPDATE_RETRY_DELAY).await;
            attempt += 1;
        }
    }

    /// Updates a thread through the log of its active run. Returns `None` if no run is active, if
    /// the run is just starting or ending, or if the store has rejected the first or the last batch
    /// of the run.
    async fn update_active_thread(
        &self,
        update: &UpdateThread,
    ) -> Result<Option<ThreadRecord>, Failure> {
        let at_work = self.active().get(&update.thread).and_then(|active| active.log.upgrade());
        let Some(log) = at_work else { return Ok(None) };
        let amendment = MetadataUpdate { metadata: update.metadata.clone(), ttl: update.ttl };
        match log.update_metadata(amendment, |record| check_target(update, record)).await {
            Ok(UpdateOutcome::Applied(record)) => Ok(Some(*record)),
            Ok(UpdateOutcome::Rejected(failure)) => Err(failure),
            Ok(UpdateOutcome::NoRecordYet)
            | Err(StoreError::Fenced { .. } | StoreError::Conflict { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Updates a thread without an active run.
    async fn update_idle_thread(&self, update: &UpdateThread) -> Result<ThreadRecord, Failure> {
        let thread = &update.thread;
        let mut slot = self.claim(thread, new_run_id()).await?;
        let head = self.unexpired_thread(thread).await?.ok_or_else(|| thread_not_found(thread))?;
        // The thread may have been deleted and created again since the first check.
        check_target(update, &head.record)?;
        self.reject_orphaned_run(&head).await?;
        let mut record = head.record;
        metadata::check_merged_size(&record.metadata, &update.metadata)?;
        let amendment = MetadataUpdate { metadata: update.metadata.clone(), ttl: update.ttl };
        amendment.apply(&mut record);
        record.updated_ms = self.now_ms();
        let batch =
            Batch { epoch: Some(slot.epoch), record: Some(record.clone()), ..Batch::default() };
        self.0.ports.store.append(thread, batch).await.await?;
        slot.release().await;
        Ok(record)
    }
}

/// Returns the failure of a missing thread if the thread has another tenant than the update, or
/// belongs to another app than the update names. The threads that a tenant can update are those
/// that it can list, so a thread without a tenant is missing for every tenant.
fn check_target(update: &UpdateThread, record: &ThreadRecord) -> Result<(), Failure> {
    let is_foreign = update.app.as_ref().is_some_and(|app| *app != record.app);
    if is_foreign || update.tenant != record.tenant {
        return Err(thread_not_found(&record.id));
    }
    Ok(())
}

/// Binds an unbound thread to a graph. Other fields of the record are kept.
pub(super) fn bind(head: ThreadHead, app: &App, graph_version: &GraphVersion) -> ThreadHead {
    let record = ThreadRecord {
        app: app.name.clone(),
        graph: graph_version.graph.name.clone(),
        version: graph_version.version,
        ..head.record
    };
    ThreadHead { record, ..head }
}
