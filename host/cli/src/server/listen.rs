//! Listeners, with limits on the number and time of connections, and with TLS.

mod activity;
mod body;
mod connection;
mod cut_log;
mod limits;
mod listen_state;
mod slots;
mod socket;
mod tls;

use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use wattle_api::ApiState;
use wattle_api::traffic::CutReason;
use wattle_graph::failure::Failure;

use self::activity::Activity;
use self::connection::Connection;
use self::limits::ACCEPT_PAUSE;
pub(super) use self::listen_state::ListenState;
use crate::config::Config;
use crate::error::Error;

/// Response to a rejected connection without TLS.
const REJECTION: &str = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n\
                         connection: close\r\ncontent-length: 0\r\n\r\n";

/// Fails if the address is reachable from other machines and neither the configuration nor the
/// store has API keys.
pub(super) async fn require_keys_on_public_address(
    config: &Config,
    env: &dyn Fn(&str) -> Option<String>,
    state: &ApiState,
) -> Result<(), Error> {
    let Some(address) = config.public_address() else { return Ok(()) };
    let unreadable =
        |failure: Failure| Error::Unusable { what: "API keys", message: failure.message };
    if config.has_keys(env) || state.has_active_keys().await.map_err(unreadable)? {
        return Ok(());
    }
    Err(Error::PublicAddressWithoutKeys { address })
}

/// An open port. New connections wait in the backlog of the socket until a listener accepts them.
pub(super) struct Port {
    listener: std::net::TcpListener,
    requested: SocketAddr,
}

impl Port {
    /// Opens a port. Port 0 selects a free port.
    pub(super) async fn open(requested: SocketAddr) -> Result<Self, Error> {
        let listener = TcpListener::bind(requested).await.and_then(TcpListener::into_std);
        let listener = listener.map_err(|source| Error::Listen { address: requested, source })?;
        Ok(Self { listener, requested })
    }

    /// Returns another handle to the same port.
    pub(super) fn share(&self) -> Result<Self, Error> {
        let Self { listener, requested } = self;
        let listener = listener.try_clone();
        let listener = listener.map_err(|source| Error::Listen { address: *requested, source })?;
        Ok(Self { listener, requested: *requested })
    }
}

/// Serves requests on a port until `stop` becomes true. Returns the address with the actual port
/// number.
pub(super) fn serve(
    tasks: &mut JoinSet<()>,
    state: &Arc<ListenState>,
    port: Port,
    router: Router,
    stop: watch::Receiver<bool>,
) -> Result<SocketAddr, Error> {
    let failed = |source| Error::Listen { address: port.requested, source };
    let listener = TcpListener::from_std(port.listener).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    tasks.spawn(accept(state.clone(), listener, router, stop));
    Ok(bound)
}

/// Accepts connections until `stop` becomes true, and then waits until all connections have ended.
async fn accept(
    state: Arc<ListenState>,
    listener: TcpListener,
    router: Router,
    stop: watch::Receiver<bool>,
) {
    let mut open = JoinSet::new();
    let mut stopped = std::pin::pin!(wait_for_stop(stop.clone()));
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, from)) => {
                    start_connection(&state, &router, &stop, &mut open, socket, from);
                }
                Err(error) => handle_accept_error(&state, &error).await,
            },
            Some(_) = open.join_next() => {}
            () = &mut stopped => break,
        }
    }
    drop(listener);
    while open.join_next().await.is_some() {}
}

async fn wait_for_stop(mut stop: watch::Receiver<bool>) {
    // An error means that the server no longer exists.
    let _ = stop.wait_for(|stop| *stop).await;
}

fn start_connection(
    state: &Arc<ListenState>,
    router: &Router,
    stop: &watch::Receiver<bool>,
    open: &mut JoinSet<()>,
    socket: TcpStream,
    from: SocketAddr,
) {
    let activity = Activity::new(state.timeouts);
    let Some(slot) = state.slots.occupy(from.ip(), &activity) else {
        state.record_cut(CutReason::ConnectionLimit, from);
        return reject(state, socket);
    };
    // Event streams send small chunks, which Nagle's algorithm would delay.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let connection = Connection {
        listen_state: state.clone(),
        router: router.clone(),
        from,
        activity,
        is_reserved: slot.is_reserved,
    };
    open.spawn(connection.serve(socket, slot, state.tls.clone(), wait_for_stop(stop.clone())));
}

/// Closes a connection. Sends the reason to a client without TLS.
fn reject(state: &ListenState, socket: TcpStream) {
    if state.tls.is_none()
        && let Ok(mut socket) = socket.into_std()
    {
        // The write does not block. It is omitted if the client cannot receive a few bytes
        // immediately.
        let _ = socket.write(REJECTION.as_bytes());
    }
}

/// Handles a failure of `accept`, for example because no file descriptor is left: closes
/// connections without an open request, and pauses.
async fn handle_accept_error(state: &ListenState, error: &std::io::Error) {
    use ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        return;
    }
    tracing::error!(%error, "cannot accept connections");
    state.slots.close_idle();
    tokio::time::sleep(ACCEPT_PAUSE).await;
}
