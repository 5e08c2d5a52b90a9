//! Checks whether a thread may grow.

use wattle_graph::failure::Failure;

use super::Engine;
use crate::caps;
use crate::ports::store::ThreadHead;

impl Engine {
    /// Rejects work on a thread that must not grow: its orphaned run is not recovered, its log is
    /// full, or its tenant has reached a cap. Called before anything is written.
    ///
    /// # Errors
    ///
    /// `unavailable` if the run is not recovered yet; `busy`, with the reason, if it is set aside;
    /// `limit`.
    pub(super) async fn admit(&self, head: &ThreadHead) -> Result<(), Failure> {
        self.refuse_cut(head).await?;
        self.refuse_full(head)?;
        self.admit_of(head.record.tenant.as_deref()).await
    }

    /// Rejects a new thread of a tenant that has reached its cap on threads or on stored bytes.
    ///
    /// # Errors
    ///
    /// `limit`; errors of the store.
    pub(super) async fn admit_new(&self, tenant: Option<&str>) -> Result<(), Failure> {
        let Some(tenant) = tenant else { return Ok(()) };
        self.0.quotas.take_thread(&self.0.ports, tenant).await?;
        self.admit_of(Some(tenant)).await
    }

    async fn admit_of(&self, tenant: Option<&str>) -> Result<(), Failure> {
        match tenant {
            Some(tenant) => self.0.quotas.check_bytes(&self.0.ports, tenant).await,
            None => Ok(()),
        }
    }

    fn refuse_full(&self, head: &ThreadHead) -> Result<(), Failure> {
        let allowed = self.0.quotas.caps().thread_log_bytes;
        if head.log_bytes < allowed {
            return Ok(());
        }
        Err(caps::log_full(&head.record.id, head.log_bytes, allowed))
    }
}
