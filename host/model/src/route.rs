//! One route: its candidates, called one after the other until one returns a completion.

mod attempt_log;
mod call;
mod candidate;
mod check;
mod image;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{Completion, CompletionRequest, Tries};
use wattle_run::ports::model::RouteInfo;
use wattle_run::schemas::SchemaCache;

use crate::chat::{Chat, LoadedImages};
use crate::config::{Aliases, CALL_TIMEOUT, MAX_RETRIES, RouteConfig};
use crate::error::ConfigError;
use crate::provider::{AttemptSpec, CallScope, Provider, Providers, RequestCount, ResponseFormat};
use crate::route::attempt_log::AttemptLog;
pub(crate) use crate::route::call::CandidateCall;
pub(crate) use crate::route::candidate::RouteOwner;
use crate::route::candidate::{Candidate, CandidatePosition};
use crate::sink::CallSink;
use crate::structured;
use crate::structured::response_schema::CompiledSchema;

/// A route with the providers of its candidates.
#[derive(Debug)]
pub(crate) struct Route {
    name: String,
    config: RouteConfig,
    candidates: Vec<Candidate>,
}

/// The timeout and the retries of each candidate of a call.
#[derive(Clone, Copy)]
struct CallLimits {
    timeout: Duration,
    retries: u32,
}

impl Route {
    /// Creates a route from its settings.
    pub(crate) fn new(
        name: &str,
        config: RouteConfig,
        providers: &Providers,
        aliases: &Aliases,
        owner: RouteOwner,
    ) -> Result<Self, ConfigError> {
        check::check(name, &config)?;
        let mut candidates = Vec::new();
        for (index, target) in config.models().into_iter().enumerate() {
            let provider = providers
                .get(&target.provider)
                .ok_or_else(|| check::unknown_provider(name, &target.provider, providers))?;
            let place = CandidatePosition { owner, index };
            candidates.push(Candidate::new(name, Arc::clone(provider), target, aliases, place)?);
        }
        Ok(Self { name: name.to_owned(), config, candidates })
    }

    /// Returns the information about the route that guests can read.
    pub(crate) fn info(&self) -> RouteInfo {
        RouteInfo {
            provider: self.config.provider.clone(),
            model: self.config.model.clone(),
            has_fallback: !self.config.fallbacks.is_empty(),
            candidates: self.candidates.len() as u32,
        }
    }

    /// Returns the configured models of the candidates, and the models that the host calls in their
    /// place because of aliases.
    pub(crate) fn models(&self) -> impl Iterator<Item = &str> {
        self.candidates
            .iter()
            .flat_map(|candidate| [candidate.target.model.as_str(), candidate.model.as_str()])
    }

    /// Returns the provider of each candidate.
    pub(crate) fn providers(&self) -> impl Iterator<Item = &Provider> {
        self.candidates.iter().map(|candidate| candidate.provider.as_ref())
    }

    /// Returns one sentence for each optional field of requests that the service of a candidate
    /// rejects.
    pub(crate) fn rejection_notes(&self) -> impl Iterator<Item = String> {
        self.candidates.iter().flat_map(|Candidate { provider, target, model, .. }| {
            let notes = provider.rejection_notes(model).into_iter();
            notes.map(move |note| format!("model `{model}` of `{}`: {note}", target.provider))
        })
    }

    /// Returns one sentence for each candidate whose model an alias replaces.
    pub(crate) fn alias_notes(&self) -> impl Iterator<Item = String> {
        self.candidates.iter().filter_map(|candidate| {
            let (name, model) = (&candidate.target.model, &candidate.model);
            (name != model).then(|| {
                format!(
                    "route `{}` calls `{model}` for `{name}`, as configured in `[model.aliases]`",
                    self.name
                )
            })
        })
    }

    /// Calls the candidates one after the other until one returns a completion or emits a delta.
    /// The work on the completion is counted to the owner of `scope`.
    pub(crate) async fn complete(
        &self,
        scope: CallScope<'_>,
        request: &CompletionRequest,
        pictures: &LoadedImages,
        sink: &CallSink<'_>,
        schemas: &SchemaCache,
    ) -> Result<Completion, Failure> {
        let mut log = AttemptLog::new(&self.name);
        let completion = self.try_candidates(scope, request, pictures, sink, schemas, &mut log);
        match timeout(CALL_TIMEOUT, completion).await {
            Ok(answer) => answer,
            Err(_) => Err(log.timed_out(CALL_TIMEOUT)),
        }
    }

    async fn try_candidates(
        &self,
        scope: CallScope<'_>,
        request: &CompletionRequest,
        pictures: &LoadedImages,
        sink: &CallSink<'_>,
        schemas: &SchemaCache,
        log: &mut AttemptLog<'_>,
    ) -> Result<Completion, Failure> {
        let shape = match &request.response_schema {
            Some(wanted) => Some(CompiledSchema::new(scope.owner, wanted, schemas).await?),
            None => None,
        };
        let bounds = self.limits(&request.tries)?;
        for candidate in self.selected_candidates(&request.tries)? {
            let requests = RequestCount::default();
            let spec = self.attempt_spec(scope, candidate, bounds, &requests);
            let result =
                self.try_candidate(candidate, spec, request, pictures, shape.as_ref(), sink).await;
            match result {
                Ok(mut completion) => {
                    completion.attempts = log.finish(candidate, &requests);
                    return Ok(completion);
                }
                Err(failure) => {
                    log.record_failure(candidate, &requests, failure, sink.has_emitted())?;
                }
            }
        }
        Err(log.all_failed())
    }

    async fn try_candidate(
        &self,
        candidate: &Candidate,
        spec: AttemptSpec<'_>,
        request: &CompletionRequest,
        pictures: &LoadedImages,
        shape: Option<&CompiledSchema<'_>>,
        sink: &CallSink<'_>,
    ) -> Result<Completion, Failure> {
        let provider = candidate.provider.as_ref();
        let chat = Chat::new(request, pictures, provider.kind())?;
        let (route, extra) = (&self.config, &candidate.extra);
        let call = CandidateCall { provider, spec, chat, sink, request, route, extra };
        match shape {
            Some(shape) => structured::complete(&call, shape).await,
            None => Ok(call.turn(&call.chat, ResponseFormat::Text).await?.into_completion(None)),
        }
    }

    fn attempt_spec<'a>(
        &'a self,
        scope: CallScope<'a>,
        candidate: &'a Candidate,
        bounds: CallLimits,
        requests: &'a RequestCount,
    ) -> AttemptSpec<'a> {
        AttemptSpec {
            route: &self.name,
            model: &candidate.model,
            configured_model: &candidate.target.model,
            setting_text: &candidate.setting_text,
            timeout: bounds.timeout,
            retries: bounds.retries,
            requests,
            scope,
        }
    }

    /// Returns the candidates that a call may use: all of them, or the one that the caller selects.
    fn selected_candidates(&self, tries: &Tries) -> Result<&[Candidate], Failure> {
        let Some(index) = tries.candidate else { return Ok(&self.candidates) };
        let index = index as usize;
        self.candidates.get(index..=index).ok_or_else(|| {
            let count = self.candidates.len();
            let message = format!(
                "the model route `{}` has no candidate {index}; it has {count}, counted from 0",
                self.name
            );
            Failure::new(code::INVALID, message).with_details(json!({ "candidates": count }))
        })
    }

    /// Returns the timeout and the retries that the caller requests, bounded by the limits of
    /// routes. The defaults are those of the route.
    fn limits(&self, tries: &Tries) -> Result<CallLimits, Failure> {
        let timeout = match tries.timeout_ms {
            Some(0) => {
                let message = "`timeout_ms` of a model call must be 1 or more; leave it out for \
                               the timeout of the route";
                return Err(Failure::new(code::INVALID, message));
            }
            Some(ms) => Duration::from_millis(ms.into()).min(CALL_TIMEOUT),
            None => self.config.timeout,
        };
        let retries = tries.retries.map_or(self.config.retries, |retries| retries.min(MAX_RETRIES));
        Ok(CallLimits { timeout, retries })
    }
}
