//! `wattle mcp`: checks MCP servers.

use std::collections::BTreeMap;

use futures::future::join_all;
use wattle_graph::failure::Failure;
use wattle_graph::suggest;
use wattle_mcp::check::Check;
use wattle_model::config::{ModelConfig, ProviderKind};
use wattle_run::ports::sandbox::ToolInfo;
use wattle_run::service_memory::ServiceMemory;
use wattle_run::text::Escaped;

use crate::args::McpCheckArgs;
use crate::command::format;
use crate::config::Config;
use crate::env::{ReadEnv, environment};
use crate::error::Error;
use crate::exit::Exit;
use crate::host::open_mcp_servers;
use crate::output::Output;

/// Number of characters of a description that are shown.
const DESCRIPTION_CHARS: usize = 80;

/// Connects to all servers concurrently. Fails if any server is unusable.
pub(super) async fn check(
    config: &Config,
    args: McpCheckArgs,
    output: Output,
) -> Result<Exit, Error> {
    // Names are checked before a connection is made, because a connection can start a program.
    if let Some(unknown) = args.servers.iter().find(|name| !config.mcp.contains_key(*name)) {
        let known = config.mcp.keys().map(String::as_str);
        return Err(Error::NotFound {
            message: format!("there is no MCP server `{unknown}`"),
            hint: suggest::hint(unknown, "servers of the configuration", known),
        });
    }
    let mut found = BTreeMap::new();
    for (name, check) in check_servers(config, &environment(), args.servers).await? {
        let mut check = check.map_err(|failure| Error::Failed(failure.message))?;
        check.notes.extend(schema_notes(&config.model, &check.tools));
        found.insert(name, check);
    }
    let is_usable = found.values().all(|check| check.failure.is_none());
    output.data(&found, render);
    Ok(if is_usable { Exit::Ok } else { Exit::Failed })
}

/// Connects concurrently to the named servers, or to all servers. An unknown name is a `not-found`
/// failure.
pub(super) async fn check_servers(
    config: &Config,
    env: &ReadEnv,
    named: Vec<String>,
) -> Result<BTreeMap<String, Result<Check, Failure>>, Error> {
    let servers = open_mcp_servers(config, env, &ServiceMemory::default(), &mut Vec::new())?;
    let names: Vec<String> =
        if named.is_empty() { config.mcp.keys().cloned().collect() } else { named };
    let checks = join_all(names.iter().map(|name| servers.check(name))).await;
    servers.close().await;
    Ok(names.into_iter().zip(checks).collect())
}

/// Lists how tool schemas are changed for each configured kind of provider.
fn schema_notes(model: &ModelConfig, tools: &[ToolInfo]) -> Vec<String> {
    let mut kinds: Vec<ProviderKind> = Vec::new();
    for provider in model.providers.values() {
        if !kinds.contains(&provider.kind) {
            kinds.push(provider.kind);
        }
    }
    let noted = tools.iter().flat_map(|tool| kinds.iter().map(move |kind| (tool, *kind)));
    let noted = noted.filter_map(|(tool, kind)| {
        let changes = wattle_model::schema_changes(kind, &tool.arguments_schema);
        (!changes.is_empty()).then(|| {
            let (name, kind, changes) = (&tool.name, kind.name(), changes.join("; "));
            format!(
                "the schema of the tool `{name}` is sent to `{kind}` in another form: {changes}"
            )
        })
    });
    noted.collect()
}

fn render(checks: &BTreeMap<String, Check>) -> String {
    if checks.is_empty() {
        return "there are no MCP servers; define one as `[mcp.<name>]` in wattle.toml".to_owned();
    }
    checks.iter().map(|(name, check)| render_server(name, check)).collect::<Vec<_>>().join("\n")
}

fn render_server(name: &str, check: &Check) -> String {
    let mut lines = Vec::new();
    let status = if check.failure.is_some() { "fail" } else { "ok" };
    lines.push(format!("{name}: {status}"));
    let software = Escaped(check.software.as_deref().unwrap_or("no name"));
    match &check.protocol {
        Some(protocol) => lines.push(format!(
            "  session  {:>6} ms  protocol {}, {software}",
            check.session_ms,
            Escaped(protocol)
        )),
        None => lines.push(format!("  session  {:>6} ms", check.session_ms)),
    }
    if let Some(ms) = check.tools_ms {
        lines.push(format!("  tools    {ms:>6} ms  {} of them", check.tools.len()));
    }
    for tool in &check.tools {
        let hints = match (tool.hints.read_only, tool.hints.idempotent) {
            (true, _) => " (read-only)",
            (false, true) => " (idempotent)",
            (false, false) => "",
        };
        let summary = format::first_sentence(&tool.description);
        let colon = if summary.is_empty() { "" } else { ": " };
        let summary: String = summary.chars().take(DESCRIPTION_CHARS).collect();
        lines.push(format!("    {}{hints}{colon}{}", Escaped(&tool.name), Escaped(summary)));
    }
    lines.extend(check.notes.iter().map(|note| format!("  note: {}", Escaped(note))));
    lines.extend(check.failure.iter().map(|failure| format!("  {}", Escaped(failure))));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wattle_run::ports::sandbox::ToolHints;

    use super::*;

    #[test]
    fn schema_changes_are_listed_once_per_kind_of_provider() {
        let tool = |name: &str, schema: Value| ToolInfo {
            name: name.into(),
            description: String::new(),
            arguments_schema: schema,
            accepts_invalid: false,
            hints: ToolHints::default(),
            reference: None,
            unavailable: None,
        };
        let model: ModelConfig = serde_json::from_value(json!({ "routes": {}, "providers": {
            "a": { "kind": "gemini" }, "b": { "kind": "gemini" }, "c": { "kind": "anthropic" },
        } }))
        .unwrap();
        let list = json!({ "type": "object", "properties": { "l": { "type": "array" } } });
        let fine = json!({ "type": "object", "properties": {} });
        let notes = schema_notes(&model, &[tool("odd", list), tool("fine", fine)]);
        let expected = "the schema of the tool `odd` is sent to `gemini` in another form: \
                        an array without `items` accepts any items at `/properties/l`";
        assert_eq!(notes, [expected]);
    }

    #[test]
    fn checks_are_rendered_as_text() {
        let tool = ToolInfo {
            name: "add".into(),
            description: "Adds numbers.\nBoth of them.".into(),
            arguments_schema: json!({ "type": "object" }),
            accepts_invalid: false,
            hints: ToolHints { read_only: true, idempotent: false },
            reference: None,
            unavailable: None,
        };
        let fine = Check {
            protocol: Some("2025-11-25".into()),
            software: Some("graph 1.2".into()),
            session_ms: 12,
            tools_ms: Some(3),
            tools: vec![tool],
            notes: vec!["the tool `odd` has no `inputSchema`".into()],
            failure: None,
        };
        let away = Check {
            session_ms: 30_000,
            failure: Some(Failure::new("timeout", "it did not answer")),
            ..Check::default()
        };
        let shown = render(&[("graph".into(), fine), ("files".into(), away)].into());
        let expected = "files: fail\n  session   30000 ms\n  timeout: it did not answer\n\
                        graph: ok\n  session      12 ms  protocol 2025-11-25, graph 1.2\n  \
                        tools         3 ms  1 of them\n    add (read-only): Adds numbers.\n  \
                        note: the tool `odd` has no `inputSchema`";
        assert_eq!(shown, expected);
    }
}
