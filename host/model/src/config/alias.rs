//! Aliases replace model names, for example those of retired models.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::{ModelConfig, ModelRef};
use crate::error::ConfigError;
use crate::extra::Extra;

/// A replacement for a model name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alias {
    /// The model that is called instead. This model cannot have an alias itself.
    pub model: String,
    /// The provider to whose models the alias applies; default: every provider. The replacement is
    /// a model of the same provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Extra fields of requests to the replacement. A field replaces the provider's field of the
    /// same name; a field of the route replaces it in turn.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// Aliases by the name that they replace.
pub type Aliases = BTreeMap<String, Alias>;

/// Returns the alias that applies to a model of a route; `None` if no alias applies.
pub(crate) fn find<'a>(aliases: &'a Aliases, target: &ModelRef) -> Option<&'a Alias> {
    let alias = aliases.get(&target.model)?;
    let holds = alias.provider.as_ref().is_none_or(|provider| *provider == target.provider);
    holds.then_some(alias)
}

/// Checks that each alias has a model and a known provider. Chains of aliases are refused, so that
/// each alias names the model that the host calls.
pub(crate) fn check(config: &ModelConfig) -> Result<(), ConfigError> {
    for (name, alias) in &config.aliases {
        if let Some(reason) = invalid_reason(config, alias) {
            return Err(ConfigError::Alias { name: name.clone(), reason });
        }
    }
    Ok(())
}

fn invalid_reason(config: &ModelConfig, alias: &Alias) -> Option<String> {
    let Alias { model, provider, .. } = alias;
    if model.trim().is_empty() {
        return Some("`model` is empty; name the model that is called instead".to_owned());
    }
    if config.aliases.contains_key(model) {
        return Some(format!(
            "`{model}` is an alias itself; name the model that is called in the end"
        ));
    }
    let unknown = provider.as_ref().filter(|name| !config.providers.contains_key(*name))?;
    Some(format!("there is no provider `{unknown}`; correct `provider` or remove it"))
}
