//! Documents of the long-term memory that clients write.

use wattle_graph::failure::Failure;

use super::Engine;
use crate::ports::memory::{MemoryScope, PutItem};

impl Engine {
    /// Checks and writes a document. Its bytes count for the cap of the scope's tenant, like those
    /// of documents that guests write.
    ///
    /// # Errors
    ///
    /// The errors of [`PutItem::check`]; `limit` if the cap is reached; `unavailable` below the
    /// floor of free disk space; errors of the memory.
    pub async fn put_document(&self, scope: &MemoryScope, item: PutItem) -> Result<(), Failure> {
        item.check()?;
        self.0.quotas.put_document(&self.0.ports, scope, item).await
    }
}
