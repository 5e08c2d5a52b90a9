//! The `[model]` table of `wattle.toml`.

mod alias;
mod duration;
mod env;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use crate::config::alias::{Alias, Aliases};
pub(crate) use crate::config::alias::{check as check_aliases, find as find_alias};
pub(crate) use crate::config::env::read_models;
use crate::extra::Extra;

/// Longest wait for one answer where a route says nothing: long enough for a page of text.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// Retries where a route says nothing: as many as the official clients.
pub const DEFAULT_RETRIES: u32 = 2;

/// Most retries that a route may ask for: more than this is an outage, which fallbacks are for.
pub const MAX_RETRIES: u32 = 10;

/// Providers and the routes that lead to them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// Providers by name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// Routes by name.
    pub routes: BTreeMap<String, RouteConfig>,
    /// What is asked in place of a model, by the model's name; for all routes, tenants' included.
    pub aliases: Aliases,
    /// Whether a tenant's route may lead to a private or loopback address.
    pub tenant_private: bool,
}

/// The wire format that a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// OpenAI chat completions; with a `base_url` also DeepSeek, Ollama, vLLM and many more.
    Openai,
    /// Google Gemini `generateContent`.
    Gemini,
    /// Anthropic messages.
    Anthropic,
}

/// How an answer of a wanted shape is asked for. Whatever the rung, the answer is validated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Structured {
    /// The provider is given the JSON Schema and decodes by it.
    #[default]
    Schema,
    /// The provider promises some JSON object; the schema stands in a system message.
    JsonObject,
    /// Only a system message asks for it.
    Prompt,
}

/// One provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    /// Its wire format.
    pub kind: ProviderKind,
    /// Where it is; the official address of its kind without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The environment variable that holds the key; without it no key is sent, as for a local
    /// server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// The strongest way it knows to answer in a wanted shape; `schema` without it. A provider
    /// that refuses a particular schema is asked again one rung lower.
    #[serde(default)]
    pub structured: Structured,
    /// Whether answers are asked for piece by piece; they are without it.
    #[serde(default = "default_stream", skip_serializing_if = "is_true")]
    pub stream: bool,
    /// Fields that are added to every request, for what is a provider's own; kind `openai` only.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
    /// Headers that are added to every request, for gateways; what a value says of secrets is filled in by
    /// [`Routes::open`](crate::Routes::open). A tenant's own provider has none of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

/// One route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    /// The provider that is asked first.
    pub provider: String,
    /// Its model. For Gemini and Anthropic a last part such as `-low` or `-high` is not part of
    /// the name: it sets the effort that the model spends on reasoning.
    pub model: String,
    /// The environment variable that replaces `model` if it is set and not empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_env: Option<String>,
    /// Longest wait for a sign of life: for the first byte of the answer and between two that
    /// follow. For a provider that does not stream and for pictures, the longest wait for the
    /// whole answer. [`DEFAULT_TIMEOUT`] without it.
    #[serde(default = "default_timeout", with = "duration")]
    pub timeout: Duration,
    /// Further attempts at each model after a fault that may pass; [`DEFAULT_RETRIES`] without it.
    #[serde(default = "default_retries")]
    pub retries: u32,
    /// Sampling temperature for calls that do not say one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Longest answer in tokens for calls that do not say one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Fields that are added to requests to the first model; they replace those of its provider.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
    /// Models that are asked in this order when the ones before are not available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<Target>,
}

/// A model of a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The provider.
    pub provider: String,
    /// The model, as [`RouteConfig::model`].
    pub model: String,
    /// As [`RouteConfig::model_env`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_env: Option<String>,
    /// Fields that are added to requests to it, as [`RouteConfig::extra`].
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl RouteConfig {
    /// All models of the route in the order in which they are asked.
    pub fn targets(&self) -> Vec<Target> {
        let first = Target {
            provider: self.provider.clone(),
            model: self.model.clone(),
            model_env: self.model_env.clone(),
            extra: self.extra.clone(),
        };
        std::iter::once(first).chain(self.fallbacks.iter().cloned()).collect()
    }
}

impl ProviderKind {
    /// Its name in `wattle.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Gemini => "gemini",
            Self::Anthropic => "anthropic",
        }
    }

    /// The official address, with a slash at its end.
    pub fn default_base_url(self) -> &'static str {
        match self {
            Self::Openai => "https://api.openai.com/v1/",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta/",
            Self::Anthropic => "https://api.anthropic.com/v1/",
        }
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands the field over so")]
fn is_true(value: &bool) -> bool {
    *value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(value: serde_json::Value) -> Result<ModelConfig, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn reads_the_documented_table() {
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
        }))
        .unwrap();
        assert_eq!(config.providers["openai"].structured, Structured::JsonObject);
        assert!(!config.providers["openai"].stream);
        assert_eq!(config.providers["openai"].extra["thinking"]["type"], "disabled");
        assert_eq!(config.routes["chat"].timeout, Duration::from_millis(1500));
        assert_eq!(config.routes["chat"].targets()[1].model, "gemini-2.5-flash");
        assert_eq!(config.aliases["gpt-4o-mini"].model, "gpt-5-mini");
        let again = parse(serde_json::to_value(&config).unwrap()).unwrap();
        assert_eq!(again, config);
    }

    #[test]
    fn refuses_unknown_words_and_bad_durations() {
        let unknown = parse(json!({ "providers": { "a": { "kind": "openai", "key": "x" } } }));
        assert!(unknown.unwrap_err().contains("key"));
        let duration = parse(json!({
            "routes": { "a": { "provider": "p", "model": "m", "timeout": "soon" } }
        }));
        assert!(duration.unwrap_err().contains("`soon` is not a duration"));
    }
}
