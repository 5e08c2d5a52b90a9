//! Other names of models: what is asked in place of one that has been retired.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::{ModelConfig, Target};
use crate::error::ConfigError;
use crate::extra::Extra;

/// What is asked in place of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alias {
    /// The model that is asked. It cannot be the name of another alias.
    pub model: String,
    /// The provider whose model is replaced; every provider's without it. The model that is asked
    /// is one of the same provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Fields that are added to requests to it: they replace those of the provider and give way to
    /// those of the route.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// Aliases by the name that they replace.
pub type Aliases = BTreeMap<String, Alias>;

/// What stands for the model of a target, if anything.
pub(crate) fn find<'a>(aliases: &'a Aliases, target: &Target) -> Option<&'a Alias> {
    let alias = aliases.get(&target.model)?;
    let holds = alias.provider.as_ref().is_none_or(|provider| *provider == target.provider);
    holds.then_some(alias)
}

/// Finds aliases that lead nowhere. There are no chains: each line names its model.
pub(crate) fn check(config: &ModelConfig) -> Result<(), ConfigError> {
    for (name, alias) in &config.aliases {
        if let Some(reason) = problem(config, alias) {
            return Err(ConfigError::Alias { name: name.clone(), reason });
        }
    }
    Ok(())
}

fn problem(config: &ModelConfig, alias: &Alias) -> Option<String> {
    let Alias { model, provider, .. } = alias;
    if model.trim().is_empty() {
        return Some("`model` is empty; name the model that is asked instead".to_owned());
    }
    if config.aliases.contains_key(model) {
        return Some(format!(
            "`{model}` is an alias itself; name the model that is asked in the end"
        ));
    }
    let unknown = provider.as_ref().filter(|name| !config.providers.contains_key(*name))?;
    Some(format!("there is no provider `{unknown}`; correct `provider` or remove it"))
}
