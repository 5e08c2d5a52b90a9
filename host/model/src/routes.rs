//! The implementation of the port `Model`.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{Completion, CompletionRequest, GeneratedImage, ImageRequest};
use wattle_graph::suggest;
use wattle_run::lookups::on_behalf_of;
use wattle_run::ports::model::{DeltaSink, RouteInfo};
use wattle_run::ports::{BlobStore, Caller, Model};
use wattle_run::schemas::SchemaCache;
use wattle_run::service_memory::ServiceMemory;

use crate::chat::LoadedImages;
use crate::config::{ModelConfig, apply_model_env, check_aliases};
use crate::error::ConfigError;
use crate::header;
use crate::provider::{self, ApiKey, CallScope, Provider, Providers};
use crate::route::{Route, RouteOwner};
use crate::sink::CallSink;
use crate::tenant::{TenantRoute, TenantRoutes, TenantRoutesConfig};

/// All model routes, with their HTTP connections. Share the value behind an `Arc`.
#[derive(Debug)]
pub struct Routes {
    config: ModelConfig,
    providers: Providers,
    routes: BTreeMap<String, Arc<Route>>,
    tenants: Option<TenantRoutes>,
    /// Compiled response schemas.
    schemas: SchemaCache,
    /// The memory of responses that arrive.
    memory: ServiceMemory,
    /// Sentences about models that environment variables replace.
    env_substitutions: Vec<String>,
}

impl Routes {
    /// Creates the routes of a `[model]` table. Reads keys and model names through `env`, once.
    ///
    /// A missing key is no error: calls of the provider fail as `unavailable`, and [`Routes::startup_warnings`] reports
    /// it.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if a base URL is invalid, a route names an unknown provider, or a value of a route or an alias
    /// is invalid.
    pub fn new(
        config: ModelConfig,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        Self::open(config, env, &|text| Ok(text.to_owned()))
    }

    /// Creates the routes like [`new`](Self::new), and inserts secrets into the headers of
    /// providers. `fill` replaces the placeholders in the value of a header, or returns the reason
    /// why it cannot. If `fill` returns a reason, calls of the provider fail as `unavailable`.
    ///
    /// # Errors
    ///
    /// The errors of [`new`](Self::new).
    pub fn open(
        mut config: ModelConfig,
        env: &dyn Fn(&str) -> Option<String>,
        fill: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Self, ConfigError> {
        check_aliases(&config)?;
        let env_substitutions = apply_model_env(&mut config, env);
        let http = provider::http_client(None).map_err(|reason| ConfigError::Client { reason })?;
        let mut providers = Providers::new();
        for (name, provider) in &config.providers {
            let key = ApiKey::from_env(provider.key_env.as_deref(), env);
            let headers = header::resolve(name, provider, fill)?;
            let provider = Provider::new(name, provider, key, http.clone())?.with_headers(headers);
            providers.insert(name.clone(), Arc::new(provider));
        }
        let mut routes = BTreeMap::new();
        for (name, route) in &config.routes {
            let (route, aliases) = (route.clone(), &config.aliases);
            let route = Route::new(name, route, &providers, aliases, RouteOwner::Operator)?;
            routes.insert(name.clone(), Arc::new(route));
        }
        Ok(Self {
            config,
            providers,
            routes,
            tenants: None,
            schemas: SchemaCache::default(),
            memory: ServiceMemory::default(),
            env_substitutions,
        })
    }

    /// Sets the memory of responses, which other adapters can share. The default is a memory of
    /// their own with the default limit.
    #[must_use]
    pub fn with_memory(self, memory: ServiceMemory) -> Self {
        Self { memory, ..self }
    }

    /// Sets the capacity of the cache of compiled schemas, in bytes. The default is that of the
    /// default budget.
    #[must_use]
    pub fn with_schema_cache_bytes(self, capacity_bytes: u64) -> Self {
        Self { schemas: SchemaCache::with_capacity(capacity_bytes), ..self }
    }

    /// Enables tenant routes and loads the stored tenant routes. Without this call, setting a
    /// tenant route fails as `unsupported`.
    ///
    /// # Errors
    ///
    /// [`ConfigError::TenantFile`] if the file exists and cannot be read.
    pub fn with_tenants(mut self, tenants: TenantRoutesConfig) -> Result<Self, ConfigError> {
        self.tenants = Some(TenantRoutes::open(tenants, &self.config, &self.providers)?);
        Ok(self)
    }

    /// Returns one sentence for each reason why a provider or a tenant route cannot be used, for the operator at
    /// startup.
    pub fn startup_warnings(&self) -> Vec<String> {
        let used = self.routes.values().flat_map(|route| route.providers());
        let mut problems: Vec<String> = used.filter_map(Provider::unusable_reason).collect();
        problems.extend(self.tenants.iter().flat_map(TenantRoutes::startup_warnings));
        problems.sort();
        problems.dedup();
        problems
    }

    /// Returns one sentence for each model that an environment variable or an alias replaces.
    pub fn substitutions(&self) -> Vec<String> {
        let aliased = self.routes.values().flat_map(|route| route.alias_notes());
        self.env_substitutions.iter().cloned().chain(aliased).collect()
    }

    /// Returns one sentence for each optional field of requests that the services of a route have
    /// rejected so far, and that later requests do not have.
    pub fn rejection_notes(&self, caller: &Caller, route: &str) -> Vec<String> {
        let route = self.find_route(caller, route);
        route.map(|route| route.rejection_notes().collect()).unwrap_or_default()
    }

    /// Requests a completion like [`Model::complete`]. `streams` overrides whether the provider is
    /// asked for a stream, for tests of streamed and unstreamed responses.
    ///
    /// # Errors
    ///
    /// The errors of [`Model::complete`].
    pub async fn complete_as(
        &self,
        caller: &Caller,
        request: &CompletionRequest,
        blobs: &dyn BlobStore,
        deltas: &dyn DeltaSink,
        streams: bool,
    ) -> Result<Completion, Failure> {
        let sink = CallSink::new(deltas).with_stream_override(streams);
        self.complete_with_sink(caller, request, blobs, &sink).await
    }

    async fn complete_with_sink(
        &self,
        caller: &Caller,
        request: &CompletionRequest,
        blobs: &dyn BlobStore,
        sink: &CallSink<'_>,
    ) -> Result<Completion, Failure> {
        let route = self.find_route(caller, &request.route)?;
        let pictures = LoadedImages::load(request, blobs).await?;
        let scope = self.scope(caller);
        let completion = route.complete(scope, request, &pictures, sink, &self.schemas);
        on_behalf_of(caller.owner, completion).await
    }

    /// Returns the names of the operator's routes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.routes.keys().map(String::as_str)
    }

    /// Returns the route of the tenant, or else the operator's route.
    fn find_route(&self, caller: &Caller, name: &str) -> Result<Arc<Route>, Failure> {
        match self.tenants.as_ref().map(|tenants| tenants.find(caller, name)) {
            Some(TenantRoute::Route(route)) => return Ok(route),
            Some(TenantRoute::Invalid(problem)) => {
                return Err(Failure::new(code::UNAVAILABLE, problem));
            }
            Some(TenantRoute::Unset) | None => {}
        }
        self.routes.get(name).cloned().ok_or_else(|| no_route(name, &self.routes))
    }

    fn scope(&self, caller: &Caller) -> CallScope<'_> {
        CallScope { owner: caller.owner, memory: &self.memory }
    }

    fn tenants(&self) -> Result<&TenantRoutes, Failure> {
        self.tenants
            .as_ref()
            .ok_or_else(|| Failure::new(code::UNSUPPORTED, "this host has no tenant routes"))
    }
}

#[async_trait]
impl Model for Routes {
    fn has_route(&self, caller: &Caller, route: &str) -> bool {
        let own = self.tenants.as_ref().map(|tenants| tenants.find(caller, route));
        self.routes.contains_key(route) || own.is_some_and(|own| !matches!(own, TenantRoute::Unset))
    }

    fn route(&self, caller: &Caller, route: &str) -> Option<RouteInfo> {
        self.find_route(caller, route).ok().map(|route| route.info())
    }

    fn route_not_found(&self, route: &str) -> Failure {
        no_route(route, &self.routes)
    }

    fn configured_models(&self, route: &str) -> Vec<String> {
        let called = self.routes.get(route).into_iter().flat_map(|route| route.models());
        let mut models: Vec<String> = Vec::new();
        for model in called {
            // A model without an alias is both the configured model and the one that is called.
            if models.iter().all(|listed| listed != model) {
                models.push(model.to_owned());
            }
        }
        models
    }

    async fn complete(
        &self,
        caller: &Caller,
        request: &CompletionRequest,
        blobs: &dyn BlobStore,
        deltas: &dyn DeltaSink,
    ) -> Result<Completion, Failure> {
        self.complete_with_sink(caller, request, blobs, &CallSink::new(deltas)).await
    }

    async fn generate_images(
        &self,
        caller: &Caller,
        request: &ImageRequest,
        blobs: &dyn BlobStore,
    ) -> Result<Vec<GeneratedImage>, Failure> {
        let route = self.find_route(caller, &request.route)?;
        let images = on_behalf_of(caller.owner, route.generate_images(self.scope(caller), request));
        images.await?.store(blobs).await
    }

    async fn set_route(&self, caller: &Caller, route: &str, config: Value) -> Result<(), Failure> {
        self.tenants()?.set(caller, route, config, &self.config, &self.providers).await
    }

    async fn get_route(&self, caller: &Caller, route: &str) -> Result<Option<Value>, Failure> {
        Ok(self.tenants()?.get(caller, route))
    }

    async fn remove_route(&self, caller: &Caller, route: &str) -> Result<(), Failure> {
        self.tenants()?.remove(caller, route).await
    }
}

fn no_route(route: &str, routes: &BTreeMap<String, Arc<Route>>) -> Failure {
    let hint = suggest::hint(route, "model routes", routes.keys().map(String::as_str));
    let message = format!(
        "there is no model route `{route}`; add `[model.routes.{route}]` to wattle.toml; {hint}"
    );
    Failure::new(code::NOT_FOUND, message)
}
