//! Gemini's `generateContent`.

mod body;
mod response;

pub(super) use self::response::GeminiResponse;

use reqwest::RequestBuilder;

use crate::provider::provider_state::StateOwner;
use crate::provider::{Provider, TurnRequest};

/// Builds a request to `model`, for a stream if `streams`.
pub(super) fn request(
    provider: &Provider,
    ask: &TurnRequest<'_>,
    owner: &StateOwner,
    model: &str,
    streams: bool,
) -> RequestBuilder {
    let path = if streams {
        format!("models/{model}:streamGenerateContent?alt=sse")
    } else {
        format!("models/{model}:generateContent")
    };
    provider.service.post(&path).json(&body::build(ask, owner, model, provider.schemas()))
}
