//! Whether something may begin on a thread.

use wattle_graph::failure::Failure;

use super::Engine;
use crate::caps;
use crate::ports::store::ThreadHead;

impl Engine {
    /// Refuses what would make a thread grow that must not: its run was cut and has to go on first,
    /// its log is full, or its tenant has as much as it may. Asked before anything is written.
    ///
    /// # Errors
    ///
    /// `busy`, with the reason if the run was set aside; `limit`.
    pub(super) async fn admit(&self, head: &ThreadHead) -> Result<(), Failure> {
        self.refuse_cut(head).await?;
        self.refuse_full(head)?;
        self.admit_of(head.record.tenant.as_deref()).await
    }

    /// Refuses a thread more of a tenant that has as many as it may, or whose threads take as much
    /// as they may.
    ///
    /// # Errors
    ///
    /// `limit`, and those of the store.
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
