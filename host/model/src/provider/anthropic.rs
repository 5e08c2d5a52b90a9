//! Anthropic's messages API.

mod body;
mod response;

pub(super) use self::response::AnthropicResponse;

use reqwest::RequestBuilder;

use crate::provider::optional_fields::TurnFields;
use crate::provider::provider_state::StateOwner;
use crate::provider::{Provider, TurnRequest};

/// The value of the header `anthropic-version`.
const VERSION: &str = "2023-06-01";

/// Builds a request to `model`, for a stream if `streams`.
pub(super) fn request(
    provider: &Provider,
    ask: &TurnRequest<'_>,
    owner: &StateOwner,
    model: &str,
    streams: bool,
    optional: &mut TurnFields,
) -> RequestBuilder {
    let body = body::build(ask, owner, model, streams, optional, provider.schemas());
    provider.service.post("messages").header("anthropic-version", VERSION).json(&body)
}
