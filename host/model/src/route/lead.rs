//! Candidates of a route.

use std::sync::Arc;

use wattle_graph::failure::Failure;
use wattle_graph::llm::Attempt;

use crate::config::{Alias, Aliases, Target, find_alias};
use crate::error::ConfigError;
use crate::extra::{self, Extra};
use crate::provider::{Asks, Provider};
use crate::route::Owner;
use crate::route::check::wrong;

/// A candidate of a route.
#[derive(Debug)]
pub(super) struct Lead {
    pub(super) provider: Arc<Provider>,
    /// The provider and the model as the route configures them.
    pub(super) target: Target,
    /// The model that is called: that of the route, or the replacement of an alias.
    pub(super) model: String,
    /// The merged extra fields of the provider, the alias and the route.
    pub(super) extra: Extra,
    /// The setting that names the model, for messages.
    pub(super) setting: String,
}

/// The position of a candidate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The owner of the route.
    pub(super) owner: Owner,
    /// 0 for the first model, else the number of the fallback.
    pub(super) index: usize,
}

impl Lead {
    pub(super) fn new(
        route: &str,
        provider: Arc<Provider>,
        target: Target,
        aliases: &Aliases,
        place: Place,
    ) -> Result<Self, ConfigError> {
        if target.model.trim().is_empty() {
            return wrong(route, "model", "name a model of the provider".to_owned());
        }
        if let Some(reason) = extra::problem(provider.kind(), &target.extra) {
            return wrong(route, "extra", reason);
        }
        let alias = find_alias(aliases, &target);
        let mut extra = provider.extra().clone();
        if let Some(alias) = alias {
            check_extra(route, &provider, &target, alias)?;
            extra = extra::joined(&extra, &alias.extra);
        }
        let extra = extra::joined(&extra, &target.extra);
        let setting = setting(route, &target, alias, place);
        let model = alias.map_or(&target.model, |Alias { model, .. }| model).clone();
        Ok(Self { provider, target, model, extra, setting })
    }

    /// Returns the attempt record of this candidate.
    pub(super) fn attempt(&self, asks: &Asks, error: Option<Failure>) -> Attempt {
        let Target { provider, model, .. } = &self.target;
        Attempt { provider: provider.clone(), model: model.clone(), tries: asks.count(), error }
    }
}

/// Checks that the provider accepts the extra fields of an alias.
fn check_extra(
    route: &str,
    provider: &Provider,
    target: &Target,
    alias: &Alias,
) -> Result<(), ConfigError> {
    let Some(problem) = extra::problem(provider.kind(), &alias.extra) else { return Ok(()) };
    let reason = format!(
        "`extra` cannot be added to requests to provider `{}` (route `{route}`): {problem}; name \
         with `provider` the provider whose models the alias replaces",
        target.provider
    );
    Err(ConfigError::Alias { name: target.model.clone(), reason })
}

/// Returns the setting that names the model of a candidate.
fn setting(route: &str, target: &Target, alias: Option<&Alias>, place: Place) -> String {
    let own = match (place.owner, place.index) {
        (Owner::Tenant, 0) => return format!("`model` of the tenant's route `{route}`"),
        (Owner::Tenant, _) => return format!("`fallback_model` of the tenant's route `{route}`"),
        (Owner::Operator, 0) => format!("`model` under `[model.routes.{route}]`"),
        (Owner::Operator, number) => {
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
