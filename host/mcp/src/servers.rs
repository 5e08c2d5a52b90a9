//! The implementation of the port `ToolServers`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::ThreadId;
use wattle_run::ports::sandbox::ToolInfo;
use wattle_run::ports::tool_server::{ServerCall, ServerCallResult};
use wattle_run::ports::{Caller, ToolServers};
use wattle_run::service_memory::ServiceMemory;

use crate::check::Check;
use crate::config::{AddressPolicy, MAX_OUTPUT_BYTES, McpConfig, ServerConfig};
use crate::error::ConfigError;
use crate::held_calls::HeldCalls;
use crate::running_call::HeldCall;
use crate::server::{self, Server};

/// All configured servers. The session of a server is opened at its first use and serves all
/// callers. Callers need no separate sessions, because the operator decides what a server is
/// allowed to do, and the gate decides who is allowed to use the server.
#[derive(Debug)]
pub struct McpServers {
    servers: BTreeMap<String, Arc<Server>>,
    /// Held calls of all servers, limited for each server and each tenant.
    held_calls: Arc<HeldCalls<HeldCall>>,
}

impl McpServers {
    /// Checks the configuration without connecting.
    ///
    /// # Errors
    ///
    /// Returns the first invalid entry.
    pub fn new(config: &McpConfig, reachable: AddressPolicy) -> Result<Self, ConfigError> {
        Self::with_memory(config, reachable, &ServiceMemory::default())
    }

    /// Checks the configuration like [`new`](Self::new). Responses of the servers count as `memory`,
    /// which other adapters can share.
    ///
    /// # Errors
    ///
    /// The errors of [`new`](Self::new).
    pub fn with_memory(
        config: &McpConfig,
        reachable: AddressPolicy,
        memory: &ServiceMemory,
    ) -> Result<Self, ConfigError> {
        let (mut servers, held_calls) = (BTreeMap::new(), Arc::new(HeldCalls::default()));
        for (name, server) in &config.servers {
            check_bounds(name, server)?;
            let made = Server::new(name, server, reachable, held_calls.clone(), memory.clone())?;
            servers.insert(name.clone(), Arc::new(made));
        }
        Ok(Self { servers, held_calls })
    }

    /// Opens a session and reads the tool list.
    ///
    /// # Errors
    ///
    /// Returns `not-found` if no server has this name. The report describes problems of the server.
    pub async fn check(&self, server: &str) -> Result<Check, Failure> {
        Ok(self.server(server)?.check().await)
    }

    /// Closes all sessions and their processes. Waits for calls in progress and cancels held calls.
    pub async fn close(&self) {
        let waiting = self.held_calls.take_all().into_iter();
        let ends = waiting.map(|(server, waiting)| async move {
            server::close_session(&server, waiting.cancel().await).await;
        });
        join_all(ends).await;
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
        caller: &Caller,
        server: &str,
        call: ServerCall<'_>,
    ) -> Result<ServerCallResult, Failure> {
        self.server(server)?.call(caller, call).await
    }

    async fn continue_call(
        &self,
        caller: &Caller,
        server: &str,
        call: ServerCall<'_>,
    ) -> Result<Option<ServerCallResult>, Failure> {
        self.server(server)?.resume_held(caller, call).await
    }

    fn held_calls(&self, thread: Option<&ThreadId>) -> Vec<(ThreadId, String)> {
        self.held_calls.names(thread)
    }

    fn release_call(&self, thread: &ThreadId, held: &str) {
        self.held_calls.release(thread, held);
    }
}

fn check_bounds(name: &str, server: &ServerConfig) -> Result<(), ConfigError> {
    let problem = |key, reason: String| ConfigError::Bound { server: name.to_owned(), key, reason };
    if server.timeout == Duration::ZERO {
        return Err(problem(
            "timeout",
            "must be greater than zero; write for example \"30s\"".into(),
        ));
    }
    if server.output_bytes == 0 || server.output_bytes > MAX_OUTPUT_BYTES {
        let most = MAX_OUTPUT_BYTES >> 20;
        return Err(problem("output", format!("use a size of at most {most}MiB")));
    }
    Ok(())
}
