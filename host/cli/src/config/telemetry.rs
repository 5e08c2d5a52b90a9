//! `[telemetry]`: the destination of traces.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;
use wattle_telemetry::{OtlpConfig, TelemetryConfig};

use crate::config::ConfigProblem;
use crate::config::secret_placeholder::{FindSecret, expand_secrets};

/// `[telemetry]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryTable {
    /// URL of a service that receives traces by OTLP over HTTP. Without this setting, no traces are
    /// sent.
    pub otlp: Option<String>,
    /// Headers of every request; the placeholder `{{secret:NAME}}` is replaced.
    pub headers: BTreeMap<String, String>,
    /// Environment variable with the public key of Langfuse. The public and the secret key form the
    /// header that Langfuse requires.
    pub public_key_env: Option<String>,
    /// Environment variable with the secret key of Langfuse.
    pub secret_key_env: Option<String>,
    /// Whether traces contain the inputs and outputs of models and tools. Default: true.
    pub content: bool,
}

impl Default for TelemetryTable {
    fn default() -> Self {
        Self {
            otlp: None,
            headers: BTreeMap::new(),
            public_key_env: None,
            secret_key_env: None,
            content: true,
        }
    }
}

impl TelemetryTable {
    /// Checks rules that the types do not express.
    pub(super) fn check(&self, problems: &mut Vec<ConfigProblem>) {
        let mut add = |key: &str, message: String, hint: &str| {
            problems.push(ConfigProblem {
                key: format!("telemetry.{key}"),
                message,
                hint: Some(hint.to_owned()),
            });
        };
        if let Some(address) = &self.otlp
            && OtlpConfig::new(address).is_err()
        {
            let message = format!("`{address}` is not an HTTP URL");
            add("otlp", message, "write for example `https://langfuse.example/api/public/otel`");
        }
        if self.public_key_env.is_some() != self.secret_key_env.is_some() {
            let message = "the public and the secret key are required together".to_owned();
            add(
                "public_key_env",
                message,
                "set both `public_key_env` and `secret_key_env`, or neither",
            );
        }
    }

    /// Returns the settings with their secrets. If a secret is missing, adds a warning and returns
    /// settings that send no traces.
    pub fn settings(
        &self,
        secret: FindSecret<'_>,
        env: &dyn Fn(&str) -> Option<String>,
        warnings: &mut Vec<String>,
    ) -> TelemetryConfig {
        let otlp = self.otlp.as_ref().and_then(|address| {
            let found = self.service(address, secret, env);
            found.map_err(|reason| warnings.push(format!("no traces are sent: {reason}"))).ok()
        });
        TelemetryConfig { otlp, content: self.content }
    }

    fn service(
        &self,
        address: &str,
        secret: FindSecret<'_>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<OtlpConfig, String> {
        let mut otlp = OtlpConfig::new(address).map_err(|error| error.to_string())?;
        for (name, text) in &self.headers {
            let value = SecretString::from(expand_secrets(text, secret)?);
            otlp.headers.insert(name.to_ascii_lowercase(), value);
        }
        if let (Some(public), Some(private)) = (&self.public_key_env, &self.secret_key_env) {
            let value = |name: &str| {
                let found = env(name).filter(|value| !value.is_empty());
                found.ok_or_else(|| format!("the environment variable `{name}` is not set"))
            };
            otlp = otlp.with_keys(&value(public)?, &SecretString::from(value(private)?));
        }
        Ok(otlp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(toml: &str) -> (TelemetryConfig, Vec<String>) {
        let table: TelemetryTable = toml::from_str(toml).unwrap();
        let mut warnings = Vec::new();
        let env = |name: &str| (name == "PUBLIC" || name == "SECRET").then(|| "k".to_owned());
        let settings = table.settings(&|name| Ok(name.to_lowercase()), &env, &mut warnings);
        (settings, warnings)
    }

    #[test]
    fn keys_and_headers_are_filled_in() {
        let keys = "public_key_env = 'PUBLIC'\nsecret_key_env = 'SECRET'";
        let headers = "headers = { X-Key = '{{secret:A}}' }";
        let (found, warnings) = settings(&format!("otlp = 'http://a/otel'\n{keys}\n{headers}"));
        let otlp = found.otlp.unwrap();
        assert_eq!(otlp.url.as_str(), "http://a/otel/v1/traces");
        assert_eq!(otlp.headers.keys().collect::<Vec<_>>(), ["authorization", "x-key"]);
        assert!(found.content && warnings.is_empty());
    }

    #[test]
    fn a_missing_key_is_a_warning_and_not_an_error() {
        let (found, warnings) = settings(
            "otlp = 'http://a'\npublic_key_env = 'PUBLIC'\nsecret_key_env = 'NO'\ncontent = false",
        );
        assert!(found.otlp.is_none() && !found.content);
        assert!(warnings[0].contains("`NO` is not set"), "{warnings:?}");
        assert!(settings("").0.otlp.is_none());
    }

    #[test]
    fn incomplete_settings_are_refused() {
        let table: TelemetryTable =
            toml::from_str("otlp = 'nowhere'\npublic_key_env = 'A'").unwrap();
        let mut problems = Vec::new();
        table.check(&mut problems);
        assert_eq!(problems.len(), 2);
    }
}
