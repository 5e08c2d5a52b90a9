//! Listening.

use std::future::Future;
use std::net::SocketAddr;

use axum::Router;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use wattle_api::ApiState;
use wattle_graph::failure::Failure;

use crate::config::Config;
use crate::error::Error;

/// An address that others can reach needs keys, of the configuration or made by a command.
pub(super) async fn refuse_open_address(
    config: &Config,
    env: &dyn Fn(&str) -> Option<String>,
    state: &ApiState,
) -> Result<(), Error> {
    let Some(address) = config.public_address() else { return Ok(()) };
    let unreadable = |failure: Failure| Error::Setup { what: "the keys", message: failure.message };
    if config.has_keys(env) || state.has_kept_keys().await.map_err(unreadable)? {
        return Ok(());
    }
    Err(Error::OpenAddress { address })
}

/// Listens, and answers until `stopped`. Returns the address, whose port may have been 0.
pub(super) async fn serve(
    tasks: &mut JoinSet<()>,
    address: SocketAddr,
    router: Router,
    stopped: impl Future<Output = ()> + Send + 'static,
) -> Result<SocketAddr, Error> {
    let failed = |source| Error::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let listener = listener.tap_io(|stream| {
        // Event streams send small pieces, which must not wait for each other.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
    });
    // Guards count requests without a key by the address that they come from.
    let router = router.into_make_service_with_connect_info::<SocketAddr>();
    tasks.spawn(async move {
        let server = axum::serve(listener, router).with_graceful_shutdown(stopped);
        if let Err(error) = server.await {
            tracing::error!(%bound, %error, "stopped listening");
        }
    });
    Ok(bound)
}
