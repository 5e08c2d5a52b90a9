//! Anthropic's messages.

mod assemble;
mod body;

pub(super) use self::assemble::Anthropic;

use crate::provider::exchange;
use crate::provider::fault::Fault;
use crate::provider::reply::Reply;
use crate::provider::state::Owner;
use crate::provider::{Aim, Ask, Provider};
use crate::sink::Sink;

/// The version of the format.
const VERSION: &str = "2023-06-01";

/// One request.
pub(super) async fn ask(
    provider: &Provider,
    aim: Aim<'_>,
    ask: &Ask<'_>,
    sink: &Sink<'_>,
) -> Result<Reply, Fault> {
    let model = aim.model;
    let owner = Owner::new(provider.name(), model);
    let mut request =
        provider.http().post(provider.url("messages")).header("anthropic-version", VERSION);
    if let Some(key) = provider.key() {
        request = request.header("x-api-key", key);
    }
    let request = request.json(&body::body(ask, &owner, model, provider.streams()));
    exchange::send(provider, aim, sink, request, Anthropic::new(owner, model, sink)).await
}
