//! One route: the models that stand behind it, asked one after the other until one answers.

use std::sync::Arc;

use genai::chat::ChatRequest;
use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_run::call::llm::{Attempt, Completion, CompletionRequest};
use wattle_run::ports::model::RouteInfo;

use crate::config::{MAX_RETRIES, RouteConfig, Target};
use crate::error::ConfigError;
use crate::extra::{self, Extra};
use crate::message::{self, Pictures};
use crate::provider::{Aim, Ask, Format, Provider, Providers, Reply};
use crate::routes::CALL_TIMEOUT;
use crate::sink::Sink;
use crate::structured;
use crate::structured::shape::Shape;

/// A route with its providers.
#[derive(Debug)]
pub(crate) struct Route {
    name: String,
    config: RouteConfig,
    leads: Vec<Lead>,
}

/// A model of a route.
#[derive(Debug)]
struct Lead {
    provider: Arc<Provider>,
    target: Target,
    /// What is added to its requests, the provider's fields included.
    extra: Extra,
}

/// One call at one model.
pub(crate) struct Call<'a> {
    pub(crate) provider: &'a Provider,
    pub(crate) aim: Aim<'a>,
    pub(crate) chat: ChatRequest,
    pub(crate) sink: &'a Sink<'a>,
    request: &'a CompletionRequest,
    route: &'a RouteConfig,
    extra: &'a Extra,
}

impl Route {
    /// A route as configured.
    pub(crate) fn new(
        name: &str,
        config: RouteConfig,
        providers: &Providers,
    ) -> Result<Self, ConfigError> {
        check(name, &config)?;
        let mut leads = Vec::new();
        for target in config.targets() {
            let provider = providers
                .get(&target.provider)
                .ok_or_else(|| unknown(name, &target.provider, providers))?;
            leads.push(Lead::new(name, Arc::clone(provider), target)?);
        }
        Ok(Self { name: name.to_owned(), config, leads })
    }

    /// What may be told about it.
    pub(crate) fn info(&self) -> RouteInfo {
        RouteInfo {
            provider: self.config.provider.clone(),
            model: self.config.model.clone(),
            has_fallback: !self.config.fallbacks.is_empty(),
            candidates: self.leads.len() as u32,
        }
    }

    /// Its providers, each as often as it is asked.
    pub(crate) fn providers(&self) -> impl Iterator<Item = &Provider> {
        self.leads.iter().map(|lead| lead.provider.as_ref())
    }

    /// Asks the models one after the other until one answers or begins to.
    pub(crate) async fn ask(
        &self,
        request: &CompletionRequest,
        pictures: &Pictures,
        sink: &Sink<'_>,
    ) -> Result<Completion, Failure> {
        let shape = request.response_schema.as_ref().map(Shape::new).transpose()?;
        let mut failures = Vec::new();
        for lead in &self.leads {
            let answer = self.ask_one(lead, request, pictures, shape.as_ref(), sink).await;
            let failure = match answer {
                Ok(completion) => return Ok(lead.answered(completion, failures)),
                Err(failure) => failure,
            };
            if sink.begun() || !falls_back(&failure) {
                return Err(failure);
            }
            tracing::debug!(
                route = %self.name, provider = %lead.target.provider, model = %lead.target.model,
                code = %failure.code, "model is not available"
            );
            failures.push(lead.attempt(Some(failure)));
        }
        Err(all_failed(&self.name, failures))
    }

    async fn ask_one(
        &self,
        lead: &Lead,
        request: &CompletionRequest,
        pictures: &Pictures,
        shape: Option<&Shape<'_>>,
        sink: &Sink<'_>,
    ) -> Result<Completion, Failure> {
        let provider = lead.provider.as_ref();
        let aim = Aim {
            route: &self.name,
            model: &lead.target.model,
            timeout: self.config.timeout,
            retries: self.config.retries,
        };
        let chat = message::chat_request(request, pictures, provider.kind())?;
        let (route, extra) = (&self.config, &lead.extra);
        let call = Call { provider, aim, chat, sink, request, route, extra };
        match shape {
            Some(shape) => structured::complete(&call, shape).await,
            None => Ok(call.turn(&call.chat, Format::Free).await?.completion(None)),
        }
    }
}

impl Lead {
    fn new(route: &str, provider: Arc<Provider>, target: Target) -> Result<Self, ConfigError> {
        if target.model.trim().is_empty() {
            return wrong(route, "model", "name a model of the provider".to_owned());
        }
        if let Some(reason) = extra::problem(provider.kind(), &target.extra) {
            return wrong(route, "extra", reason);
        }
        let extra = extra::joined(provider.extra(), &target.extra);
        Ok(Self { provider, target, extra })
    }

    fn attempt(&self, error: Option<Failure>) -> Attempt {
        let Target { provider, model, .. } = &self.target;
        Attempt { provider: provider.clone(), model: model.clone(), tries: 1, error }
    }

    /// The answer, with who failed to give one before.
    fn answered(&self, mut completion: Completion, failures: Vec<Attempt>) -> Completion {
        completion.attempts = failures;
        completion.attempts.push(self.attempt(None));
        completion
    }
}

impl Call<'_> {
    /// One turn: a request with its retries.
    pub(crate) async fn turn(
        &self,
        chat: &ChatRequest,
        format: Format<'_>,
    ) -> Result<Reply, Failure> {
        let (request, route, extra) = (self.request, self.route, self.extra);
        let ask = Ask { chat, request, route, format, extra };
        self.provider.turn(self.aim, &ask, self.sink).await
    }
}

fn check(name: &str, route: &RouteConfig) -> Result<(), ConfigError> {
    if route.timeout.is_zero() || route.timeout > CALL_TIMEOUT {
        return wrong(name, "timeout", format!("must lie between 1ms and {CALL_TIMEOUT:?}"));
    }
    if route.retries > MAX_RETRIES {
        let reason = format!("may be at most {MAX_RETRIES}; add fallbacks instead");
        return wrong(name, "retries", reason);
    }
    if !route.temperature.is_none_or(|value| (0.0..=2.0).contains(&value)) {
        return wrong(name, "temperature", "must lie between 0 and 2".to_owned());
    }
    Ok(())
}

fn wrong<T>(route: &str, field: &'static str, reason: String) -> Result<T, ConfigError> {
    Err(ConfigError::Route { route: route.to_owned(), field, reason })
}

fn unknown(route: &str, provider: &str, providers: &Providers) -> ConfigError {
    let mut known: Vec<&str> = providers.keys().map(String::as_str).collect();
    known.sort_unstable();
    ConfigError::UnknownProvider {
        route: route.to_owned(),
        provider: provider.to_owned(),
        known: if known.is_empty() { "none".to_owned() } else { known.join(", ") },
    }
}

/// Another model may help when this one is away, not when the request makes no sense.
fn falls_back(failure: &Failure) -> bool {
    matches!(failure.code.as_str(), code::UNAVAILABLE | code::RATE_LIMITED | code::TIMEOUT)
}

/// The first model's failure; the others' stand in its details.
fn all_failed(route: &str, attempts: Vec<Attempt>) -> Failure {
    let errors = || attempts.iter().filter_map(|attempt| attempt.error.as_ref());
    let retryable = errors().any(|failure| failure.retryable);
    let Some(mut first) = errors().next().cloned() else {
        return Failure::internal(format!("the model route `{route}` leads nowhere"));
    };
    let others = attempts.len() - 1;
    if others > 0 {
        let told: Vec<_> = attempts
            .iter()
            .filter_map(|attempt| {
                let failure = attempt.error.as_ref()?;
                Some(json!({
                    "provider": attempt.provider,
                    "model": attempt.model,
                    "code": failure.code,
                    "message": failure.message,
                }))
            })
            .collect();
        first.message = format!("{}; {others} fallback(s) failed as well", first.message);
        let details = first.details.get_or_insert_with(|| json!({}));
        details["attempts"] = told.into();
        first.retryable = retryable;
    }
    first
}
