//! Port: language models behind named routes.

use async_trait::async_trait;
use wattle_graph::failure::Failure;

use crate::call::llm::{Completion, CompletionRequest};
use crate::ports::{BlobStore, Caller};

/// Language models. A route names a provider, a model, fallbacks and limits; the operator
/// defines it.
#[async_trait]
pub trait Model: Send + Sync {
    /// Whether there is such a route for the caller's tenant. Called when an app is loaded and
    /// before each call.
    fn has_route(&self, caller: &Caller, route: &str) -> bool;

    /// Calls the route's model: retries, fallbacks and the structured-output ladder included.
    /// Called once for each journaled call; must not cache answers. Dropping the future must end
    /// the outgoing request. Pictures are read from `blobs`.
    async fn complete(
        &self,
        caller: &Caller,
        request: &CompletionRequest,
        blobs: &dyn BlobStore,
    ) -> Result<Completion, Failure>;
}
