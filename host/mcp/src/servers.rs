//! The port: all configured servers by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::ThreadId;
use wattle_run::ports::sandbox::ToolInfo;
use wattle_run::ports::tool_server::{ServerAnswer, ServerCall};
use wattle_run::ports::{Caller, ToolServers};

use crate::asking::Waiting;
use crate::check::Check;
use crate::config::{MAX_OUTPUT_BYTES, McpConfig, Reachable, ServerConfig};
use crate::error::ConfigError;
use crate::held::Held;
use crate::server::{self, Server};

/// The servers. Sessions are opened when they are first needed and serve all callers: what a
/// server may do is the operator's decision, and who may use it is the gate's.
#[derive(Debug)]
pub struct McpServers {
    servers: BTreeMap<String, Arc<Server>>,
    /// Calls that wait for people.
    held: Arc<Held<Waiting>>,
}

impl McpServers {
    /// Checks the configuration; connects to nothing.
    ///
    /// # Errors
    ///
    /// The first entry that cannot be used.
    pub fn new(config: &McpConfig, reachable: Reachable) -> Result<Self, ConfigError> {
        let (mut servers, held) = (BTreeMap::new(), Arc::new(Held::default()));
        for (name, server) in &config.servers {
            check_bounds(name, server)?;
            let made = Server::new(name, server, reachable, held.clone())?;
            servers.insert(name.clone(), Arc::new(made));
        }
        Ok(Self { servers, held })
    }

    /// Looks at a server: opens a session, and reads the list of its tools.
    ///
    /// # Errors
    ///
    /// `not-found` if no server has this name. What is wrong with the server itself stands in the answer.
    pub async fn check(&self, server: &str) -> Result<Check, Failure> {
        Ok(self.server(server)?.check().await)
    }

    /// Ends all sessions and the programs behind them. Calls that are under way end first; those that wait for people
    /// are called off.
    pub async fn close(&self) {
        let waiting = self.held.drain().into_iter();
        let ends = waiting.map(|(server, waiting)| async move {
            server::end(&server, waiting.end().await).await;
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
    ) -> Result<ServerAnswer, Failure> {
        self.server(server)?.call(caller, call).await
    }

    async fn go_on(
        &self,
        caller: &Caller,
        server: &str,
        call: ServerCall<'_>,
    ) -> Result<Option<ServerAnswer>, Failure> {
        self.server(server)?.go_on(caller, call).await
    }

    fn held(&self, thread: Option<&ThreadId>) -> Vec<(ThreadId, String)> {
        self.held.names(thread)
    }

    fn release(&self, thread: &ThreadId, held: &str) {
        self.held.release(thread, held);
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
