//! Checks of external services: MCP servers, and the receiver of traces.

use wattle_run::text::Escaped;

use crate::command::doctor::Report;
use crate::command::mcp;
use crate::config::Config;
use crate::env::ReadEnv;
use crate::host::find_secret;

/// Connects to every MCP server.
pub(super) async fn mcp_servers(config: &Config, env: &ReadEnv, report: &mut Report) {
    let found = match mcp::check_servers(config, env, Vec::new()).await {
        Ok(found) => found,
        Err(error) => {
            report.fail("mcp", error.to_string(), "correct `[mcp]` in wattle.toml");
            return;
        }
    };
    for (name, found) in found {
        let check = format!("mcp {name}");
        match found.map(|found| (found.failure, found.tools.len(), found.notes)) {
            Err(failure) | Ok((Some(failure), ..)) => {
                let message = Escaped(failure.message).to_string();
                report.fail(&check, message, format!("check `[mcp.{name}]`"));
            }
            Ok((None, tools, notes)) if notes.is_empty() => {
                report.ok(&check, format!("offers {tools} tools"));
            }
            Ok((None, tools, notes)) => {
                let message = format!("offers {tools} tools; {}", Escaped(notes.join("; ")));
                report.warn(&check, message, format!("see `wattle mcp check {name}`"));
            }
        }
    }
}

/// Reports where traces are sent. Sends no test trace, because it would be mixed with real traces.
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
