//! The `[model]` table of `wattle.toml`.

mod alias;
mod duration;
mod env;
mod provider_kind;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wattle_run::ports::statistics::ModelPrices;

pub use crate::config::alias::{Alias, Aliases};
pub(crate) use crate::config::alias::{check as check_aliases, find as find_alias};
pub(crate) use crate::config::env::apply_model_env;
pub use crate::config::provider_kind::ProviderKind;
use crate::extra::Extra;

/// Default timeout of a route: enough for an unstreamed response of one page.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// Default retries of each model of a route, as in the official clients.
pub const DEFAULT_RETRIES: u32 = 2;

/// Maximum configurable retries of each model of a route. For longer outages, configure fallbacks.
pub const MAX_RETRIES: u32 = 10;

/// Timeout of one call with all its attempts, fallbacks and repairs: the default timeout of a node.
/// No timeout of a route is longer.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_millis(wattle_run::limit::NODE_TIMEOUT_MS);

/// The `[model]` table: providers, routes and aliases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// Providers by name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// Routes by name.
    pub routes: BTreeMap<String, RouteConfig>,
    /// Replacement models by the model name that they replace. Aliases apply to all routes,
    /// including tenant routes.
    pub aliases: Aliases,
    /// Prices of a million tokens by model name, from which the host computes costs.
    pub prices: ModelPrices,
    /// Whether a tenant route may reach a private or loopback address; default `false`.
    pub tenant_private: bool,
}

/// How the host requests output that matches a response schema. The host validates the output in
/// every mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StructuredMode {
    /// The request has the JSON Schema, and the provider constrains decoding to it.
    #[default]
    Schema,
    /// The provider constrains decoding to a JSON object. A system message has the schema.
    JsonObject,
    /// The provider decodes without constraints. A system message has the schema.
    Prompt,
}

/// The settings of one provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    /// The wire format.
    pub kind: ProviderKind,
    /// The base URL; default: the official URL of the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The name of the environment variable with the API key. Without this setting, requests have
    /// no key, as for a local server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// The strongest structured mode that the provider supports; default `schema`. If the provider
    /// rejects a schema, the host uses a weaker mode for that call.
    #[serde(default)]
    pub structured: StructuredMode,
    /// Whether responses are streamed; default `true`.
    #[serde(default = "default_stream", skip_serializing_if = "is_true")]
    pub stream: bool,
    /// Fields that the host adds to the body of every request; kind `openai` only.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
    /// Headers that the host adds to every request, such as those of a gateway.
    /// [`Routes::open`](crate::Routes::open) replaces the secret placeholders in their values. A
    /// tenant route that has its own key or base URL does not send them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

/// The settings of one route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    /// The provider of the first model.
    pub provider: String,
    /// The first model, by its name at the provider.
    pub model: String,
    /// The name of an environment variable. If the variable is set and not empty, its value
    /// replaces `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_env: Option<String>,
    /// Timeout of the first byte of a response and of the time between two chunks. For a response
    /// that is not streamed and for images, the timeout of the whole response. Default
    /// [`DEFAULT_TIMEOUT`].
    #[serde(default = "default_timeout", with = "duration")]
    pub timeout: Duration,
    /// Maximum retries of each model after transient errors; default [`DEFAULT_RETRIES`].
    #[serde(default = "default_retries")]
    pub retries: u32,
    /// Sampling temperature of calls that set none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Maximum tokens of the output, for calls that set none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Fields that the host adds to requests to the first model. A field replaces the provider's
    /// field of the same name.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
    /// Fallback models. The host calls the fallback models in this order, each when all models
    /// before it have failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<ModelRef>,
}

/// A model of a route: the first one or a fallback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRef {
    /// The name of the provider.
    pub provider: String,
    /// The name of the model at the provider, like [`RouteConfig::model`].
    pub model: String,
    /// The name of an environment variable that replaces the model, like
    /// [`RouteConfig::model_env`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_env: Option<String>,
    /// Fields that the host adds to requests to the model, like [`RouteConfig::extra`].
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl RouteConfig {
    /// Returns all models of the route in the order in which they are called.
    pub fn models(&self) -> Vec<ModelRef> {
        let first = ModelRef {
            provider: self.provider.clone(),
            model: self.model.clone(),
            model_env: self.model_env.clone(),
            extra: self.extra.clone(),
        };
        std::iter::once(first).chain(self.fallbacks.iter().cloned()).collect()
    }
}

fn default_timeout() -> Duration {
    DEFAULT_TIMEOUT
}

fn default_retries() -> u32 {
    DEFAULT_RETRIES
}

fn default_stream() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_true(value: &bool) -> bool {
    *value
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_run::ports::statistics::ModelPrice;

    use super::*;

    fn parse(value: serde_json::Value) -> Result<ModelConfig, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn the_documented_table_is_read() {
        let config = parse(json!({
            "providers": {
                "openai": {
                    "kind": "openai", "base_url": "https://api.openai.com/v1/",
                    "key_env": "OPENAI_API_KEY", "structured": "json-object",
                    "stream": false, "extra": { "thinking": { "type": "disabled" } },
                },
            },
            "routes": {
                "chat": {
                    "provider": "openai", "model": "gpt-4o-mini", "timeout": "1500ms",
                    "retries": 1, "temperature": 0.0, "max_output_tokens": 4096,
                    "fallbacks": [{
                        "provider": "gemini", "model": "gemini-2.5-flash",
                        "model_env": "CHAT_FALLBACK_MODEL",
                    }],
                },
            },
            "aliases": { "gpt-4o-mini": { "model": "gpt-5-mini", "provider": "openai" } },
            "prices": { "gpt-5-mini": { "input": 0.25, "output": 2.0 } },
        }))
        .unwrap();
        assert_eq!(config.providers["openai"].structured, StructuredMode::JsonObject);
        assert!(!config.providers["openai"].stream);
        assert_eq!(config.providers["openai"].extra["thinking"]["type"], "disabled");
        assert_eq!(config.routes["chat"].timeout, Duration::from_millis(1500));
        assert_eq!(config.routes["chat"].models()[1].model, "gemini-2.5-flash");
        assert_eq!(config.aliases["gpt-4o-mini"].model, "gpt-5-mini");
        assert_eq!(config.prices["gpt-5-mini"], ModelPrice { input: 0.25, output: 2.0 });
        let again = parse(serde_json::to_value(&config).unwrap()).unwrap();
        assert_eq!(again, config);
    }

    #[test]
    fn unknown_keys_and_bad_durations_are_refused() {
        let unknown = parse(json!({ "providers": { "a": { "kind": "openai", "key": "x" } } }));
        assert!(unknown.unwrap_err().contains("key"));
        let duration = parse(json!({
            "routes": { "a": { "provider": "p", "model": "m", "timeout": "soon" } }
        }));
        assert!(duration.unwrap_err().contains("`soon` is not a duration"));
    }
}
