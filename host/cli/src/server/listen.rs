//! Listening.

use std::future::Future;
use std::net::SocketAddr;

use axum::Router;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::config::Config;
use crate::error::Error;

/// An address that others can reach needs keys.
pub(super) fn refuse_open_address(
    config: &Config,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<(), Error> {
    let apps = config.apps.values().filter_map(|app| app.listen);
    let mut all = std::iter::once(config.server.listen).chain(apps);
    match all.find(|address| !address.ip().is_loopback()) {
        Some(address) if !config.has_keys(env) => Err(Error::OpenAddress { address }),
        _ => Ok(()),
    }
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
    tasks.spawn(async move {
        let server = axum::serve(listener, router).with_graceful_shutdown(stopped);
        if let Err(error) = server.await {
            tracing::error!(%bound, %error, "stopped listening");
        }
    });
    Ok(bound)
}
