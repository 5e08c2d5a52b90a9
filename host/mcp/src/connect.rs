//! Opens sessions by the configuration of a server.

mod guarded_resolver;
mod http;
mod server_requests;
mod stdio;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wattle_graph::failure::{Failure, code};
use wattle_run::service_memory::ServiceMemory;

use crate::client::Client;
use crate::config::{AddressPolicy, ServerConfig, StdioConfig, TransportConfig};
use crate::connect::server_requests::BoundedRequests;
use crate::connect::stdio::StdioTransport;
use crate::error::ConfigError;
use crate::failure;
use crate::normalize::Normalizer;
use crate::sanitizer::Sanitizer;

pub(crate) use guarded_resolver::BlockedAddress;
pub(crate) use http::HttpTransport;

/// A session with a server.
pub(crate) type Session = RunningService<RoleClient, Client>;

/// Maximum wait for the response of a stdio server to the first request of the stateless protocol;
/// at most a third of the connect timeout.
///
/// Servers that do not know the protocol may not respond at all. Such servers may also exit if a
/// handshake follows the request.
const STATELESS_PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Limit of a message: a page of tools or a result. A larger message is not read.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// A server's transport, checked and ready for use.
#[derive(Debug)]
pub(crate) struct Connector {
    transport: ReadyTransport,
    normalizer: Normalizer,
    /// The memory of all responses that arrive.
    memory: ServiceMemory,
    probe_timeout: Duration,
    /// Whether the server needs a handshake before any other request.
    needs_handshake: AtomicBool,
}

#[derive(Debug)]
enum ReadyTransport {
    Http(HttpTransport),
    Stdio(StdioConfig),
    Misconfigured(String),
}

impl Connector {
    pub(crate) fn new(
        server: &str,
        config: &ServerConfig,
        reachable: AddressPolicy,
        memory: ServiceMemory,
    ) -> Result<Self, ConfigError> {
        let transport = match &config.transport {
            TransportConfig::Http(http) => {
                ReadyTransport::Http(HttpTransport::new(server, http, reachable)?)
            }
            TransportConfig::Stdio(command) => ReadyTransport::Stdio(command.clone()),
            TransportConfig::Misconfigured(reason) => ReadyTransport::Misconfigured(reason.clone()),
        };
        Ok(Self {
            transport,
            normalizer: Normalizer::new(Sanitizer::new(server, config)),
            memory,
            probe_timeout: STATELESS_PROBE_TIMEOUT.min(config.timeout / 3),
            needs_handshake: AtomicBool::new(config.handshake),
        })
    }

    pub(crate) fn sanitizer(&self) -> &Sanitizer {
        self.normalizer.sanitizer()
    }

    /// Returns the normalizer of messages, which also keeps the notes about the server.
    pub(crate) fn normalizer(&self) -> &Normalizer {
        &self.normalizer
    }

    /// Opens a session. The caller sets the timeout. If the caller drops the future, the connection
    /// or process that it started is closed without further action.
    pub(crate) async fn connect(&self, server: &str, client: Client) -> Result<Session, Failure> {
        match &self.transport {
            ReadyTransport::Http(http) => self.connect_http(server, http, client).await,
            ReadyTransport::Stdio(command) => self.connect_stdio(server, command, client).await,
            ReadyTransport::Misconfigured(reason) => {
                let message = format!("the MCP server `{server}` cannot be used: {reason}");
                Err(Failure::new(code::UNAVAILABLE, message))
            }
        }
    }

    /// Opens a session over HTTP. If the response to the first request is not a response of the
    /// stateless protocol, the session begins with a handshake. The next session tries the
    /// stateless protocol again, since the cause may have been transient.
    async fn connect_http(
        &self,
        server: &str,
        http: &HttpTransport,
        client: Client,
    ) -> Result<Session, Failure> {
        if !self.needs_handshake.load(Ordering::Relaxed) {
            let probed = self.open_http(server, http, client.clone(), lifecycle_mode()).await?;
            let error = match probed {
                Ok(session) => return Ok(session),
                Err(error) => error,
            };
            let failure = failure::connect_failure(self.sanitizer(), &error);
            if !failure::may_want_handshake(&error) {
                return Err(failure);
            }
            tracing::debug!(server, %failure, "falling back to a handshake over HTTP");
        }
        let session = self.open_http(server, http, client, ClientLifecycleMode::Initialize).await?;
        session.map_err(|error| failure::connect_failure(self.sanitizer(), &error))
    }

    /// Opens a session over HTTP in one mode. If the caller drops the future, all requests of the
    /// session end.
    async fn open_http(
        &self,
        server: &str,
        http: &HttpTransport,
        client: Client,
        mode: ClientLifecycleMode,
    ) -> Result<Result<Session, ClientInitializeError>, Failure> {
        let (normalizer, calls) = (self.normalizer.clone(), client.calls().clone());
        let (memory, abandoned) = (self.memory.clone(), CancellationToken::new());
        let guard = abandoned.clone().drop_guard();
        let transport =
            http.transport(server, normalizer.clone(), calls.clone(), memory, abandoned)?;
        let transport = BoundedRequests::new(transport, normalizer, calls);
        let opened = client.serve_with_lifecycle(transport, mode).await;
        if opened.is_ok() {
            guard.disarm();
        }
        Ok(opened)
    }

    /// Starts a process and opens a session. If the process exits or does not respond to the first
    /// request, the process is started again with a handshake. All later sessions then begin with a
    /// handshake.
    async fn connect_stdio(
        &self,
        server: &str,
        command: &StdioConfig,
        client: Client,
    ) -> Result<Session, Failure> {
        if !self.needs_handshake.load(Ordering::Relaxed) {
            let client = client.for_new_session();
            let program = self.spawn(server, command, &client)?;
            let probed = client.serve_with_lifecycle(program, lifecycle_mode());
            match timeout(self.probe_timeout, probed).await {
                Ok(Ok(session)) => return Ok(session),
                Ok(Err(error)) => {
                    let failure = failure::connect_failure(self.sanitizer(), &error);
                    tracing::debug!(server, %failure, "restarting an MCP server with a handshake");
                }
                Err(_) => {
                    tracing::debug!(
                        server,
                        "no response, restarting an MCP server with a handshake"
                    );
                }
            }
        }
        let program = self.spawn(server, command, &client)?;
        let session = client.serve_with_lifecycle(program, ClientLifecycleMode::Initialize).await;
        let session =
            session.map_err(|error| failure::connect_failure(self.sanitizer(), &error))?;
        self.needs_handshake.store(true, Ordering::Relaxed);
        Ok(session)
    }

    /// Starts a process.
    fn spawn(
        &self,
        server: &str,
        command: &StdioConfig,
        client: &Client,
    ) -> Result<BoundedRequests<StdioTransport>, Failure> {
        let (normalizer, calls) = (self.normalizer.clone(), client.calls());
        let memory = self.memory.clone();
        let program = stdio::spawn(server, command, normalizer.clone(), calls, memory)?;
        Ok(BoundedRequests::new(program, normalizer, calls.clone()))
    }
}

/// Returns the lifecycle that prefers the stateless protocol and falls back to a handshake.
fn lifecycle_mode() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    }
}
