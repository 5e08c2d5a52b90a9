//! What of the outside can be looked at beforehand: MCP servers and the service for traces.

use wattle_graph::id::{AppName, PluginName};
use wattle_run::ports::{Caller, ToolServers as _};

use crate::command::doctor::Report;
use crate::config::Config;
use crate::wire::{ReadEnv, find_secret, open_tools};

/// On whose behalf servers are asked.
const ASKER: &str = "doctor";

/// Asks every MCP server for its tools.
pub(super) async fn tool_servers(config: &Config, env: &ReadEnv, report: &mut Report) {
    let servers = match open_tools(config, env, &mut Vec::new()) {
        Ok(servers) => servers,
        Err(error) => {
            report.fail("mcp", error.to_string(), "correct `[mcp]` in wattle.toml");
            return;
        }
    };
    let (Ok(app), Ok(plugin)) = (AppName::new(ASKER), PluginName::new(ASKER)) else { return };
    let caller = Caller { app, plugin, tenant: None };
    for name in config.mcp.keys() {
        let check = format!("mcp {name}");
        match servers.list(&caller, name).await {
            Ok(tools) => report.ok(&check, format!("offers {} tools", tools.len())),
            Err(failure) => {
                report.fail(&check, failure.message, format!("check `[mcp.{name}]`"));
            }
        }
    }
    servers.close().await;
}

/// Says where traces go. None are sent: they would stand among the real ones.
pub(super) fn telemetry(config: &Config, env: &ReadEnv, report: &mut Report) {
    let mut problems = Vec::new();
    let secret = |name: &str| find_secret(config, env, name);
    let settings = config.telemetry.settings(&secret, &**env, &mut problems);
    if let Some(otlp) = settings.otlp {
        let host = otlp.url.host_str().unwrap_or_default().to_owned();
        report.ok("telemetry", format!("traces go to `{host}`"));
    }
    for problem in problems {
        report.warn("telemetry", problem, "set it before `wattle serve`");
    }
}
