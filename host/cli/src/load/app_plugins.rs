//! Collects the plugins of an app and decides their grants.
//!
//! An app has its own components, the standalone plugins that its graphs use, and the plugins that
//! provide tools which are granted to one of its plugins. A change of any other plugin does not
//! change the version of the app.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wattle_graph::channel::Reducer;
use wattle_graph::graph::Graph;
use wattle_graph::id::PluginName;
use wattle_graph::suggest;
use wattle_run::app::{PluginGrants, PluginRequests};
use wattle_run::grant::{ToolGrant, ToolSource};
use wattle_run::ports::Plugin;

use crate::load::app_folder::{AppFolder, Plugins};
use crate::load::grants::Policy;
use crate::load::plugin_catalog::how_to_add;

/// The plugins of an app.
#[derive(Default)]
pub(super) struct AppPlugins {
    /// All plugins.
    pub(super) plugins: Plugins,
    /// The grants of each plugin.
    pub(super) grants: PluginGrants,
    /// What each plugin requests.
    pub(super) requests: PluginRequests,
    /// Notes for the operator.
    pub(super) notes: Vec<String>,
    /// Reasons why the app cannot be loaded.
    pub(super) problems: Vec<String>,
}

impl AppPlugins {
    /// Collects the app's own plugins, the plugins that its graphs use, and then the plugins that
    /// provide granted tools.
    pub(super) fn collect(app: &AppFolder<'_>, own: Plugins, graphs: &[Graph]) -> Self {
        let mut app_plugins = Self { plugins: own, ..Self::default() };
        for name in used_plugins(graphs) {
            app_plugins.add_standalone(app, name);
        }
        if app.is_archived {
            // An archived version keeps all plugins that it used when it was archived, even if its
            // grants have changed since then.
            for name in app.standalone.keys() {
                app_plugins.add_standalone(app, name);
            }
        }
        let policy = Policy { tables: app.tables, manifest: app.manifest };
        while let Some((name, plugin)) = app_plugins.next_without_grants() {
            let decision = policy.decide(&name, plugin.info());
            let places = decision.grants.places(&app.manifest.app.name, &name);
            for tool in &decision.grants.tools {
                app_plugins.add_tool(app, &name, tool, &places);
            }
            app_plugins.notes.extend(decision.messages(&name));
            app_plugins.grants.insert(name.clone(), Arc::new(decision.grants));
            app_plugins.requests.insert(name, Arc::new(decision.request));
        }
        app_plugins.note_ambiguous_tools();
        app_plugins
    }

    /// Adds a standalone plugin, unless the app has a plugin with the same name.
    fn add_standalone(&mut self, app: &AppFolder<'_>, name: &PluginName) {
        if let Some(plugin) = app.standalone.get(name) {
            self.plugins.entry(name.clone()).or_insert_with(|| plugin.clone());
        }
    }

    fn next_without_grants(&self) -> Option<(PluginName, Arc<dyn Plugin>)> {
        let mut plugins = self.plugins.iter();
        let (name, plugin) = plugins.find(|(name, _)| !self.grants.contains_key(*name))?;
        Some((name.clone(), plugin.clone()))
    }

    /// Adds the plugin that provides a granted tool. `places` are the tables that grant the tool.
    fn add_tool(&mut self, app: &AppFolder<'_>, user: &PluginName, tool: &ToolGrant, places: &str) {
        let problem = match &tool.source {
            ToolSource::Server(server) if app.config.mcp.contains_key(server) => None,
            ToolSource::Server(server) => Some(format!(
                "plugin `{user}` is granted `{tool}`, but there is no MCP server `{server}`\n  \
                 hint: {}add `[mcp.{server}]` to wattle.toml, or take `{tool}` out of `tools` \
                 {places}",
                question(server, app.config.mcp.keys().map(String::as_str))
            )),
            ToolSource::Plugin(name) => {
                self.add_standalone(app, name);
                match self.plugins.get(name) {
                    Some(plugin) => no_such_tool(user, tool, plugin.as_ref(), places),
                    None => {
                        let known = app.standalone.keys().chain(self.plugins.keys());
                        let question = question(name.as_str(), known.map(PluginName::as_str));
                        let how = how_to_add(name, &app.config.plugins);
                        Some(format!(
                            "plugin `{user}` is granted `{tool}`, but there is no plugin \
                             `{name}`\n  hint: {question}{how}, or take `{tool}` out of `tools` \
                             {places}"
                        ))
                    }
                }
            }
        };
        self.problems.extend(problem.filter(|_| !app.is_archived));
    }

    /// Adds a note for each bare name that no plugin can use, because several plugins provide a
    /// tool of this name. Tools of MCP servers are not known at this time.
    fn note_ambiguous_tools(&mut self) {
        for (user, grants) in &self.grants {
            let mut providers: BTreeMap<String, BTreeSet<&PluginName>> = BTreeMap::new();
            for tool in &grants.tools {
                let ToolSource::Plugin(name) = &tool.source else { continue };
                let tools = self.plugins.get(name).map(|it| &it.info().tools[..]);
                for info in tools.unwrap_or_default().iter().filter(|it| tool.covers(&it.name)) {
                    providers.entry(info.name.clone()).or_default().insert(name);
                }
            }
            for (tool, names) in providers.iter().filter(|(_, names)| names.len() > 1) {
                let references: Vec<String> =
                    names.iter().map(|name| format!("`{name}/{tool}`")).collect();
                self.notes.push(format!(
                    "plugin `{user}` is granted several tools named `{tool}`, so none can be \
                     called by that name: {}\n  hint: grant one of them, or call them by these \
                     references",
                    references.join(", ")
                ));
            }
        }
    }
}

/// Returns the plugins whose nodes and reducers the graphs use.
fn used_plugins(graphs: &[Graph]) -> BTreeSet<&PluginName> {
    let nodes = graphs.iter().flat_map(|graph| graph.nodes().values());
    let channels = graphs.iter().flat_map(|graph| graph.channels().values());
    let reducers = channels.filter_map(|channel| match &channel.reducer {
        Reducer::Plugin { plugin, .. } => Some(plugin),
        _ => None,
    });
    nodes.filter_map(|node| node.plugin()).chain(reducers).collect()
}

/// Returns an error message if a plugin does not provide a granted tool.
fn no_such_tool(
    user: &PluginName,
    tool: &ToolGrant,
    plugin: &dyn Plugin,
    places: &str,
) -> Option<String> {
    let info = plugin.info();
    if info.tools.iter().any(|it| tool.covers(&it.name)) {
        return None;
    }
    let known: Vec<&str> = info.tools.iter().map(|it| it.name.as_str()).collect();
    let question = question(tool.tool.as_deref().unwrap_or_default(), known.iter().copied());
    let known = match known.as_slice() {
        [] => "it has no tools".to_owned(),
        known => format!("its tools are {}", known.join(", ")),
    };
    Some(format!(
        "plugin `{user}` is granted `{tool}`, which plugin `{}` does not offer\n  hint: \
         {question}{known}; see `tools` {places}",
        info.name
    ))
}

/// Returns the question whether a similar name was meant, as the beginning of a hint.
fn question<'k>(wanted: &str, known: impl Iterator<Item = &'k str>) -> String {
    let question = suggest::did_you_mean(wanted, known);
    question.map(|question| format!("{question} ")).unwrap_or_default()
}
