//! From a configuration to a session.

mod child;
mod guard;
mod http;

use rmcp::model::ProtocolVersion;
use rmcp::service::RunningService;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use wattle_graph::failure::{Failure, code};

use crate::client::Client;
use crate::config::{CommandConfig, Reach, Reachable, ServerConfig};
use crate::error::ConfigError;
use crate::fault;

pub(crate) use guard::Refused;
pub(crate) use http::HttpReach;

/// A session with a server.
pub(crate) type Session = RunningService<RoleClient, Client>;

/// How one server is reached, checked and ready for use.
#[derive(Debug)]
pub(crate) enum Connector {
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
        Ok(match &config.reach {
            Reach::Http(http) => Self::Http(HttpReach::new(server, http, reachable)?),
            Reach::Command(command) => Self::Command(command.clone()),
            Reach::Unready(reason) => Self::Unready(reason.clone()),
        })
    }

    /// Opens a session. The caller bounds the time; the rest of an abandoned attempt ends by
    /// itself.
    pub(crate) async fn connect(&self, server: &str, client: Client) -> Result<Session, Failure> {
        let session = match self {
            Self::Http(http) => {
                let transport = http.transport(server)?;
                client.serve_with_lifecycle(transport, both_eras()).await
            }
            Self::Command(command) => {
                let transport = child::start(server, command)?;
                client.serve_with_lifecycle(transport, both_eras()).await
            }
            Self::Unready(reason) => {
                let message = format!("the MCP server `{server}` cannot be used: {reason}");
                return Err(Failure::new(code::UNAVAILABLE, message));
            }
        };
        session.map_err(|error| fault::of_connecting(server, &error))
    }
}

/// The stateless protocol where the server knows it, else a handshake.
fn both_eras() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    }
}
