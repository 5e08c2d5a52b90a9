//! Candidates of a route.

use std::sync::Arc;

use wattle_graph::failure::Failure;
use wattle_graph::llm::Attempt;

use crate::config::{Alias, Aliases, ModelRef, find_alias};
use crate::error::ConfigError;
use crate::extra::{self, Extra};
use crate::provider::{Provider, RequestCount};
use crate::route::check::invalid_field;

/// A candidate of a route.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) provider: Arc<Provider>,
    /// The provider and the model as the route configures them.
    pub(super) target: ModelRef,
    /// The model that is called: the model of the route, or its replacement by an alias.
    pub(super) model: String,
    /// The merged extra fields of the provider, the alias and the route.
    pub(super) extra: Extra,
    /// The setting that names the model, for messages.
    pub(super) setting_text: String,
}

/// The owner of a route. Messages about the route name settings that its owner can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteOwner {
    /// The operator, in `wattle.toml`.
    Operator,
    /// A tenant.
    Tenant,
}

/// The position of a candidate in the routes of an owner.
#[derive(Clone, Copy, Debug)]
pub(super) struct CandidatePosition {
    /// The owner of the route.
    pub(super) owner: RouteOwner,
    /// 0 for the first model, else the number of the fallback.
    pub(super) index: usize,
}

impl Candidate {
    pub(super) fn new(
        route: &str,
        provider: Arc<Provider>,
        target: ModelRef,
        aliases: &Aliases,
        place: CandidatePosition,
    ) -> Result<Self, ConfigError> {
        if target.model.trim().is_empty() {
            return invalid_field(route, "model", "name a model of the provider".to_owned());
        }
        if let Some(reason) = extra::invalid_reason(provider.kind(), &target.extra) {
            return invalid_field(route, "extra", reason);
        }
        let alias = find_alias(aliases, &target);
        let mut extra = provider.extra().clone();
        if let Some(alias) = alias {
            check_extra(route, &provider, &target, alias)?;
            extra = extra::merge(&extra, &alias.extra);
        }
        let extra = extra::merge(&extra, &target.extra);
        let setting_text = setting_text(route, &target, alias, place);
        let model = alias.map_or(&target.model, |Alias { model, .. }| model).clone();
        Ok(Self { provider, target, model, extra, setting_text })
    }

    /// Returns the attempt record of this candidate.
    pub(super) fn to_attempt(&self, requests: &RequestCount, error: Option<Failure>) -> Attempt {
        let ModelRef { provider, model, .. } = &self.target;
        Attempt { provider: provider.clone(), model: model.clone(), tries: requests.count(), error }
    }
}

/// Checks that the provider accepts the extra fields of an alias.
fn check_extra(
    route: &str,
    provider: &Provider,
    target: &ModelRef,
    alias: &Alias,
) -> Result<(), ConfigError> {
    let Some(problem) = extra::invalid_reason(provider.kind(), &alias.extra) else { return Ok(()) };
    let reason = format!(
        "`extra` cannot be added to requests to provider `{}` (route `{route}`): {problem}; name \
         with `provider` the provider whose models the alias replaces",
        target.provider
    );
    Err(ConfigError::Alias { name: target.model.clone(), reason })
}

/// Returns the text by which messages name the setting of a candidate's model.
fn setting_text(
    route: &str,
    target: &ModelRef,
    alias: Option<&Alias>,
    place: CandidatePosition,
) -> String {
    let own = match (place.owner, place.index) {
        (RouteOwner::Tenant, 0) => return format!("`model` of the tenant's route `{route}`"),
        (RouteOwner::Tenant, _) => {
            return format!("`fallback_model` of the tenant's route `{route}`");
        }
        (RouteOwner::Operator, 0) => format!("`model` under `[model.routes.{route}]`"),
        (RouteOwner::Operator, number) => {
            format!("`model` of fallback {number} under `[model.routes.{route}]`")
        }
    };
    let variable = target.model_env.as_ref();
    let variable = variable.map(|name| format!(" or the environment variable `{name}`"));
    let own = own + &variable.unwrap_or_default();
    let name = &target.model;
    match alias {
        Some(_) => format!("`model` of the entry `{name}` under `[model.aliases]`, or {own}"),
        None => format!("{own}, or add an entry for `{name}` to `[model.aliases]`"),
    }
}
