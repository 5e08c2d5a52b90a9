//! `[server.webhooks]`: how the ends of runs are reported.

use std::collections::BTreeSet;

use serde::Deserialize;
use wattle_agent_server::Webhooks;
use wattle_agent_server::webhooks::{AllowRule, SigningKey};

use crate::config::ConfigProblem;

/// `[server.webhooks]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhooksConfig {
    /// The environment variable that holds the secret which messages are signed with. They are not
    /// signed without it.
    pub secret_env: Option<String>,
    /// Private and loopback addresses that may be called, such as `http://127.0.0.1:*`.
    pub allow: BTreeSet<String>,
}

impl WebhooksConfig {
    /// What types alone do not say.
    pub(super) fn check(&self, problems: &mut Vec<ConfigProblem>) {
        for rule in &self.allow {
            if let Err(error) = rule.parse::<AllowRule>() {
                problems.push(ConfigProblem {
                    key: "server.webhooks.allow".to_owned(),
                    message: error.to_string(),
                    hint: None,
                });
            }
        }
    }

    /// The settings with their secret.
    ///
    /// # Errors
    ///
    /// Why there is no secret although one is wanted: nobody should take unsigned messages for
    /// signed ones.
    pub fn settings(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<Webhooks, String> {
        let key = |name: &String| {
            let secret = env(name).filter(|secret| !secret.trim().is_empty());
            let secret =
                secret.ok_or_else(|| format!("the environment variable `{name}` is not set"))?;
            SigningKey::new(&secret).map_err(|error| format!("`{name}`: {error}"))
        };
        Ok(Webhooks {
            key: self.secret_env.as_ref().map(key).transpose()?,
            allow: self.allow.iter().filter_map(|rule| rule.parse().ok()).collect(),
            reachable: wattle_net::reachable,
            ..Webhooks::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(toml: &str) -> WebhooksConfig {
        toml::from_str(toml).unwrap()
    }

    fn env(name: &str) -> Option<String> {
        (name == "SECRET").then(|| "a secret of some length".to_owned())
    }

    #[test]
    fn a_secret_that_is_wanted_must_be_there() {
        assert!(config("").settings(&env).unwrap().key.is_none());
        assert!(config("secret_env = 'SECRET'").settings(&env).unwrap().key.is_some());
        let missing = config("secret_env = 'OTHER'").settings(&env).unwrap_err();
        assert!(missing.contains("`OTHER` is not set"), "{missing}");
        let short = config("secret_env = 'SHORT'").settings(&|_| Some("x".into())).unwrap_err();
        assert!(short.contains("`SHORT`"), "{short}");
    }

    #[test]
    fn rules_are_read() {
        let fine = config("allow = ['http://127.0.0.1:*', 'https://*.internal.example']");
        let mut problems = Vec::new();
        fine.check(&mut problems);
        assert!(problems.is_empty());
        assert_eq!(fine.settings(&env).unwrap().allow.len(), 2);
        config("allow = ['127.0.0.1']").check(&mut problems);
        assert_eq!(problems[0].key, "server.webhooks.allow");
    }
}
