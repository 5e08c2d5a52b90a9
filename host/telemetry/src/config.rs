//! Settings of the `[telemetry]` table, with all secrets replaced by their values.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use crate::error::ConfigError;

/// Path of traces below the base URL of an OTLP service.
const TRACES: &str = "/v1/traces";

/// Settings of traces and metrics.
#[derive(Clone, Debug)]
pub struct TelemetryConfig {
    /// Service that receives the spans; none by default. Metrics are always recorded.
    pub otlp: Option<OtlpConfig>,
    /// Whether spans include the inputs and outputs of models and tools; true by default. If false,
    /// spans have only names, times, sizes and counts.
    pub content: bool,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self { otlp: None, content: true }
    }
}

/// A service that receives traces by OTLP over HTTP.
#[derive(Clone, Debug)]
pub struct OtlpConfig {
    /// URL that receives traces, including its path.
    pub url: Url,
    /// Headers of every request.
    pub headers: BTreeMap<String, SecretString>,
}

impl OtlpConfig {
    /// Creates the settings of a service from its base URL, such as
    /// `https://langfuse.example/api/public/otel`. Appends `/v1/traces` unless the URL already ends
    /// with this path.
    ///
    /// # Errors
    ///
    /// Returns [`ConfigError::Url`] if `address` is not an HTTP URL.
    pub fn new(address: &str) -> Result<Self, ConfigError> {
        let problem = || ConfigError::Url { url: address.to_owned() };
        let mut url: Url = address.parse().map_err(|_| problem())?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(problem());
        }
        let path = url.path().trim_end_matches('/').to_owned();
        if !path.ends_with(TRACES) {
            url.set_path(&format!("{path}{TRACES}"));
        }
        Ok(Self { url, headers: BTreeMap::new() })
    }

    /// Adds the `authorization` header with the public and the secret key of a Langfuse project.
    pub fn with_keys(mut self, public: &str, secret: &SecretString) -> Self {
        let pair = STANDARD.encode(format!("{public}:{}", secret.expose_secret()));
        let header = SecretString::from(format!("Basic {pair}"));
        self.headers.insert("authorization".to_owned(), header);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_path_is_appended_unless_present() {
        let cases = [
            ("https://a.example/api/public/otel", "https://a.example/api/public/otel/v1/traces"),
            ("https://a.example/otel/", "https://a.example/otel/v1/traces"),
            ("http://a.example:4318", "http://a.example:4318/v1/traces"),
            ("http://a.example/v1/traces", "http://a.example/v1/traces"),
        ];
        for (address, expected) in cases {
            assert_eq!(OtlpConfig::new(address).unwrap().url.as_str(), expected);
        }
        assert!(OtlpConfig::new("a.example:4318").is_err());
    }

    #[test]
    fn keys_become_a_redacted_header() {
        let config = OtlpConfig::new("http://a.example").unwrap();
        let config = config.with_keys("pk", &SecretString::from("sk"));
        assert_eq!(config.headers["authorization"].expose_secret(), "Basic cGs6c2s=");
        assert!(!format!("{config:?}").contains("cGs6"));
    }
}
