//! Anthropic's messages API.

mod assemble;
mod body;

pub(super) use self::assemble::Anthropic;

use reqwest::RequestBuilder;

use crate::provider::state::Owner;
use crate::provider::{Ask, Provider};

/// The value of the header `anthropic-version`.
const VERSION: &str = "2023-06-01";

/// Builds a request to `model`, for a stream if `streams`.
pub(super) fn request(
    provider: &Provider,
    ask: &Ask<'_>,
    owner: &Owner,
    model: &str,
    streams: bool,
) -> RequestBuilder {
    let body = body::body(ask, owner, model, streams, provider.schemas());
    provider.post("messages").header("anthropic-version", VERSION).json(&body)
}
