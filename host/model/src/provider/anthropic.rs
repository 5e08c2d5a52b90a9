//! Anthropic's messages.

mod assemble;
mod body;

pub(super) use self::assemble::Anthropic;

use reqwest::RequestBuilder;

use crate::provider::state::Owner;
use crate::provider::{Ask, Provider};

/// The version of the format.
const VERSION: &str = "2023-06-01";

/// A request for an answer of `model`, in pieces if it `streams`.
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
