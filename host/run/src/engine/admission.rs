//! Checks whether a thread may grow, and whether a run may have its input, context and metadata.

use std::collections::BTreeMap;

use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_graph::graph::Graph;
use wattle_graph::id::ThreadId;

use super::Engine;
use crate::blocking::{block_in_place_in_turn, is_long_validation};
use crate::caller_id::CallerId;
use crate::caps;
use crate::free_disk::{DiskStatus, DiskUse};
use crate::json::check_depth;
use crate::ports::store::ThreadHead;
use crate::text::Escaped;

impl Engine {
    /// Checks the size of the context of a requested run. Code that stores a context for later runs
    /// calls this function, too. The start of a pending run does not check its context again, so a
    /// context that was stored under a larger cap stays usable.
    ///
    /// # Errors
    ///
    /// `limit`.
    pub fn check_context_size(&self, context: &Value) -> Result<(), Failure> {
        self.0.quotas.caps().check_context_size(context)
    }

    /// Rejects work on a thread that must not grow: its orphaned run is not recovered, its log is
    /// full, its tenant has reached a cap, or the disk has too little free space. Called before
    /// anything is written.
    ///
    /// # Errors
    ///
    /// `unavailable` if the orphaned run is not recovered yet, or below the floor of free disk
    /// space; `busy`, with the reason, if the thread is set aside; `limit` if the log is full or the
    /// tenant has reached a cap.
    pub(super) async fn admit(&self, head: &ThreadHead) -> Result<(), Failure> {
        self.admit_use(head, DiskUse::New).await
    }

    /// Rejects answers to questions of a thread, like [`Engine::admit`]. Answers are taken with less
    /// free disk space.
    ///
    /// # Errors
    ///
    /// See [`Engine::admit`].
    pub(super) async fn admit_answers(&self, head: &ThreadHead) -> Result<(), Failure> {
        self.admit_use(head, DiskUse::Answer).await
    }

    async fn admit_use(&self, head: &ThreadHead, disk_use: DiskUse) -> Result<(), Failure> {
        self.reject_orphaned_run(head).await?;
        self.reject_full_log(head)?;
        self.check_free_disk(disk_use).await?;
        self.check_tenant_bytes(head.record.tenant.as_deref()).await
    }

    /// Rejects a new thread whose id has a control character, and one of a tenant that has reached
    /// its cap on threads or on stored bytes. Ids are shown in logs, terminals and tables.
    ///
    /// # Errors
    ///
    /// `invalid`; `unavailable` below the floor of free disk space; `limit`; errors of the store.
    pub(super) async fn admit_new_thread(
        &self,
        thread: &ThreadId,
        tenant: Option<&str>,
    ) -> Result<(), Failure> {
        check_new_id("thread", thread.as_str())?;
        self.check_free_disk(DiskUse::New).await?;
        let Some(tenant) = tenant else { return Ok(()) };
        self.0.quotas.charge_thread(&self.0.ports, tenant).await?;
        self.check_tenant_bytes(Some(tenant)).await
    }

    /// Returns the free space of the disk and its floor. Returns `None` without a floor, or if the
    /// space cannot be read.
    pub async fn disk_status(&self) -> Option<DiskStatus> {
        self.0.quotas.disk_status(&self.0.ports).await
    }

    /// Rejects work that takes more of the disk. Code that writes to the disk without the engine
    /// calls this function, too.
    ///
    /// # Errors
    ///
    /// `unavailable` if the free space of the disk is below the floor of this work.
    pub async fn check_free_disk(&self, disk_use: DiskUse) -> Result<(), Failure> {
        self.0.quotas.check_free_disk(&self.0.ports, disk_use).await
    }

    async fn check_tenant_bytes(&self, tenant: Option<&str>) -> Result<(), Failure> {
        match tenant {
            Some(tenant) => self.0.quotas.check_bytes(&self.0.ports, tenant).await,
            None => Ok(()),
        }
    }

    fn reject_full_log(&self, head: &ThreadHead) -> Result<(), Failure> {
        let allowed = self.0.quotas.caps().thread_log_bytes;
        if head.log_bytes < allowed {
            return Ok(());
        }
        Err(caps::log_full(&head.record.id, head.log_bytes, allowed))
    }
}

/// Rejects the id of a new thread or run if it has a control character. Threads and runs of earlier
/// hosts may have such ids, so an id of what exists is not checked.
pub(super) fn check_new_id(what: &str, id: &str) -> Result<(), Failure> {
    if !id.contains(char::is_control) {
        return Ok(());
    }
    let shown = Escaped(id);
    let text = format!("`{shown}` is not a valid id of a new {what}: it has a control character");
    Err(Failure::new(code::INVALID, text))
}

/// Rejects an input, a context or metadata that is nested too deeply.
pub(super) fn check_documents(
    input: &Value,
    context: &Value,
    metadata: &BTreeMap<String, Value>,
) -> Result<(), Failure> {
    check_depth("the input", input)?;
    check_depth("the context", context)?;
    metadata.values().try_for_each(|value| check_depth("the metadata", value))
}

/// Checks a run context against the schema of a graph, as work of a caller.
pub(super) async fn check_context(
    caller: CallerId,
    graph: &Graph,
    context: &Value,
) -> Result<(), Failure> {
    let is_long = is_long_validation(graph, [context]);
    block_in_place_in_turn(caller, is_long, || graph.check_context(context)).await
}
