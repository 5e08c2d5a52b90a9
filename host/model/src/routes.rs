//! Routes: the port `Model`, with fallbacks and the bound in time of a whole call.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use genai::chat::ChatRequest;
use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_run::call::llm::{Completion, CompletionRequest};
use wattle_run::ports::{BlobStore, Caller, Model};

use crate::config::{MAX_RETRIES, ModelConfig, RouteConfig, Target};
use crate::error::ConfigError;
use crate::message::{self, Pictures};
use crate::provider::{Aim, Format, Provider, Providers, Reply, chat_options};
use crate::structured;
use crate::structured::shape::Shape;

/// Longest time of one call with all its attempts, fallbacks and repairs: as long as a node
/// without a timeout of its own lives.
const CALL_TIMEOUT: Duration = Duration::from_millis(wattle_run::limit::NODE_TIMEOUT_MS);

/// All model routes. Cheap to share behind an `Arc`; keeps connections open.
#[derive(Debug)]
pub struct Routes {
    providers: Providers,
    routes: BTreeMap<String, RouteConfig>,
}

/// One call at one model.
pub(crate) struct Call<'a> {
    pub(crate) provider: &'a Provider,
    pub(crate) aim: Aim<'a>,
    pub(crate) chat: ChatRequest,
    request: &'a CompletionRequest,
    route: &'a RouteConfig,
}

impl Routes {
    /// Routes as configured. Keys are read through `env` now, once.
    ///
    /// A key that is missing does not keep anything from starting: the provider answers
    /// `unavailable`, and [`Routes::problems`] tells about it.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if an address is none, a route names a provider that does not exist, or a
    /// value of a route makes no sense.
    pub fn new(
        config: ModelConfig,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let mut providers = Providers::new();
        for (name, provider) in &config.providers {
            providers.insert(name.clone(), Provider::new(name, provider, env)?);
        }
        for (name, route) in &config.routes {
            check_route(name, route, &config)?;
        }
        Ok(Self { providers, routes: config.routes })
    }

    /// What keeps some of the routes from being used, one sentence each, for the operator to read
    /// at the start.
    pub fn problems(&self) -> Vec<String> {
        let used = |provider: &&Provider| {
            self.routes
                .values()
                .flat_map(RouteConfig::targets)
                .any(|target| target.provider == provider.name())
        };
        let mut problems: Vec<String> =
            self.providers.values().filter(used).filter_map(Provider::problem).collect();
        problems.sort();
        problems
    }

    /// The names of all routes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.routes.keys().map(String::as_str)
    }

    /// Asks the models of a route one after the other until one answers.
    async fn ask(
        &self,
        name: &str,
        route: &RouteConfig,
        request: &CompletionRequest,
        pictures: &Pictures,
    ) -> Result<Completion, Failure> {
        let shape = request.response_schema.as_ref().map(Shape::new).transpose()?;
        let mut failures = Vec::new();
        for target in route.targets() {
            let failure =
                match self.ask_one(name, route, &target, request, pictures, shape.as_ref()).await {
                    Ok(completion) => return Ok(completion),
                    Err(failure) => failure,
                };
            if !falls_back(&failure) {
                return Err(failure);
            }
            tracing::debug!(
                route = %name, provider = %target.provider, model = %target.model,
                code = %failure.code, "model is not available"
            );
            failures.push((target, failure));
        }
        Err(all_failed(name, failures))
    }

    async fn ask_one(
        &self,
        name: &str,
        route: &RouteConfig,
        target: &Target,
        request: &CompletionRequest,
        pictures: &Pictures,
        shape: Option<&Shape<'_>>,
    ) -> Result<Completion, Failure> {
        let provider = self.providers.get(&target.provider).ok_or_else(|| {
            Failure::internal(format!("provider `{}` has vanished", target.provider))
        })?;
        let aim = Aim {
            route: name,
            model: &target.model,
            timeout: route.timeout,
            retries: route.retries,
        };
        let chat = message::chat_request(request, pictures, provider.kind())?;
        let call = Call { provider, aim, chat, request, route };
        match shape {
            Some(shape) => structured::complete(&call, shape).await,
            None => Ok(call.turn(&call.chat, Format::Free).await?.completion(None)),
        }
    }
}

impl Call<'_> {
    /// One turn: a request with its retries.
    pub(crate) async fn turn(
        &self,
        chat: &ChatRequest,
        format: Format<'_>,
    ) -> Result<Reply, Failure> {
        let kind = self.provider.kind();
        let options = chat_options(kind, self.aim.model, self.request, self.route, format);
        self.provider.turn(self.aim, chat, &options).await
    }
}

#[async_trait]
impl Model for Routes {
    /// Routes are the same for every tenant.
    fn has_route(&self, _caller: &Caller, route: &str) -> bool {
        self.routes.contains_key(route)
    }

    async fn complete(
        &self,
        _caller: &Caller,
        request: &CompletionRequest,
        blobs: &dyn BlobStore,
    ) -> Result<Completion, Failure> {
        let Some((name, route)) = self.routes.get_key_value(&request.route) else {
            return Err(no_route(&request.route, &self.routes));
        };
        let pictures = Pictures::load(request, blobs).await?;
        let answer = self.ask(name, route, request, &pictures);
        tokio::time::timeout(CALL_TIMEOUT, answer).await.unwrap_or_else(|_| {
            let message = format!(
                "the model route `{name}` gave no answer within {CALL_TIMEOUT:?}, retries and \
                 fallbacks included"
            );
            Err(Failure::new(code::TIMEOUT, message).retryable())
        })
    }
}

fn check_route(name: &str, route: &RouteConfig, config: &ModelConfig) -> Result<(), ConfigError> {
    let wrong =
        |field, reason: String| Err(ConfigError::Route { route: name.to_owned(), field, reason });
    for target in route.targets() {
        if !config.providers.contains_key(&target.provider) {
            let known: Vec<&str> = config.providers.keys().map(String::as_str).collect();
            return Err(ConfigError::UnknownProvider {
                route: name.to_owned(),
                provider: target.provider,
                known: if known.is_empty() { "none".to_owned() } else { known.join(", ") },
            });
        }
        if target.model.trim().is_empty() {
            return wrong("model", "name a model of the provider".to_owned());
        }
    }
    if route.timeout.is_zero() || route.timeout > CALL_TIMEOUT {
        return wrong("timeout", format!("must lie between 1ms and {CALL_TIMEOUT:?}"));
    }
    if route.retries > MAX_RETRIES {
        return wrong("retries", format!("may be at most {MAX_RETRIES}; add fallbacks instead"));
    }
    if !route.temperature.is_none_or(|value| (0.0..=2.0).contains(&value)) {
        return wrong("temperature", "must lie between 0 and 2".to_owned());
    }
    Ok(())
}

fn no_route(route: &str, routes: &BTreeMap<String, RouteConfig>) -> Failure {
    let known: Vec<&str> = routes.keys().map(String::as_str).collect();
    let message = format!(
        "there is no model route `{route}`; add `[model.routes.{route}]` to wattle.toml (there \
         are: {})",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    );
    Failure::new(code::NOT_FOUND, message)
}

/// Another model may help when this one is away, not when the request makes no sense.
fn falls_back(failure: &Failure) -> bool {
    matches!(failure.code.as_str(), code::UNAVAILABLE | code::RATE_LIMITED | code::TIMEOUT)
}

/// The first model's failure; the others' stand in its details.
fn all_failed(route: &str, failures: Vec<(Target, Failure)>) -> Failure {
    let retryable = failures.iter().any(|(_, failure)| failure.retryable);
    let attempts: Vec<_> = failures
        .iter()
        .map(|(target, failure)| {
            json!({
                "provider": target.provider,
                "model": target.model,
                "code": failure.code,
                "message": failure.message,
            })
        })
        .collect();
    let others = attempts.len().saturating_sub(1);
    let Some((_, mut first)) = failures.into_iter().next() else {
        return Failure::internal(format!("the model route `{route}` leads nowhere"));
    };
    if others > 0 {
        first.message = format!("{}; {others} fallback(s) failed as well", first.message);
        let details = first.details.get_or_insert_with(|| json!({}));
        details["attempts"] = attempts.into();
        first.retryable = retryable;
    }
    first
}
