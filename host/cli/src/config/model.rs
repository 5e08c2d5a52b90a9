//! Rules of `[model]`.

use figment::value::Value;
use wattle_graph::suggest;

use crate::config::collect::toml_key;
use crate::config::{Config, ConfigProblem};

/// Checks that the providers of all routes exist.
pub(super) fn check_providers(config: &Config, problems: &mut Vec<ConfigProblem>) {
    // The table as it is written, because a provider with a problem of its own exists.
    let table = config.sections.get("model").and_then(Value::as_dict);
    let providers = table.and_then(|table| table.get("providers")).and_then(Value::as_dict);
    let names: Vec<&str> = providers.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    for (route, settings) in &config.model.routes {
        for (index, model) in settings.models().iter().enumerate() {
            let provider = model.provider.as_str();
            if names.contains(&provider) {
                continue;
            }
            let key = match index.checked_sub(1) {
                None => "provider".to_owned(),
                Some(index) => format!("fallbacks[{index}].provider"),
            };
            problems.push(ConfigProblem {
                key: format!("model.routes.{}.{key}", toml_key(route)),
                message: format!("there is no table `[model.providers.{}]`", toml_key(provider)),
                hint: Some(suggest::hint(provider, "providers", names.iter().copied())),
            });
        }
    }
}
