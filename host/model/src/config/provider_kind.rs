//! Kinds of providers.

use serde::{Deserialize, Serialize};

/// The wire format of a provider.
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

impl ProviderKind {
    /// Returns the name in `wattle.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Gemini => "gemini",
            Self::Anthropic => "anthropic",
        }
    }

    /// Returns the official base URL, which ends with a slash.
    pub fn default_base_url(self) -> &'static str {
        match self {
            Self::Openai => "https://api.openai.com/v1/",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta/",
            Self::Anthropic => "https://api.anthropic.com/v1/",
        }
    }
}
