//! From a configuration to a session.

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

/// How long a program may be silent at the first question of the newer protocol, within a third of the time
/// for connecting.
///
/// Programs that do not know it may say nothing at all, and end at a handshake that comes second.
const PROBE: Duration = Duration::from_secs(5);

/// Bytes of a message of a server: a page of tools or a result. A larger one is not read.
const MESSAGE_BYTES: usize = 16 << 20;

/// How one server is reached, checked and ready for use.
#[derive(Debug)]
pub(crate) struct Connector {
    reach: Ready,
    mender: Mender,
    probe: Duration,
    /// The server wants a handshake before anything else.
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

    /// What was made good or left out of what the server sent.
    pub(crate) fn mender(&self) -> &Mender {
        &self.mender
    }

    /// Opens a session. The caller bounds the time; the rest of an abandoned attempt ends by
    /// itself.
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

    /// Opens a session over HTTP. A server that answers the first question in no way of the newer protocol is greeted
    /// with a handshake. The next session asks it again, since the reason may have been one of the moment.
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
            tracing::debug!(server, %failure, "an MCP server over HTTP is greeted with a handshake");
        }
        let transport = http.transport(server, self.mender.clone(), client.calls().clone())?;
        let session = client.serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await;
        session.map_err(|error| fault::of_connecting(self.speaker(), &error))
    }

    /// Starts a program. One that ends or says nothing at the first question is started again, and greeted with a
    /// handshake from then on.
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
                    tracing::debug!(server, %failure, "an MCP server is started again for a handshake");
                }
                Err(_) => {
                    tracing::debug!(server, "a silent MCP server is started again for a handshake");
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

/// The stateless protocol where the server knows it, else a handshake.
fn both_eras() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    }
}
