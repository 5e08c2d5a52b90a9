//! Port: language models behind named routes.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::failure::Failure;
use wattle_graph::llm::{Completion, CompletionRequest, Delta, GeneratedImage, ImageRequest};

use crate::ports::{BlobStore, Caller};

/// What stands behind a route. Never a key or an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteInfo {
    /// The provider that is asked first.
    pub provider: String,
    /// Its model.
    pub model: String,
    /// Whether another is asked if it does not answer.
    pub has_fallback: bool,
    /// How many models it has, 1 or more.
    pub candidates: u32,
}

/// Takes the pieces of an answer as they arrive.
pub trait Deltas: Send + Sync {
    /// Takes one piece. Must not block.
    fn push(&self, delta: Delta);
}

/// Nobody looks at the pieces.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDeltas;

impl Deltas for NoDeltas {
    fn push(&self, _delta: Delta) {}
}

/// Language models. A route names a provider, a model, fallbacks and limits; the operator
/// defines it, and a tenant may have its own behind the same name.
#[async_trait]
pub trait Model: Send + Sync {
    /// Whether there is such a route for the caller's tenant. Called when an app is loaded and
    /// before each call.
    fn has_route(&self, caller: &Caller, route: &str) -> bool;

    /// What stands behind a route for the caller's tenant.
    fn route(&self, caller: &Caller, route: &str) -> Option<RouteInfo>;

    /// Calls the route's model: retries, fallbacks and the structured-output ladder included.
    /// Called once for each journaled call; must not cache answers. Dropping the future must end
    /// the outgoing request. Pictures are read from `blobs`. The pieces go to `deltas` as they
    /// arrive; once one was pushed, another model is not asked any more.
    async fn complete(
        &self,
        caller: &Caller,
        request: &CompletionRequest,
        blobs: &dyn BlobStore,
        deltas: &dyn Deltas,
    ) -> Result<Completion, Failure>;

    /// Makes pictures and puts their bytes into `blobs`: retries and fallbacks of the route included.
    /// Called once for each journaled call. Dropping the future must end the outgoing request.
    async fn generate_images(
        &self,
        caller: &Caller,
        request: &ImageRequest,
        blobs: &dyn BlobStore,
    ) -> Result<Vec<GeneratedImage>, Failure> {
        let _ = (caller, request, blobs);
        Err(Failure::unsupported("llm.generate-images"))
    }

    /// Puts something else behind a route for the caller's tenant, durably. An adapter without routes
    /// of tenants has nothing to add to this and the two below.
    async fn set_route(&self, _: &Caller, _: &str, _: Value) -> Result<(), Failure> {
        Err(Failure::unsupported("routes of tenants"))
    }

    /// What the tenant put behind a route, without the key; `None` if nothing.
    async fn get_route(&self, _: &Caller, _: &str) -> Result<Option<Value>, Failure> {
        Ok(None)
    }

    /// Goes back to the operator's route.
    async fn remove_route(&self, _: &Caller, _: &str) -> Result<(), Failure> {
        Ok(())
    }
}
