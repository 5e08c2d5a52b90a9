//! OpenAI's chat completions, and what others made of them.
//!
//! Services that speak this format differ most in what they stream: see `assemble` for the pieces and
//! `calls` for requests for tools.

mod assemble;
mod body;
mod calls;
mod own;

pub(super) use self::assemble::OpenAi;

use reqwest::RequestBuilder;

use crate::provider::state::Owner;
use crate::provider::{Ask, Provider};

/// A request for an answer of `model`, in pieces if it `streams`.
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
