//! One route: its candidates, called one after the other until one returns a completion.

mod asked;
mod check;
mod image;
mod lead;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{Completion, CompletionRequest, Tries};
use wattle_run::ports::model::RouteInfo;

use crate::chat::{Chat, Pictures};
use crate::config::{Aliases, MAX_RETRIES, RouteConfig};
use crate::error::ConfigError;
use crate::extra::Extra;
use crate::provider::{Aim, Ask, Asks, Format, Provider, Providers, Reply};
use crate::route::asked::Asked;
use crate::route::lead::{Lead, Place};
use crate::sink::Sink;
use crate::structured;
use crate::structured::shape::Shape;

/// Timeout of one call with all its attempts, fallbacks and repairs: the default timeout of a node.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_millis(wattle_run::limit::NODE_TIMEOUT_MS);

/// A route with the providers of its candidates.
#[derive(Debug)]
pub(crate) struct Route {
    name: String,
    config: RouteConfig,
    leads: Vec<Lead>,
}

/// The owner of a route. Messages about the route name settings that its owner can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The operator, in `wattle.toml`.
    Operator,
    /// A tenant.
    Tenant,
}

/// The timeout and the retries of each candidate of a call.
#[derive(Clone, Copy)]
struct Bounds {
    timeout: Duration,
    retries: u32,
}

/// A call of one candidate.
pub(crate) struct Call<'a> {
    pub(crate) provider: &'a Provider,
    pub(crate) aim: Aim<'a>,
    pub(crate) chat: Chat<'a>,
    pub(crate) sink: &'a Sink<'a>,
    request: &'a CompletionRequest,
    route: &'a RouteConfig,
    extra: &'a Extra,
}

impl Route {
    /// Creates a route from its settings.
    pub(crate) fn new(
        name: &str,
        config: RouteConfig,
        providers: &Providers,
        aliases: &Aliases,
        owner: Owner,
    ) -> Result<Self, ConfigError> {
        check::check(name, &config)?;
        let mut leads = Vec::new();
        for (index, target) in config.targets().into_iter().enumerate() {
            let provider = providers
                .get(&target.provider)
                .ok_or_else(|| check::unknown(name, &target.provider, providers))?;
            let place = Place { owner, index };
            leads.push(Lead::new(name, Arc::clone(provider), target, aliases, place)?);
        }
        Ok(Self { name: name.to_owned(), config, leads })
    }

    /// Returns the information about the route that guests can read.
    pub(crate) fn info(&self) -> RouteInfo {
        RouteInfo {
            provider: self.config.provider.clone(),
            model: self.config.model.clone(),
            has_fallback: !self.config.fallbacks.is_empty(),
            candidates: self.leads.len() as u32,
        }
    }

    /// Returns the provider of each candidate.
    pub(crate) fn providers(&self) -> impl Iterator<Item = &Provider> {
        self.leads.iter().map(|lead| lead.provider.as_ref())
    }

    /// Returns one sentence for each candidate whose model an alias replaces.
    pub(crate) fn replaced(&self) -> impl Iterator<Item = String> {
        self.leads.iter().filter_map(|lead| {
            let (name, model) = (&lead.target.model, &lead.model);
            (name != model).then(|| {
                format!(
                    "route `{}` calls `{model}` for `{name}`, as configured in `[model.aliases]`",
                    self.name
                )
            })
        })
    }

    /// Calls the candidates one after the other until one returns a completion or emits a delta.
    pub(crate) async fn ask(
        &self,
        request: &CompletionRequest,
        pictures: &Pictures,
        sink: &Sink<'_>,
    ) -> Result<Completion, Failure> {
        let mut asked = Asked::new(&self.name);
        let answer = self.ask_each(request, pictures, sink, &mut asked);
        match timeout(CALL_TIMEOUT, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(asked.out_of_time(CALL_TIMEOUT)),
        }
    }

    async fn ask_each(
        &self,
        request: &CompletionRequest,
        pictures: &Pictures,
        sink: &Sink<'_>,
        asked: &mut Asked<'_>,
    ) -> Result<Completion, Failure> {
        let shape = request.response_schema.as_ref().map(Shape::new).transpose()?;
        let bounds = self.bounds(&request.tries)?;
        for lead in self.chosen(&request.tries)? {
            let asks = Asks::default();
            let aim = self.aim(lead, bounds, &asks);
            let answer = self.ask_one(lead, aim, request, pictures, shape.as_ref(), sink).await;
            match answer {
                Ok(mut completion) => {
                    completion.attempts = asked.answered(lead, &asks);
                    return Ok(completion);
                }
                Err(failure) => asked.failed(lead, &asks, failure, sink.begun())?,
            }
        }
        Err(asked.all_failed())
    }

    async fn ask_one(
        &self,
        lead: &Lead,
        aim: Aim<'_>,
        request: &CompletionRequest,
        pictures: &Pictures,
        shape: Option<&Shape<'_>>,
        sink: &Sink<'_>,
    ) -> Result<Completion, Failure> {
        let provider = lead.provider.as_ref();
        let chat = Chat::new(request, pictures, provider.kind())?;
        let (route, extra) = (&self.config, &lead.extra);
        let call = Call { provider, aim, chat, sink, request, route, extra };
        match shape {
            Some(shape) => structured::complete(&call, shape).await,
            None => Ok(call.turn(&call.chat, Format::Free).await?.completion(None)),
        }
    }

    fn aim<'a>(&'a self, lead: &'a Lead, bounds: Bounds, asks: &'a Asks) -> Aim<'a> {
        Aim {
            route: &self.name,
            model: &lead.model,
            name: &lead.target.model,
            setting: &lead.setting,
            timeout: bounds.timeout,
            retries: bounds.retries,
            asks,
        }
    }

    /// Returns the candidates that a call may use: all of them, or the one that the caller selects.
    fn chosen(&self, tries: &Tries) -> Result<&[Lead], Failure> {
        let Some(index) = tries.candidate else { return Ok(&self.leads) };
        let index = index as usize;
        self.leads.get(index..=index).ok_or_else(|| {
            let count = self.leads.len();
            let message = format!(
                "the model route `{}` has no candidate {index}; it has {count}, counted from 0",
                self.name
            );
            Failure::new(code::INVALID, message).with_details(json!({ "candidates": count }))
        })
    }

    /// Returns the timeout and retries of the caller, within the limits of routes; by default those
    /// of the route.
    fn bounds(&self, tries: &Tries) -> Result<Bounds, Failure> {
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
        Ok(Bounds { timeout, retries })
    }
}

impl Call<'_> {
    /// Returns whether the model gets a repair turn for an invalid document.
    pub(crate) fn repairs(&self) -> bool {
        self.request.tries.repair.unwrap_or(true)
    }

    /// Sends one turn, with its retries.
    pub(crate) async fn turn(&self, chat: &Chat<'_>, format: Format<'_>) -> Result<Reply, Failure> {
        let (request, route, extra) = (self.request, self.route, self.extra);
        let ask = Ask { chat, request, route, format, extra };
        self.provider.turn(self.aim, &ask, self.sink).await
    }
}
