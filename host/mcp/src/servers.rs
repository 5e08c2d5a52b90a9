//! The port: all configured servers by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use wattle_graph::failure::{Failure, code};
use wattle_run::ports::sandbox::ToolInfo;
use wattle_run::ports::tool_server::{ServerAnswer, ServerCall};
use wattle_run::ports::{Caller, ToolServers};

use crate::check::Check;
use crate::config::{MAX_OUTPUT_BYTES, McpConfig, Reachable, ServerConfig};
use crate::error::ConfigError;
use crate::server::Server;

/// The servers. Sessions are opened when they are first needed and serve all callers: what a
/// server may do is the operator's decision, and who may use it is the gate's.
#[derive(Debug)]
pub struct McpServers {
    servers: BTreeMap<String, Arc<Server>>,
}

impl McpServers {
    /// Checks the configuration; connects to nothing.
    ///
    /// # Errors
    ///
    /// The first entry that cannot be used.
    pub fn new(config: &McpConfig, reachable: Reachable) -> Result<Self, ConfigError> {
        let mut servers = BTreeMap::new();
        for (name, server) in &config.servers {
            check_bounds(name, server)?;
            let made = Server::new(name, server, reachable)?;
            servers.insert(name.clone(), Arc::new(made));
        }
        Ok(Self { servers })
    }

    /// Looks at a server: opens a session, and reads the list of its tools.
    ///
    /// # Errors
    ///
    /// `not-found` if no server has this name. What is wrong with the server itself stands in the answer.
    pub async fn check(&self, server: &str) -> Result<Check, Failure> {
        Ok(self.server(server)?.check().await)
    }

    /// Ends all sessions and the programs behind them. Calls that are under way end first.
    pub async fn close(&self) {
        for server in self.servers.values() {
            server.close().await;
        }
    }

    fn server(&self, name: &str) -> Result<&Arc<Server>, Failure> {
        self.servers.get(name).ok_or_else(|| {
            let message =
                format!("there is no MCP server `{name}`; add `[mcp.{name}]` to wattle.toml");
            Failure::new(code::NOT_FOUND, message)
        })
    }
}

#[async_trait]
impl ToolServers for McpServers {
    fn has_server(&self, server: &str) -> bool {
        self.servers.contains_key(server)
    }

    async fn list(&self, _caller: &Caller, server: &str) -> Result<Vec<ToolInfo>, Failure> {
        self.server(server)?.list().await
    }

    async fn call(
        &self,
        _caller: &Caller,
        server: &str,
        call: ServerCall<'_>,
    ) -> Result<ServerAnswer, Failure> {
        self.server(server)?.call(call).await
    }
}

fn check_bounds(name: &str, server: &ServerConfig) -> Result<(), ConfigError> {
    let problem = |key, reason: String| ConfigError::Bound { server: name.to_owned(), key, reason };
    if server.timeout == Duration::ZERO {
        return Err(problem(
            "timeout",
            "nothing answers in no time; write for example \"30s\"".into(),
        ));
    }
    if server.output_bytes == 0 || server.output_bytes > MAX_OUTPUT_BYTES {
        let most = MAX_OUTPUT_BYTES >> 20;
        return Err(problem("output", format!("use a size of at most {most}MiB")));
    }
    Ok(())
}
