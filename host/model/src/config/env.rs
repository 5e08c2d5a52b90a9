//! Environment variables that replace models.

use crate::config::ModelConfig;

/// Replaces each model whose environment variable is set. Returns one log sentence per replacement.
/// Values are trimmed; an empty variable counts as unset.
pub(crate) fn apply_model_env(
    config: &mut ModelConfig,
    env: &dyn Fn(&str) -> Option<String>,
) -> Vec<String> {
    let mut told = Vec::new();
    for (name, route) in &mut config.routes {
        let first = (&mut route.model, &route.model_env);
        let others =
            route.fallbacks.iter_mut().map(|target| (&mut target.model, &target.model_env));
        for (model, variable) in std::iter::once(first).chain(others) {
            let Some(variable) = variable else { continue };
            let named = env(variable).map(|text| text.trim().to_owned());
            let Some(named) = named.filter(|text| !text.is_empty()) else { continue };
            told.push(format!(
                "route `{name}` calls `{named}` instead of `{model}`, because the environment \
                 variable `{variable}` is set"
            ));
            *model = named;
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_variable_replaces_a_model_unless_it_is_empty() {
        let mut config: ModelConfig = serde_json::from_value(json!({
            "routes": {
                "chat": {
                    "provider": "p", "model": "a", "model_env": "FIRST",
                    "fallbacks": [
                        { "provider": "p", "model": "b", "model_env": "SECOND" },
                        { "provider": "p", "model": "c" },
                        { "provider": "p", "model": "d", "model_env": "EMPTY" },
                        { "provider": "p", "model": "e", "model_env": "ABSENT" },
                    ],
                },
            },
        }))
        .unwrap();
        let env = |name: &str| match name {
            "FIRST" => Some(" new-a\n".to_owned()),
            "SECOND" => Some("new-b".to_owned()),
            "EMPTY" => Some(" ".to_owned()),
            _ => None,
        };
        let told = apply_model_env(&mut config, &env);
        assert_eq!(told.len(), 2, "{told:?}");
        let first = "`new-a` instead of `a`, because the environment variable `FIRST` is set";
        assert!(told[0].contains(first), "{told:?}");
        let models: Vec<String> =
            config.routes["chat"].models().into_iter().map(|target| target.model).collect();
        assert_eq!(models, ["new-a", "new-b", "c", "d", "e"]);
    }
}
