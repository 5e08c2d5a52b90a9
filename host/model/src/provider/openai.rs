//! OpenAI's chat completions, and their dialects.
//!
//! Services that speak this format differ most in their streams: see `assemble` for the chunks and `calls` for tool
//! calls.

mod assemble;
mod body;
mod calls;
mod own;

pub(super) use self::assemble::OpenAi;

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
    let body = body::body(ask, owner, model, streams, provider.schemas());
    provider.post("chat/completions").json(&body)
}
