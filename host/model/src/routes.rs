//! The implementation of the port `Model`.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{Completion, CompletionRequest, GeneratedImage, ImageRequest};
use wattle_run::ports::model::{Deltas, RouteInfo};
use wattle_run::ports::{BlobStore, Caller, Model};

use crate::chat::Pictures;
use crate::config::{ModelConfig, check_aliases, read_models};
use crate::error::ConfigError;
use crate::header;
use crate::provider::{self, Key, Provider, Providers};
use crate::route::{Owner, Route};
use crate::sink::Sink;
use crate::tenant::{Own, TenantRoutes, Tenants};

/// All model routes, with their HTTP connections. Share it behind an `Arc`.
#[derive(Debug)]
pub struct Routes {
    config: ModelConfig,
    providers: Providers,
    routes: BTreeMap<String, Arc<Route>>,
    tenants: Option<TenantRoutes>,
    /// Sentences about models that environment variables replace.
    from_env: Vec<String>,
}

impl Routes {
    /// Creates the routes of a `[model]` table. Reads keys and model names through `env`, once.
    ///
    /// A missing key is no error: calls of the provider fail as `unavailable`, and [`Routes::problems`] reports it.
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

    /// As [`new`](Self::new), with secrets in the headers of providers. `fill` replaces the placeholders in the value
    /// of a header, or returns the reason why it cannot. Calls of a provider with such a reason fail as `unavailable`.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn open(
        mut config: ModelConfig,
        env: &dyn Fn(&str) -> Option<String>,
        fill: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Self, ConfigError> {
        check_aliases(&config)?;
        let from_env = read_models(&mut config, env);
        let http = provider::http(None).map_err(|reason| ConfigError::Client { reason })?;
        let mut providers = Providers::new();
        for (name, provider) in &config.providers {
            let key = Key::read(provider.key_env.as_deref(), env);
            let headers = header::filled(name, provider, fill)?;
            let provider = Provider::new(name, provider, key, http.clone())?.with_headers(headers);
            providers.insert(name.clone(), Arc::new(provider));
        }
        let mut routes = BTreeMap::new();
        for (name, route) in &config.routes {
            let (route, aliases) = (route.clone(), &config.aliases);
            let route = Route::new(name, route, &providers, aliases, Owner::Operator)?;
            routes.insert(name.clone(), Arc::new(route));
        }
        Ok(Self { config, providers, routes, tenants: None, from_env })
    }

    /// Enables tenant routes and loads the stored ones. Without this call, setting a tenant route fails as
    /// `unsupported`.
    ///
    /// # Errors
    ///
    /// [`ConfigError::TenantFile`] if the file exists and cannot be read.
    pub fn with_tenants(mut self, tenants: Tenants) -> Result<Self, ConfigError> {
        self.tenants = Some(TenantRoutes::open(tenants, &self.config, &self.providers)?);
        Ok(self)
    }

    /// Returns one sentence for each reason why a provider or a tenant route cannot be used, for the operator at
    /// startup.
    pub fn problems(&self) -> Vec<String> {
        let used = self.routes.values().flat_map(|route| route.providers());
        let mut problems: Vec<String> = used.filter_map(Provider::problem).collect();
        problems.extend(self.tenants.iter().flat_map(TenantRoutes::problems));
        problems.sort();
        problems.dedup();
        problems
    }

    /// Returns one sentence for each model that an environment variable or an alias replaces.
    pub fn replaced(&self) -> Vec<String> {
        let aliased = self.routes.values().flat_map(|route| route.replaced());
        self.from_env.iter().cloned().chain(aliased).collect()
    }

    /// As [`Model::complete`]; `streams` overrides whether the provider is asked for a stream. For tests of both forms.
    ///
    /// # Errors
    ///
    /// As [`Model::complete`].
    pub async fn complete_as(
        &self,
        caller: &Caller,
        request: &CompletionRequest,
        blobs: &dyn BlobStore,
        deltas: &dyn Deltas,
        streams: bool,
    ) -> Result<Completion, Failure> {
        let sink = Sink::new(deltas).with_streams(streams);
        self.answer(caller, request, blobs, &sink).await
    }

    async fn answer(
        &self,
        caller: &Caller,
        request: &CompletionRequest,
        blobs: &dyn BlobStore,
        sink: &Sink<'_>,
    ) -> Result<Completion, Failure> {
        let route = self.find(caller, &request.route)?;
        let pictures = Pictures::load(request, blobs).await?;
        route.ask(request, &pictures, sink).await
    }

    /// Returns the names of the operator's routes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.routes.keys().map(String::as_str)
    }

    /// Returns the route of the tenant, or else the operator's route.
    fn find(&self, caller: &Caller, name: &str) -> Result<Arc<Route>, Failure> {
        match self.tenants.as_ref().map(|tenants| tenants.find(caller, name)) {
            Some(Own::Route(route)) => return Ok(route),
            Some(Own::Broken(problem)) => return Err(Failure::new(code::UNAVAILABLE, problem)),
            Some(Own::None) | None => {}
        }
        self.routes.get(name).cloned().ok_or_else(|| no_route(name, &self.routes))
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
        self.routes.contains_key(route) || own.is_some_and(|own| !matches!(own, Own::None))
    }

    fn route(&self, caller: &Caller, route: &str) -> Option<RouteInfo> {
        self.find(caller, route).ok().map(|route| route.info())
    }

    async fn complete(
        &self,
        caller: &Caller,
        request: &CompletionRequest,
        blobs: &dyn BlobStore,
        deltas: &dyn Deltas,
    ) -> Result<Completion, Failure> {
        self.answer(caller, request, blobs, &Sink::new(deltas)).await
    }

    async fn generate_images(
        &self,
        caller: &Caller,
        request: &ImageRequest,
        blobs: &dyn BlobStore,
    ) -> Result<Vec<GeneratedImage>, Failure> {
        let route = self.find(caller, &request.route)?;
        route.make_images(request).await?.keep(blobs).await
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
    let known: Vec<&str> = routes.keys().map(String::as_str).collect();
    let message = format!(
        "there is no model route `{route}`; add `[model.routes.{route}]` to wattle.toml (there \
         are: {})",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    );
    Failure::new(code::NOT_FOUND, message)
}
