//! OpenAI's chat completions, and their dialects.
//!
//! Services that speak this format differ most in their streams: see `response` for the chunks,
//! `choices` for several choices, `content_parts` for parts of the content and `tool_calls` for tool
//! calls. `call_ids` has the ids of calls that they accept, and `reasoning_field` the fields for
//! reasoning.

mod body;
mod call_ids;
mod choices;
mod content_parts;
mod extra_fields;
mod reasoning_field;
mod response;
mod tool_calls;

pub(super) use self::response::OpenAiResponse;

use reqwest::RequestBuilder;

use crate::provider::optional_fields::TurnFields;
use crate::provider::provider_state::StateOwner;
use crate::provider::{Provider, TurnRequest};

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
    provider.service.post("chat/completions").json(&body)
}
