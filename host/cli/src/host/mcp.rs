//! Opens MCP servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use wattle_mcp::{McpConfig, McpServers, TransportConfig};
use wattle_run::service_memory::ServiceMemory;

use crate::config::{Config, McpContext};
use crate::env::ReadEnv;
use crate::error::Error;
use crate::host::secrets::find_secret;

/// Opens the configured MCP servers, whose responses count as `memory`. The connection to a server is
/// established on first use.
pub(crate) fn open_mcp_servers(
    config: &Config,
    env: &ReadEnv,
    memory: &ServiceMemory,
    warnings: &mut Vec<String>,
) -> Result<Arc<McpServers>, Error> {
    let secret = |name: &str| find_secret(config, env, name);
    let context =
        McpContext { base: &config.base, data: &config.data, path: env("PATH"), secret: &secret };
    let mut servers = BTreeMap::new();
    for (name, table) in &config.mcp {
        let server = table.server(&context);
        if let TransportConfig::Misconfigured(reason) = &server.transport {
            warnings.push(format!("MCP server `{name}` cannot be used: {reason}"));
        }
        servers.insert(name.clone(), server);
    }
    McpServers::with_memory(&McpConfig { servers }, wattle_net::is_address_allowed, memory)
        .map(Arc::new)
        .map_err(|error| Error::Setup { what: "MCP servers", message: error.to_string() })
}
