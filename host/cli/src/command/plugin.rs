//! `wattle plugin`: lists and inspects plugins.

use std::path::Path;

use serde_json::Value;
use wattle_api::document::plugin::{NodeDocument, PluginDocument};
use wattle_run::grant::{GrantKey, SqlRule};

use crate::client::{self, Client, encode_segment};
use crate::command::format;
use crate::config::Config;
use crate::error::Error;
use crate::exit::Exit;
use crate::host::open_sandbox;
use crate::load::file::FileLocation;
use crate::load::grants::GrantDecision;
use crate::load::{grant_tables, grants, plugin_file};
use crate::output::{Output, Table};

pub(super) async fn list(config: Config, output: Output) -> Result<Exit, Error> {
    let client = Client::open(config, client::Preload::AllApps).await?;
    let plugins: Result<Vec<PluginDocument>, _> = client.get("/api/v1/plugins").await;
    client.close().await;
    output.data(&plugins?, |plugins| {
        let mut table = Table::new(&["plugin", "app", "contract", "size", "nodes", "digest"]);
        for plugin in plugins {
            table.row([
                plugin.name.clone(),
                plugin.app.clone().unwrap_or_else(|| "-".into()),
                if plugin.contract.is_empty() { "-".into() } else { plugin.contract.clone() },
                format::byte_size(usize::try_from(plugin.size_bytes).unwrap_or(usize::MAX)),
                plugin.nodes.len().to_string(),
                plugin.digest.chars().take(12).collect(),
            ]);
        }
        table.render()
    });
    Ok(Exit::Ok)
}

pub(super) async fn inspect(config: Config, target: &str, output: Output) -> Result<Exit, Error> {
    let plugins = if Path::new(target).is_file() {
        vec![inspect_file(&config, Path::new(target)).await?]
    } else {
        let client = Client::open(config, client::Preload::Apps).await?;
        let plugins = client.get(&format!("/api/v1/plugins/{}", encode_segment(target))).await;
        client.close().await;
        plugins?
    };
    output.data(&plugins, |plugins| plugins.iter().map(render).collect::<Vec<_>>().join("\n\n"));
    Ok(Exit::Ok)
}

/// Inspects a component file without a server. The document contains the grants that the
/// configuration has for a plugin of this name.
async fn inspect_file(config: &Config, path: &Path) -> Result<PluginDocument, Error> {
    let sandbox = open_sandbox(config)?;
    let plugin = plugin_file::load(sandbox.as_ref(), &FileLocation::Named(path.to_owned())).await;
    let plugin = plugin.map_err(|error| Error::Failed(error.to_string()))?;
    let info = plugin.info();
    let (key, tables) = (GrantKey::of_plugin(&info.name), grant_tables(config));
    let (table, of_apps) = (config.grants.get(&key), tables.needs_of(&key));
    let GrantDecision { grants, request } = grants::decide_standalone(info, table, &of_apps);
    for note in &request.notes {
        Output::warning(note);
    }
    Ok(PluginDocument::new(None, info, &grants, &request))
}

fn render(plugin: &PluginDocument) -> String {
    let mut lines = vec![
        format!("plugin    {}", plugin.name),
        format!("app       {}", plugin.app.as_deref().unwrap_or("-")),
        format!("digest    {}", plugin.digest),
        format!("size      {}", format::byte_size(usize::try_from(plugin.size_bytes).unwrap_or(0))),
        contract(plugin),
    ];
    let mut list = |title: &str, items: &[String]| {
        if !items.is_empty() {
            lines.push(format!("{title}\n{}", format::indent(&items.join("\n"), 2)));
        }
    };
    list("exports", &plugin.exports);
    list("imports", &plugin.imports);
    let node =
        |node: &NodeDocument| format!("{}  {}", node.name, format::first_sentence(&node.doc));
    let nodes: Vec<String> = plugin.nodes.iter().map(node).collect();
    list("nodes", &nodes);
    list("tools", &plugin.tools);
    let refused: Vec<String> =
        plugin.refused.iter().map(|it| format!("{}  {}", it.function, it.reason)).collect();
    list("functions that are no tools", &refused);
    list("reducers", &plugin.reducers);
    list("endpoints", &plugin.routes);
    if let Some(manifest) = &plugin.manifest {
        list("requests", &[manifest.trim().to_owned()]);
    }
    list("granted", &granted_lines(plugin));
    lines.join("\n")
}

/// Returns the line about the contract. A typed component has none.
fn contract(plugin: &PluginDocument) -> String {
    match plugin.contract.as_str() {
        "" => "contract  - (typed component)".to_owned(),
        version => format!("contract  wattle:plugin@{version}"),
    }
}

fn granted_lines(plugin: &PluginDocument) -> Vec<String> {
    let grants = &plugin.grants;
    let mut lines = Vec::new();
    if !grants.llm.is_empty() {
        lines.push(format!("llm     {}", grants.llm.join(", ")));
    }
    lines.extend(grants.http.iter().map(|rule| format!("http    {rule}")));
    let databases = grants.sql.as_object().into_iter().flatten();
    lines.extend(databases.map(|(name, rule)| format!("sql     {name}: {}", sql_rule(rule))));
    if !grants.environment.is_empty() {
        lines.push(format!("environment  {}", grants.environment.join(", ")));
    }
    lines.extend(grants.folders.iter().map(|rule| format!("folder  {rule}")));
    if !grants.tools.is_empty() {
        lines.push(format!("tools   {}", grants.tools.join(", ")));
    }
    if !grants.tenant_routes.is_empty() {
        lines.push(format!("tenant routes  {}", grants.tenant_routes.join(", ")));
    }
    if lines.is_empty() {
        lines.push("nothing".into());
    }
    lines.push(format!("limits  {}", grants.limits));
    lines
}

/// Formats a rule. A rule of a newer server that this version of the CLI cannot parse is shown as
/// JSON.
fn sql_rule(rule: &Value) -> String {
    let Ok(rule) = serde_json::from_value::<SqlRule>(rule.clone()) else {
        return rule.to_string();
    };
    let names = |names: Option<Vec<String>>, what: &str| {
        names.map(|names| format!("{what} {}", names.join(", ")))
    };
    let functions = (!rule.functions.is_empty()).then(|| rule.functions.into_iter().collect());
    let parts = [
        Some(format::serde_name(&rule.access)),
        names(rule.tables.map(|tables| tables.into_iter().collect()), "tables"),
        rule.schema.then(|| "schema".to_owned()),
        names(functions, "functions"),
        rule.timeout_ms.map(|ms| format!("timeout {ms} ms")),
        rule.rows.map(|rows| format!("rows {rows}")),
        rule.bytes.map(|bytes| format!("bytes {bytes}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_api::document::plugin::{
        GrantsDocument, PluginUseDocument, RefusedFunctionDocument,
    };

    use super::*;

    fn plugin(grants: Value) -> PluginDocument {
        let grants: GrantsDocument = serde_json::from_value(grants).unwrap();
        PluginDocument {
            name: "reports".into(),
            app: None,
            digest: String::new(),
            size_bytes: 0,
            contract: "0.1.0".into(),
            exports: Vec::new(),
            imports: Vec::new(),
            nodes: Vec::new(),
            tools: Vec::new(),
            reducers: Vec::new(),
            routes: Vec::new(),
            refused: Vec::new(),
            manifest: None,
            grants,
            needs: GrantsDocument::default(),
            missing: Vec::new(),
            notes: Vec::new(),
            tool_schemas: Vec::new(),
            used: PluginUseDocument::default(),
        }
    }

    #[test]
    fn grants_are_listed_with_their_details() {
        let plugin = plugin(json!({
            "llm": ["chat"], "http": [], "limits": {},
            "sql": {
                "new": { "access": "append-only" },
                "own": "read-write",
                "sales": {
                    "access": "read-only", "tables": ["customers", "orders"], "schema": true,
                    "functions": ["soundex"], "timeout_ms": 5_000, "rows": 100, "bytes": 65_536,
                },
            },
            "tools": ["date/*", "mcp:graph/list"],
            "tenant_routes": ["chat", "vision"],
            "environment": ["REGION"],
            "folders": [{ "path": "/srv/reports", "guest": "/reports", "access": "read-only" }],
        }));
        insta::assert_snapshot!(granted_lines(&plugin).join("\n"), @r#"
        llm     chat
        sql     new: {"access":"append-only"}
        sql     own: read-write
        sql     sales: read-only; tables customers, orders; schema; functions soundex; timeout 5000 ms; rows 100; bytes 65536
        environment  REGION
        folder  {"path":"/srv/reports","guest":"/reports","access":"read-only"}
        tools   date/*, mcp:graph/list
        tenant routes  chat, vision
        limits  {}
        "#);
    }

    #[test]
    fn functions_of_a_typed_component_are_listed() {
        let grants = json!({ "llm": [], "http": [], "sql": {}, "limits": {} });
        let typed = PluginDocument {
            digest: "4f2a".into(),
            contract: String::new(),
            exports: vec!["acme:shop/orders".into()],
            tools: vec!["orders_pay".into()],
            refused: vec![RefusedFunctionDocument {
                function: "acme:shop/orders.open".into(),
                reason: "its result contains a resource, which has no form in JSON".into(),
            }],
            ..plugin(grants)
        };
        insta::assert_snapshot!(render(&typed), @r"
        plugin    reports
        app       -
        digest    4f2a
        size      0B
        contract  - (typed component)
        exports
          acme:shop/orders
        tools
          orders_pay
        functions that are no tools
          acme:shop/orders.open  its result contains a resource, which has no form in JSON
        granted
          nothing
          limits  {}
        ");
    }

    #[test]
    fn missing_grants_are_listed_as_nothing() {
        let plugin = plugin(json!({ "llm": [], "http": [], "sql": {}, "limits": {} }));
        assert_eq!(granted_lines(&plugin), ["nothing", "limits  {}"]);
    }
}
