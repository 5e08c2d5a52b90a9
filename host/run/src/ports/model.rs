//! Port: language models behind named routes.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::call::CallKind;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{Completion, CompletionRequest, Delta, GeneratedImage, ImageRequest};

use crate::ports::{BlobStore, Caller};

/// The target of a route, without key and address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteInfo {
    /// The provider that is called first.
    pub provider: String,
    /// The model of that provider.
    pub model: String,
    /// True if another model is called when the first model is not available.
    pub has_fallback: bool,
    /// Number of models of the route, at least 1.
    pub candidates: u32,
}

/// Receives the deltas of a completion as they arrive.
pub trait DeltaSink: Send + Sync {
    /// Receives one delta. Must not block.
    fn push(&self, delta: Delta);
}

/// Discards all deltas.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiscardDeltas;

impl DeltaSink for DiscardDeltas {
    fn push(&self, _delta: Delta) {}
}

/// Language models. A route names a provider, a model, fallbacks and limits. The operator defines it, and a tenant may
/// have a route of its own with the same name.
#[async_trait]
pub trait Model: Send + Sync {
    /// Returns true if a route with this name exists, of the operator or of the caller's tenant. Called when an app is
    /// loaded and before each call.
    fn has_route(&self, caller: &Caller, route: &str) -> bool;

    /// Returns the target of a route for the caller's tenant.
    fn route(&self, caller: &Caller, route: &str) -> Option<RouteInfo>;

    /// Returns the failure for a route that does not exist. An adapter that knows its routes names
    /// a similar one.
    fn route_not_found(&self, route: &str) -> Failure {
        Failure::new(code::NOT_FOUND, format!("there is no model route `{route}`"))
    }

    /// Returns the models that the operator configured for a route, including the models of
    /// fallbacks and aliases, each once. The model that is called first comes first. Returns an
    /// empty list if the operator has no such route. Unlike [`Self::route`], this method never returns the name
    /// of a model that a tenant chose. An adapter without configured routes uses this default.
    fn configured_models(&self, _route: &str) -> Vec<String> {
        Vec::new()
    }

    /// Calls the model of a route, with retries, fallbacks and structured output. Called once for each journaled call;
    /// must not cache completions. Dropping the future must end the outgoing request. Images are read from `blobs`.
    /// Deltas are passed to `deltas` as they arrive; after the first delta no other model is called.
    async fn complete(
        &self,
        caller: &Caller,
        request: &CompletionRequest,
        blobs: &dyn BlobStore,
        deltas: &dyn DeltaSink,
    ) -> Result<Completion, Failure>;

    /// Generates images and stores their bytes in `blobs`, with the retries and fallbacks of the route. Called once for
    /// each journaled call. Dropping the future must end the outgoing request.
    async fn generate_images(
        &self,
        caller: &Caller,
        request: &ImageRequest,
        blobs: &dyn BlobStore,
    ) -> Result<Vec<GeneratedImage>, Failure> {
        let _ = (caller, request, blobs);
        Err(Failure::unsupported(CallKind::GenerateImages.name()))
    }

    /// Sets a route of the caller's tenant, durably. An adapter without tenant routes uses the
    /// defaults of this method, of [`Self::get_route`] and of [`Self::remove_route`].
    async fn set_route(&self, _: &Caller, _: &str, _: Value) -> Result<(), Failure> {
        Err(Failure::unsupported("routes of tenants"))
    }

    /// Returns the tenant's own route without its key, or `None` if the tenant has none.
    async fn get_route(&self, _: &Caller, _: &str) -> Result<Option<Value>, Failure> {
        Ok(None)
    }

    /// Removes the tenant's own route, so that the operator's route applies again.
    async fn remove_route(&self, _: &Caller, _: &str) -> Result<(), Failure> {
        Ok(())
    }
}
