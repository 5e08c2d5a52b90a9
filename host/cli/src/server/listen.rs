//! Listeners, with limits on the number and time of connections, and with TLS.

mod activity;
mod body;
mod connection;
mod io;
mod limits;
mod notes;
mod room;
mod tls;

use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use wattle_api::ApiState;
use wattle_api::guard::access::Access;
use wattle_api::traffic::{CutReason, Traffic};
use wattle_graph::failure::Failure;

use self::activity::{Activity, Times};
use self::connection::Connection;
use self::limits::ACCEPT_PAUSE;
use self::notes::Notes;
use self::room::Room;
use self::tls::Certificates;
use crate::config::{Config, ConnectionsConfig, duration};
use crate::error::Error;

/// Response to a rejected connection without TLS.
const REFUSAL: &str = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
                       content-length: 0\r\n\r\n";

/// Fails if the address is reachable from other machines and there are no API keys, neither in the
/// configuration nor in the store.
pub(super) async fn refuse_open_address(
    config: &Config,
    env: &dyn Fn(&str) -> Option<String>,
    state: &ApiState,
) -> Result<(), Error> {
    let Some(address) = config.public_address() else { return Ok(()) };
    let unreadable = |failure: Failure| Error::Setup { what: "API keys", message: failure.message };
    if config.has_keys(env) || state.has_active_keys().await.map_err(unreadable)? {
        return Ok(());
    }
    Err(Error::PublicAddressWithoutKeys { address })
}

/// The state that all listeners of a server share.
pub(super) struct Listening {
    config: ConnectionsConfig,
    times: Times,
    body_time: Duration,
    traffic: Arc<Traffic>,
    /// The access of each route, by which connections are reserved. Empty until the router is
    /// built.
    access: Arc<OnceLock<Arc<Access>>>,
    room: Arc<Room>,
    notes: Notes,
    certificates: Option<Arc<Certificates>>,
    tls: Option<TlsAcceptor>,
}

impl Listening {
    /// Reads the limits and the certificates. `access` is filled later, when the router is built.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] for certificates that cannot be used.
    pub(super) fn new(
        config: &Config,
        traffic: Arc<Traffic>,
        access: Arc<OnceLock<Arc<Access>>>,
    ) -> Result<Arc<Self>, Error> {
        let tls = config.server.tls.as_ref();
        let certificates = tls.map(|tls| Certificates::open(tls, &config.base)).transpose()?;
        let tls = certificates.as_ref().map(tls::acceptor).transpose()?;
        let config = config.server.connections;
        let times = Times {
            head: duration(config.head_timeout),
            stall: duration(config.stall_timeout),
            idle: duration(config.idle_timeout),
        };
        Ok(Arc::new(Self {
            config,
            times,
            body_time: duration(config.body_timeout),
            room: Room::new(config.max, config.per_address, traffic.clone()),
            traffic,
            access,
            notes: Notes::default(),
            certificates,
            tls,
        }))
    }

    /// Reloads the certificates when their files change. Never completes.
    pub(super) async fn keep_certificates(&self) {
        match &self.certificates {
            Some(certificates) => certificates.keep().await,
            None => std::future::pending().await,
        }
    }

    /// Counts and logs a rejected or closed connection.
    fn note(&self, cut: CutReason, from: SocketAddr) {
        self.traffic.count_cut(cut);
        self.notes.note(cut, from);
    }
}

/// An open port. New connections wait in its backlog until a listener accepts them.
pub(super) struct Port {
    listener: std::net::TcpListener,
    wanted: SocketAddr,
}

impl Port {
    /// Opens a port. Port 0 selects a free one.
    pub(super) async fn open(wanted: SocketAddr) -> Result<Self, Error> {
        let listener = TcpListener::bind(wanted).await.and_then(TcpListener::into_std);
        let listener = listener.map_err(|source| Error::Listen { address: wanted, source })?;
        Ok(Self { listener, wanted })
    }

    /// Returns another handle to the same port.
    pub(super) fn share(&self) -> Result<Self, Error> {
        let Self { listener, wanted } = self;
        let listener = listener.try_clone();
        let listener = listener.map_err(|source| Error::Listen { address: *wanted, source })?;
        Ok(Self { listener, wanted: *wanted })
    }
}

/// Serves requests on a port until `stop` becomes true. Returns the address with the actual port
/// number.
pub(super) fn serve(
    tasks: &mut JoinSet<()>,
    listening: &Arc<Listening>,
    port: Port,
    router: Router,
    stop: watch::Receiver<bool>,
) -> Result<SocketAddr, Error> {
    let failed = |source| Error::Listen { address: port.wanted, source };
    let listener = TcpListener::from_std(port.listener).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    tasks.spawn(accept(listening.clone(), listener, router, stop));
    Ok(bound)
}

/// Accepts connections until `stop` becomes true, and then waits until all connections have ended.
async fn accept(
    listening: Arc<Listening>,
    listener: TcpListener,
    router: Router,
    stop: watch::Receiver<bool>,
) {
    let mut open = JoinSet::new();
    let mut stopped = std::pin::pin!(stopped(stop.clone()));
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, from)) => begin(&listening, &router, &stop, &mut open, socket, from),
                Err(error) => rest(&listening, &error).await,
            },
            Some(_) = open.join_next() => {}
            () = &mut stopped => break,
        }
    }
    drop(listener);
    while open.join_next().await.is_some() {}
}

async fn stopped(mut stop: watch::Receiver<bool>) {
    // An error means that the server no longer exists.
    let _ = stop.wait_for(|stop| *stop).await;
}

fn begin(
    listening: &Arc<Listening>,
    router: &Router,
    stop: &watch::Receiver<bool>,
    open: &mut JoinSet<()>,
    socket: TcpStream,
    from: SocketAddr,
) {
    let activity = Activity::new(listening.times);
    let Some(seat) = listening.room.take(from.ip(), &activity) else {
        listening.note(CutReason::ConnectionLimit, from);
        return refuse(listening, socket);
    };
    // Event streams send small chunks, which Nagle's algorithm would delay.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let connection = Connection {
        listening: listening.clone(),
        router: router.clone(),
        from,
        activity,
        is_reserved: seat.is_reserved,
    };
    open.spawn(connection.serve(socket, seat, listening.tls.clone(), stopped(stop.clone())));
}

/// Closes a connection. Sends the reason to a client without TLS.
fn refuse(listening: &Listening, socket: TcpStream) {
    if listening.tls.is_none()
        && let Ok(mut socket) = socket.into_std()
    {
        // The write does not block. It is omitted if the client cannot receive a few bytes
        // immediately.
        let _ = socket.write(REFUSAL.as_bytes());
    }
}

/// Handles a failure of `accept`, for example because no file descriptor is left: closes
/// connections without an open request, and pauses.
async fn rest(listening: &Listening, error: &std::io::Error) {
    use ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        return;
    }
    tracing::error!(%error, "cannot accept connections");
    listening.room.shrink();
    tokio::time::sleep(ACCEPT_PAUSE).await;
}
