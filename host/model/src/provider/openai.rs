//! OpenAI's chat completions, and what others made of them.
//!
//! Services that speak this format differ most in what they stream: see `assemble` for the pieces and
//! `calls` for requests for tools.

mod assemble;
mod body;
mod calls;
mod own;
mod think;

pub(super) use self::assemble::OpenAi;
pub(super) use self::calls::arguments;

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
    let owner = Owner::new(provider.name(), model);
    let body = body::body(ask, &owner, model, provider.streams());
    let mut request = provider.http().post(provider.url("chat/completions")).json(&body);
    if let Some(key) = provider.key() {
        request = request.bearer_auth(key);
    }
    exchange::send(provider, aim, sink, request, OpenAi::new(owner, model, sink)).await
}
