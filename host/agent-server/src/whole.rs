//! Work that is done as a whole: not cut in the middle when the client hangs up.

use futures::future::BoxFuture;
use wattle_api::detached;
use wattle_graph::failure::Failure;

use crate::agents::Agents;
use crate::fault::Fault;

/// Runs a future to its end, even if the client leaves. The future is boxed, since handlers would
/// have its size several times over otherwise.
///
/// # Errors
///
/// Those of the work; 500 if it breaks down.
pub(crate) async fn whole<T: Send + 'static>(
    agents: &Agents,
    work: BoxFuture<'static, Result<T, Fault>>,
) -> Result<T, Fault> {
    let done = detached::finish(agents.api().stopping.clone(), work).await;
    let broken = || Err(Failure::internal("the host broke down over the request").into());
    done.unwrap_or_else(broken)
}
