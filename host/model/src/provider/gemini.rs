//! Gemini's `generateContent`.

mod assemble;
mod body;

pub(super) use self::assemble::Gemini;

use reqwest::RequestBuilder;

use crate::provider::state::Owner;
use crate::provider::{Ask, Provider};

/// Builds a request to `model`, for a stream if `streams`.
pub(super) fn request(
    provider: &Provider,
    ask: &Ask<'_>,
    owner: &Owner,
    model: &str,
    streams: bool,
) -> RequestBuilder {
    let path = if streams {
        format!("models/{model}:streamGenerateContent?alt=sse")
    } else {
        format!("models/{model}:generateContent")
    };
    provider.post(&path).json(&body::body(ask, owner, model, provider.schemas()))
}
