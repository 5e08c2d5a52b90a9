//! `[server.webhooks]`: webhooks that report the end of runs.

use std::collections::BTreeSet;

use serde::Deserialize;
use wattle_agent_server::WebhookSettings;
use wattle_agent_server::webhooks::{AllowRule, SigningKey};

use crate::config::ConfigProblem;

/// `[server.webhooks]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhooksConfig {
    /// Environment variable with the secret that signs webhooks. Default: webhooks are not signed.
    pub secret_env: Option<String>,
    /// Private and loopback addresses that webhooks may call, such as `http://127.0.0.1:*`.
    pub allow: BTreeSet<String>,
}

impl WebhooksConfig {
    /// Checks rules that the types do not express.
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

    /// Returns the settings with their secret.
    ///
    /// # Errors
    ///
    /// A message if the configured secret is missing or invalid. Webhooks are not sent unsigned in
    /// this case, because a receiver expects signed webhooks.
    pub fn settings(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<WebhookSettings, String> {
        let key = |name: &String| {
            let secret = env(name).filter(|secret| !secret.trim().is_empty());
            let secret =
                secret.ok_or_else(|| format!("the environment variable `{name}` is not set"))?;
            SigningKey::new(&secret).map_err(|error| format!("`{name}`: {error}"))
        };
        Ok(WebhookSettings {
            signing_key: self.secret_env.as_ref().map(key).transpose()?,
            allow: self.allow.iter().filter_map(|rule| rule.parse().ok()).collect(),
            address_policy: wattle_net::is_address_allowed,
            ..WebhookSettings::default()
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
    fn the_configured_secret_of_webhooks_must_exist() {
        assert!(config("").settings(&env).unwrap().signing_key.is_none());
        assert!(config("secret_env = 'SECRET'").settings(&env).unwrap().signing_key.is_some());
        let missing = config("secret_env = 'OTHER'").settings(&env).unwrap_err();
        assert!(missing.contains("`OTHER` is not set"), "{missing}");
        let short = config("secret_env = 'SHORT'").settings(&|_| Some("x".into())).unwrap_err();
        assert!(short.contains("`SHORT`"), "{short}");
    }

    #[test]
    fn rules_for_allowed_addresses_are_parsed() {
        let fine = config("allow = ['http://127.0.0.1:*', 'https://*.internal.example']");
        let mut problems = Vec::new();
        fine.check(&mut problems);
        assert!(problems.is_empty());
        assert_eq!(fine.settings(&env).unwrap().allow.len(), 2);
        config("allow = ['127.0.0.1']").check(&mut problems);
        assert_eq!(problems[0].key, "server.webhooks.allow");
    }
}
