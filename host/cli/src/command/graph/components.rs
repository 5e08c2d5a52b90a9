//! The plugins of an app whose graphs are checked. Plugins that cannot be loaded are
//! recorded as problems.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::{Table, Value};
use wattle_graph::check::{AnyPlugin, NodeSchema, PluginCatalog, Problem};
use wattle_graph::id::{AppName, PluginName};
use wattle_graph::toml_depth;
use wattle_run::ports::Sandbox;

use crate::config::{Config, GrantSpec};
use crate::load;
use crate::load::app_folder::Plugins;
use crate::load::app_loader;
use crate::load::hinted_message::HintedMessage;
use crate::load::manifest::{ComponentFiles, Manifest};
use crate::load::plugin_catalog::{AppPluginCatalog, default_plugin_of};
use crate::load::plugin_file::Unloaded;

/// The app's own plugins and the standalone plugins.
pub(super) struct Components {
    own: Plugins,
    standalone: Plugins,
    unloaded_own: BTreeMap<PluginName, Unloaded>,
    /// Standalone plugins that cannot be loaded, except those that a plugin of the app replaces.
    unloaded_standalone: BTreeMap<PluginName, Unloaded>,
}

impl Components {
    /// Loads all components.
    pub(super) async fn load(
        files: &ComponentFiles,
        manifest: &Manifest,
        config: &Config,
        sandbox: &dyn Sandbox,
    ) -> Self {
        let (own, unloaded_own) = app_loader::components(files, manifest, sandbox).await;
        let (standalone, mut unloaded_standalone) = load::standalone_plugins(config, sandbox).await;
        unloaded_standalone.retain(|name, _| !files.contains_key(name));
        Self { own, standalone, unloaded_own, unloaded_standalone }
    }

    /// Returns the problems of components that cannot be loaded: the components of the app, and the
    /// standalone plugins that its graphs name.
    pub(super) fn problems(&self, graphs: &str) -> Vec<Problem> {
        let named = named_plugins(graphs);
        let standalone = self.unloaded_standalone.iter();
        let standalone = standalone.filter(|(name, _)| named.contains(name.as_str()));
        let unloaded = self.unloaded_own.iter().chain(standalone);
        let problem =
            |(_, unloaded): (_, &Unloaded)| unloaded.reason.clone().into_problem(&unloaded.path);
        unloaded.map(problem).collect()
    }

    /// Returns a message for each interface that a component of the app imports, and of which the
    /// app requests nothing.
    pub(super) fn unrequested_imports(&self, needs: &GrantSpec) -> Vec<HintedMessage> {
        let own = self.own.iter();
        own.flat_map(|(name, plugin)| unrequested(name, &plugin.info().imports, needs)).collect()
    }

    /// Returns the catalog of the plugins that the graphs can use.
    pub(super) fn catalog<'a>(
        &'a self,
        app: &'a AppName,
        folder: &'a Path,
        plugins_folder: &'a Path,
    ) -> Catalog<'a> {
        let Self { own, standalone, .. } = self;
        let loaded = AppPluginCatalog { app, own, standalone, folder, plugins_folder };
        Catalog { loaded, components: self }
    }

    fn is_unloaded(&self, plugin: &PluginName) -> bool {
        self.unloaded_own.contains_key(plugin) || self.unloaded_standalone.contains_key(plugin)
    }
}

/// Returns a message for each imported interface whose calls are denied, because `needs` requests
/// nothing of it. The SDKs build components that import what their code uses. A component that
/// imports all of these interfaces is left out: other toolchains import the whole contract.
///
/// The interface `tools` is left out as well, because agents import it that call no tools.
fn unrequested(plugin: &PluginName, imports: &[String], needs: &GrantSpec) -> Vec<HintedMessage> {
    let interfaces = [
        ("http", needs.http.is_empty(), "http = [{ host = \"example.com\", methods = [\"GET\"] }]"),
        ("llm", needs.llm.is_empty(), "llm = [\"chat\"]"),
        ("memory", needs.memory.is_empty(), "memory = [{ namespace = [\"notes\"] }]"),
        ("sql", needs.sql.is_empty(), "sql = [{ database = \"notes\" }]"),
        ("tenants", needs.tenant_routes.is_empty(), "tenant_routes = [\"chat\"]"),
    ];
    let is_imported =
        |name: &str| imports.iter().any(|it| it.strip_prefix("wattle:plugin/") == Some(name));
    if interfaces.iter().all(|(name, ..)| is_imported(name)) {
        return Vec::new();
    }
    let unrequested = interfaces
        .into_iter()
        .filter(|(name, is_unrequested, _)| *is_unrequested && is_imported(name));
    let message = |(name, _, request): (&str, bool, &str)| {
        HintedMessage::new(
            format!(
                "plugin `{plugin}` imports `wattle:plugin/{name}`, and the app requests nothing of \
                 it, so its calls are denied"
            ),
            format!("add a request under `[needs]` in app.toml, such as `{request}`"),
        )
    };
    unrequested.map(message).collect()
}

/// Returns the plugins that nodes and channels of a graph file name.
fn named_plugins(graphs: &str) -> BTreeSet<String> {
    let checked = toml_depth::check(graphs).ok();
    let document = checked.and_then(|()| graphs.parse::<Table>().ok());
    let Some(document) = document else { return BTreeSet::new() };
    let graphs = document.get("graphs").and_then(Value::as_table);
    let graphs: Vec<&Table> =
        graphs.into_iter().flat_map(Table::values).filter_map(Value::as_table).collect();
    let entries = |table: &'static str| {
        let tables = graphs.iter().filter_map(move |graph| graph.get(table)?.as_table());
        tables.flat_map(Table::values)
    };
    let reducers = entries("channels").filter_map(|channel| channel.get("reducer"));
    let plugins =
        entries("nodes").chain(reducers).filter_map(|entry| entry.get("plugin")?.as_str());
    plugins.map(str::to_owned).collect()
}

/// The plugins that graphs can use. Nodes and reducers of a plugin that is not loaded are accepted,
/// because the plugin itself is already reported as a problem.
pub(super) struct Catalog<'a> {
    loaded: AppPluginCatalog<'a>,
    components: &'a Components,
}

impl PluginCatalog for Catalog<'_> {
    fn node(&self, plugin: &PluginName, node: &str) -> Option<NodeSchema> {
        if self.components.is_unloaded(plugin) {
            return AnyPlugin.node(plugin, node);
        }
        self.loaded.node(plugin, node)
    }

    fn has_plugin(&self, plugin: &PluginName) -> bool {
        self.components.is_unloaded(plugin) || self.loaded.has_plugin(plugin)
    }

    fn has_reducer(&self, plugin: &PluginName, reducer: &str) -> bool {
        self.components.is_unloaded(plugin) || self.loaded.has_reducer(plugin, reducer)
    }

    fn plugins(&self) -> Vec<PluginName> {
        let Components { unloaded_own, unloaded_standalone, .. } = self.components;
        let unloaded = unloaded_own.keys().chain(unloaded_standalone.keys()).cloned();
        let all: BTreeSet<PluginName> = self.loaded.plugins().into_iter().chain(unloaded).collect();
        all.into_iter().collect()
    }

    fn how_to_add(&self, plugin: &PluginName) -> Option<String> {
        self.loaded.how_to_add(plugin)
    }

    fn nodes(&self, plugin: &PluginName) -> Vec<String> {
        self.loaded.nodes(plugin)
    }

    fn reducers(&self, plugin: &PluginName) -> Vec<String> {
        self.loaded.reducers(plugin)
    }

    fn default_plugin(&self) -> Option<PluginName> {
        let Components { own, unloaded_own, .. } = self.components;
        default_plugin_of(self.loaded.app, &own.keys().chain(unloaded_own.keys()).collect())
    }

    fn read_text(&self, path: &str) -> Result<String, String> {
        self.loaded.read_text(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_of_nodes_and_reducers_are_found() {
        let text = r#"
            [graphs.a]
            channels.sum = { reducer = { plugin = "math", reducer = "sum" } }
            channels.log = { reducer = "append" }
            nodes.x = { plugin = "std", node = "agent" }
            [graphs.b.nodes]
            y = { plugin = "std" }
            z = {}
        "#;
        assert_eq!(named_plugins(text).into_iter().collect::<Vec<_>>(), ["math", "std"]);
        assert!(named_plugins("no [toml").is_empty());
        let deep = format!("{text}w.with = {}1{}", "{ a.a = ".repeat(60), "}".repeat(60));
        assert!(named_plugins(&deep).is_empty());
    }

    #[test]
    fn imports_of_which_the_app_requests_nothing_are_reported() {
        let needs: GrantSpec = toml::from_str("llm = [\"chat\"]").unwrap();
        let found = |interfaces: &[&str]| {
            let imports: Vec<String> =
                interfaces.iter().map(|name| format!("wattle:plugin/{name}")).collect();
            let found = unrequested(&PluginName::new("notes").unwrap(), &imports, &needs);
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let text = "plugin `notes` imports `wattle:plugin/sql`, and the app requests nothing of \
                    it, so its calls are denied\n  hint: add a request under `[needs]` in \
                    app.toml, such as `sql = [{ database = \"notes\" }]`";
        assert_eq!(found(&["clock", "llm", "sql", "tools", "types"]), [text]);
        let whole = ["http", "llm", "memory", "sql", "tenants"];
        assert!(found(&whole).is_empty());
        assert_eq!(found(&whole[..4]).len(), 3);
    }

    #[test]
    fn a_component_that_is_not_loaded_is_a_problem_with_its_file_and_hint() {
        let unloaded = |name: &str| {
            let message = format!("plugin `{name}` cannot be loaded: it is empty");
            let reason = HintedMessage::new(message, "build it");
            let path = format!("plugins/{name}.wasm").into();
            (PluginName::new(name).unwrap(), Unloaded { path, reason })
        };
        let components = Components {
            own: Plugins::new(),
            standalone: Plugins::new(),
            unloaded_own: [unloaded("notes")].into(),
            unloaded_standalone: [unloaded("math"), unloaded("other")].into(),
        };
        let app = AppName::new("notes").unwrap();
        let catalog = components.catalog(&app, Path::new("."), Path::new("plugins"));
        assert_eq!(catalog.default_plugin(), PluginName::new("notes").ok());
        let graph = "[graphs.g]\nentry = 'a'\nnodes.a = { with = { x = 1 } }\n\
                     channels.c.reducer = { plugin = 'math', reducer = 'sum' }\n";
        assert!(wattle_graph::check::check_toml("graph.toml", graph, &catalog).is_ok());
        let problems: Vec<String> =
            components.problems(graph).iter().map(ToString::to_string).collect();
        let told = |name: &str| {
            format!(
                "plugins/{name}.wasm: plugin `{name}` cannot be loaded: it is empty\n  hint: build it"
            )
        };
        assert_eq!(problems, [told("notes"), told("math")]);
    }
}
