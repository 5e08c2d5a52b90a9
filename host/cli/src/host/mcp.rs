//! Opens MCP servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use wattle_mcp::{McpConfig, McpServers, TransportConfig};

use crate::config::{Config, McpContext};
use crate::env::ReadEnv;
use crate::error::Error;
use crate::host::secrets::find_secret;

/// Opens the configured MCP servers. The connection to a server is established on first use.
pub(crate) fn open_mcp_servers(
    config: &Config,
    env: &ReadEnv,
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
    McpServers::new(&McpConfig { servers }, wattle_net::is_address_allowed)
        .map(Arc::new)
        .map_err(|error| Error::Setup { what: "MCP servers", message: error.to_string() })
}
