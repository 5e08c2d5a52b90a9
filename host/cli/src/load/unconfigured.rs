//! Permissions that apps are granted, and whose routes, databases, MCP servers and plugins the
//! configuration does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use wattle_graph::id::{AppName, PluginName};
use wattle_graph::suggest;
use wattle_run::grant::{Grants, ToolSource};

use crate::config::Config;
use crate::load::app_request::AppRequest;
use crate::load::grants::{GrantTables, decide};
use crate::load::manifest::Manifest;
use crate::load::plugin_catalog::how_to_add;
use crate::load::{listing, scan};

/// Something that an app needs and is granted, and that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unconfigured {
    /// The app.
    pub app: AppName,
    /// What does not exist, such as "model route `chat`".
    pub what: String,
    /// How to add it, a similar name if there is one, and the names that exist.
    pub hint: String,
}

impl fmt::Display for Unconfigured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "needs the {}, which does not exist", self.what)
    }
}

/// Returns what the apps on disk need and are granted, and what does not exist. Components are not
/// loaded, so requests in the components of standalone plugins, and the names of tools, are left
/// out.
pub fn find_unconfigured(config: &Config) -> Vec<Unconfigured> {
    let (names, _) = scan::names(config);
    let standalone = names.standalone.clone();
    let tables = GrantTables::new(config, config.grants.clone(), names);
    let folders = listing::apps(config).into_values();
    let manifests = folders.filter_map(|folder| Manifest::read(&folder).ok());
    manifests.flat_map(|it| of_app(config, &tables, &standalone, &it.request())).collect()
}

fn of_app(
    config: &Config,
    tables: &GrantTables,
    standalone: &BTreeSet<PluginName>,
    request: &AppRequest,
) -> Vec<Unconfigured> {
    let AppRequest { app, components, needs } = request;
    let own = components.iter().map(|plugin| (plugin, needs, true));
    let others = needs.plugins.iter().map(|(plugin, needs)| (plugin, needs, false));
    let others = others.filter(|(plugin, ..)| !components.contains(*plugin));
    let mut missing = BTreeMap::new();
    for (plugin, needs, is_own) in own.chain(others) {
        let table = tables.table_of(app, plugin, is_own);
        let granted = decide(&table.key, needs, table.granted, table.is_trusted).grants;
        let Grants { llm, sql, tools, tenant_routes, .. } = granted;
        // The app itself may set these routes, for each tenant.
        for route in llm.difference(&tenant_routes) {
            let hint = hint(route, "model.routes", "model routes", &config.model.routes);
            missing.extend(hint.map(|hint| (format!("model route `{route}`"), hint)));
        }
        for database in sql.keys() {
            let hint = hint(database, "sql", "databases", &config.sql);
            missing.extend(hint.map(|hint| (format!("database `{database}`"), hint)));
        }
        for tool in &tools {
            let (what, hint) = match &tool.source {
                ToolSource::Server(server) => {
                    let hint = hint(server, "mcp", "MCP servers", &config.mcp);
                    (format!("MCP server `{server}`"), hint)
                }
                ToolSource::Plugin(name) => {
                    let known: BTreeSet<&PluginName> = components.union(standalone).collect();
                    let is_missing = !known.contains(name);
                    let hint = is_missing.then(|| {
                        let names = known.iter().copied().map(PluginName::as_str);
                        let names = suggest::hint(name.as_str(), "plugins", names);
                        format!("{}; {names}", how_to_add(name, &config.plugins))
                    });
                    (format!("plugin `{name}` for the tool `{tool}`"), hint)
                }
            };
            missing.extend(hint.map(|hint| (what, hint)));
        }
    }
    let missing = missing.into_iter();
    missing.map(|(what, hint)| Unconfigured { app: app.clone(), what, hint }).collect()
}

/// Returns how to add a table with a name to the configuration; `None` if there is one. `kind`
/// describes the names.
fn hint<V>(
    name: &str,
    table: &str,
    kind: &str,
    configured: &BTreeMap<String, V>,
) -> Option<String> {
    if configured.contains_key(name) {
        return None;
    }
    let names = suggest::hint(name, kind, configured.keys().map(String::as_str));
    Some(format!("add `[{table}.{name}]` to wattle.toml; {names}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::parse;

    const APP: &str = r#"
        [app]
        name = "lines"
        version = "1"
        [components]
        lines = "lines.wasm"
        [needs]
        llm = ["chat", "own"]
        tenant_routes = ["own"]
        sql = [{ database = "lines" }]
        tools = ["lines/count", "dates/parse", "mcp:files/*"]
        plugins.std = { llm = ["chat"] }
    "#;

    const CONFIGURED: &str = r#"
        model.routes.chatt = { provider = "p", model = "m" }
        model.providers.p = { kind = "openai" }
        sql.line = { url = "sqlite::memory:" }
    "#;

    /// Returns what the app needs and does not exist, with hints, under a configuration.
    fn found(config: &str) -> Vec<(String, String)> {
        let base = tempfile::tempdir().unwrap();
        let app = base.path().join("plugins/lines");
        fs::create_dir_all(&app).unwrap();
        fs::write(app.join("app.toml"), APP).unwrap();
        fs::write(base.path().join("plugins/date.wasm"), "").unwrap();
        let config = parse(&format!("{CONFIGURED}{config}"), base.path()).unwrap();
        let found = find_unconfigured(&config).into_iter();
        found.map(|it| (it.to_string(), it.hint)).collect()
    }

    #[test]
    fn names_that_an_app_is_granted_and_that_do_not_exist_are_found() {
        let found = found("[apps.lines]");
        let expected = [
            ("database `lines`", "did you mean `line`? databases: `line`"),
            ("MCP server `files`", "add `[mcp.files]` to wattle.toml; MCP servers: none"),
            ("model route `chat`", "did you mean `chatt`? model routes: `chatt`"),
            ("plugin `dates` for the tool `dates/parse`", "did you mean `date`? plugins: "),
        ];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (what, hint) in expected {
            let text = format!("needs the {what}, which does not exist");
            let has = |(told, advice): &(String, String)| *told == text && advice.contains(hint);
            assert!(found.iter().any(has), "{what}: {found:?}");
        }
    }

    #[test]
    fn names_that_an_app_is_not_granted_are_left_out() {
        assert!(found("").is_empty());
        let found = found("[grants.lines]\nllm = [\"chat\"]");
        let [(what, _)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(what, "needs the model route `chat`, which does not exist");
    }
}
