//! The created key of a request, which can be revoked while the request is open.

use std::sync::Arc;

use wattle_graph::id::Digest;
use wattle_run::engine::Engine;

use crate::guard::keyring::Keyring;

/// A created key of a request.
pub(crate) struct RevocableKey {
    keyring: Arc<Keyring>,
    engine: Engine,
    digest: Digest,
}

impl RevocableKey {
    pub(super) fn new(keyring: Arc<Keyring>, engine: Engine, digest: Digest) -> Self {
        Self { keyring, engine, digest }
    }

    /// Returns true if the key is revoked or expired.
    pub(super) async fn is_revoked(&self) -> bool {
        self.keyring.is_revoked(self.engine.ports(), &self.digest).await
    }

    /// Waits until the key is revoked or expires.
    pub(super) async fn revoked(&self) {
        self.keyring.revoked(self.engine.ports(), &self.digest).await;
    }
}
