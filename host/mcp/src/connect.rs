//! Opens sessions by the configuration of a server.

mod child;
mod guard;
mod http;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::ProtocolVersion;
use rmcp::service::RunningService;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use tokio::time::timeout;
use wattle_graph::failure::{Failure, code};

use crate::client::Client;
use crate::config::{CommandConfig, Reach, Reachable, ServerConfig};
use crate::error::ConfigError;
use crate::fault;
use crate::mend::Mender;
use crate::speaker::Speaker;

pub(crate) use guard::Refused;
pub(crate) use http::HttpReach;

/// A session with a server.
pub(crate) type Session = RunningService<RoleClient, Client>;

/// Maximum wait for the response of a stdio server to the first request of the stateless protocol; at most a third of
/// the connect timeout.
///
/// Servers that do not know the protocol may not respond at all. They may also exit at a handshake that follows the
/// request.
const PROBE: Duration = Duration::from_secs(5);

/// Limit of a message: a page of tools or a result. A larger message is not read.
const MESSAGE_BYTES: usize = 16 << 20;

/// A server's transport, checked and ready for use.
#[derive(Debug)]
pub(crate) struct Connector {
    reach: Ready,
    mender: Mender,
    probe: Duration,
    /// Whether the server needs a handshake before any other request.
    wants_handshake: AtomicBool,
}

#[derive(Debug)]
enum Ready {
    Http(HttpReach),
    Command(CommandConfig),
    Unready(String),
}

impl Connector {
    pub(crate) fn new(
        server: &str,
        config: &ServerConfig,
        reachable: Reachable,
    ) -> Result<Self, ConfigError> {
        let reach = match &config.reach {
            Reach::Http(http) => Ready::Http(HttpReach::new(server, http, reachable)?),
            Reach::Command(command) => Ready::Command(command.clone()),
            Reach::Unready(reason) => Ready::Unready(reason.clone()),
        };
        Ok(Self {
            reach,
            mender: Mender::new(Speaker::new(server, config)),
            probe: PROBE.min(config.timeout / 3),
            wants_handshake: AtomicBool::new(config.handshake),
        })
    }

    pub(crate) fn speaker(&self) -> &Speaker {
        self.mender.speaker()
    }

    /// Returns the normalizer of messages, which also keeps the notes about the server.
    pub(crate) fn mender(&self) -> &Mender {
        &self.mender
    }

    /// Opens a session. The caller sets the timeout; the rest of an abandoned attempt ends on its own.
    pub(crate) async fn connect(&self, server: &str, client: Client) -> Result<Session, Failure> {
        match &self.reach {
            Ready::Http(http) => self.greet(server, http, client).await,
            Ready::Command(command) => self.start(server, command, client).await,
            Ready::Unready(reason) => {
                let message = format!("the MCP server `{server}` cannot be used: {reason}");
                Err(Failure::new(code::UNAVAILABLE, message))
            }
        }
    }

    /// Opens a session over HTTP. If the response to the first request is not one of the stateless protocol, the
    /// session begins with a handshake. The next session tries the stateless protocol again, since the cause may have
    /// been transient.
    async fn greet(
        &self,
        server: &str,
        http: &HttpReach,
        client: Client,
    ) -> Result<Session, Failure> {
        if !self.wants_handshake.load(Ordering::Relaxed) {
            let transport = http.transport(server, self.mender.clone(), client.calls().clone())?;
            let probed = client.clone().serve_with_lifecycle(transport, both_eras()).await;
            let error = match probed {
                Ok(session) => return Ok(session),
                Err(error) => error,
            };
            let failure = fault::of_connecting(self.speaker(), &error);
            if !fault::may_want_handshake(&error) {
                return Err(failure);
            }
            tracing::debug!(server, %failure, "falling back to a handshake over HTTP");
        }
        let transport = http.transport(server, self.mender.clone(), client.calls().clone())?;
        let session = client.serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await;
        session.map_err(|error| fault::of_connecting(self.speaker(), &error))
    }

    /// Starts a process and opens a session. A process that exits or is silent at the first request is started again
    /// with a handshake, which all later sessions then use.
    async fn start(
        &self,
        server: &str,
        command: &CommandConfig,
        client: Client,
    ) -> Result<Session, Failure> {
        if !self.wants_handshake.load(Ordering::Relaxed) {
            let client = client.afresh();
            let program = child::start(server, command, self.mender.clone(), client.calls())?;
            let probed = client.serve_with_lifecycle(program, both_eras());
            match timeout(self.probe, probed).await {
                Ok(Ok(session)) => return Ok(session),
                Ok(Err(error)) => {
                    let failure = fault::of_connecting(self.speaker(), &error);
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
        let program = child::start(server, command, self.mender.clone(), client.calls())?;
        let session = client.serve_with_lifecycle(program, ClientLifecycleMode::Initialize).await;
        let session = session.map_err(|error| fault::of_connecting(self.speaker(), &error))?;
        self.wants_handshake.store(true, Ordering::Relaxed);
        Ok(session)
    }
}

/// Returns the lifecycle that prefers the stateless protocol and falls back to a handshake.
fn both_eras() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    }
}
