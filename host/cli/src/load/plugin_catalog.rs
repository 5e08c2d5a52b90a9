//! The catalog of loaded plugins against which graphs are checked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use wattle_graph::check::{NodeSchema, PluginCatalog};
use wattle_graph::id::{AppName, PluginName};
use wattle_run::ports::Plugin;

use crate::load::text_files;

/// Interfaces whose functions may pause a run. Tools and runs that a node starts can also raise
/// interrupts.
const PAUSING: [&str; 3] = ["wattle:plugin/interrupt", "wattle:plugin/runs", "wattle:plugin/tools"];

/// The standalone plugin with an agent, which the repository of Wattle has.
const AGENT_PLUGIN: &str = "std";

/// The command that builds [`AGENT_PLUGIN`] in a checkout of the repository.
const BUILD_AGENT: &str =
    "cargo build --package wattle-std --target wasm32-unknown-unknown --profile guest";

/// The file that [`BUILD_AGENT`] makes.
const BUILT_AGENT: &str = "target/wasm32-unknown-unknown/guest/wattle_std.wasm";

/// The plugins that the graphs of an app can use.
pub struct AppPluginCatalog<'a> {
    /// Name of the app.
    pub app: &'a AppName,
    /// The app's own plugins, which are its components.
    pub own: &'a BTreeMap<PluginName, Arc<dyn Plugin>>,
    /// Standalone plugins of the plugins folder.
    pub standalone: &'a BTreeMap<PluginName, Arc<dyn Plugin>>,
    /// Folder of the app.
    pub folder: &'a Path,
    /// The plugins folder of the configuration.
    pub plugins_folder: &'a Path,
}

impl AppPluginCatalog<'_> {
    /// Returns a plugin. The app's own plugin takes precedence over a standalone plugin.
    pub fn plugin(&self, name: &PluginName) -> Option<&Arc<dyn Plugin>> {
        self.own.get(name).or_else(|| self.standalone.get(name))
    }
}

impl PluginCatalog for AppPluginCatalog<'_> {
    fn node(&self, plugin: &PluginName, node: &str) -> Option<NodeSchema> {
        let info = self.plugin(plugin)?.info();
        let node = info.nodes.iter().find(|known| known.name == node)?;
        Some(NodeSchema {
            doc: node.doc.clone(),
            input_schema: node.input_schema.clone(),
            output_schema: node.output_schema.clone(),
            config_schema: node.config_schema.clone(),
            node_reads: node.reads.clone(),
            may_pause: info.imports.iter().any(|import| PAUSING.contains(&import.as_str())),
        })
    }

    fn has_plugin(&self, plugin: &PluginName) -> bool {
        self.plugin(plugin).is_some()
    }

    fn has_reducer(&self, plugin: &PluginName, reducer: &str) -> bool {
        let plugin = self.plugin(plugin);
        plugin.is_some_and(|it| it.info().reducers.iter().any(|known| known.name == reducer))
    }

    fn plugins(&self) -> Vec<PluginName> {
        let all: BTreeSet<&PluginName> = self.own.keys().chain(self.standalone.keys()).collect();
        all.into_iter().cloned().collect()
    }

    fn how_to_add(&self, plugin: &PluginName) -> Option<String> {
        Some(how_to_add(plugin, self.plugins_folder))
    }

    fn nodes(&self, plugin: &PluginName) -> Vec<String> {
        let plugin = self.plugin(plugin).into_iter();
        plugin.flat_map(|it| &it.info().nodes).map(|node| node.name.clone()).collect()
    }

    fn reducers(&self, plugin: &PluginName) -> Vec<String> {
        let plugin = self.plugin(plugin).into_iter();
        plugin.flat_map(|it| &it.info().reducers).map(|reducer| reducer.name.clone()).collect()
    }

    fn default_plugin(&self) -> Option<PluginName> {
        default_plugin_of(self.app, &self.own.keys().collect())
    }

    fn read_text(&self, path: &str) -> Result<String, String> {
        text_files::read(self.folder, path)
    }
}

/// Returns how a standalone plugin is added to the plugins folder of the configuration, for hints.
pub fn how_to_add(plugin: &PluginName, plugins_folder: &Path) -> String {
    let file = plugins_folder.join(format!("{plugin}.wasm"));
    let source = if plugin.as_str() == AGENT_PLUGIN {
        format!(" (in a checkout of Wattle, `{BUILD_AGENT}` builds it as `{BUILT_AGENT}`)")
    } else {
        String::new()
    };
    format!("put the file of `{plugin}` at `{}`{source}", file.display())
}

/// Returns the default plugin of nodes among the own plugins of an app: the plugin with the name of
/// the app, or the only plugin.
pub fn default_plugin_of(app: &AppName, own: &BTreeSet<&PluginName>) -> Option<PluginName> {
    let named = own.iter().find(|name| name.as_str() == app.as_str());
    let only = || own.first().filter(|_| own.len() == 1);
    named.or_else(only).map(|name| (*name).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_builds_the_agent_plugin_as_its_readme_says() {
        let readme = include_str!("../../../../plugins/std/README.md");
        let hint = how_to_add(&PluginName::new(AGENT_PLUGIN).unwrap(), Path::new("plugins"));
        for part in [BUILD_AGENT, BUILT_AGENT] {
            assert!(readme.contains(part) && hint.contains(part), "{part}");
        }
    }
}
