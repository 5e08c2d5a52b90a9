//! Gemini's `generateContent`.

mod assemble;
mod body;

pub(super) use self::assemble::Gemini;

use crate::provider::exchange;
use crate::provider::fault::Fault;
use crate::provider::reply::Reply;
use crate::provider::state::Owner;
use crate::provider::{Aim, Ask, Provider};
use crate::sink::Sink;

/// One request.
pub(super) async fn ask(
    provider: &Provider,
    aim: Aim<'_>,
    ask: &Ask<'_>,
    sink: &Sink<'_>,
) -> Result<Reply, Fault> {
    let model = aim.model;
    let path = if provider.streams() {
        format!("models/{model}:streamGenerateContent?alt=sse")
    } else {
        format!("models/{model}:generateContent")
    };
    let owner = Owner::new(provider.name(), model);
    let mut request = provider.http().post(provider.url(&path));
    if let Some(key) = provider.key() {
        request = request.header("x-goog-api-key", key);
    }
    let request = request.json(&body::body(ask, &owner, model));
    exchange::send(provider, aim, sink, request, Gemini::new(owner, model, sink)).await
}
