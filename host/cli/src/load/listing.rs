//! Lists apps, plugins and tables of grants for commands, which load nothing in the background.

use std::collections::BTreeMap;
use std::path::PathBuf;

use wattle_graph::id::PluginName;
use wattle_run::ports::Sandbox;

use crate::config::Config;
use crate::load::app_folder::Plugins;
use crate::load::app_request::AppRequests;
use crate::load::grants::GrantTables;
use crate::load::manifest::Manifest;
use crate::load::plugin_file::Unloaded;
use crate::load::scan::DiscoveredFiles;
use crate::load::{claims, plugin_file, scan};

/// Returns the tables of grants of the configuration, with the names of apps and plugins on disk
/// and the requests of these apps.
pub fn grant_tables(config: &Config) -> GrantTables {
    let (names, current) = scan::names(config);
    let requests = AppRequests { current, in_use: Vec::new() };
    GrantTables::new(config, config.grants.clone(), names).with_requests(requests)
}

/// Returns the folders of the apps whose manifests can be read, by the names of the apps.
pub fn apps(config: &Config) -> BTreeMap<String, PathBuf> {
    // Of two folders with the same name, the first one is listed.
    let folders = scan::scan(config).apps.into_iter().rev();
    let named = folders.filter_map(|folder| {
        let name = Manifest::read(&folder).ok()?.app.name;
        let is_meant = claims::wrong_folder(config, &name, &folder).is_none();
        is_meant.then(|| (name.to_string(), folder))
    });
    named.collect()
}

/// Returns true if a folder has an app of this name. Returns true as well if the names of some apps
/// are unknown, because a manifest is invalid or a path is not searched. A load reports these.
pub fn may_have_app(config: &Config, app: &str) -> bool {
    let DiscoveredFiles { apps, unusable, .. } = scan::scan(config);
    let may_be = |folder: &PathBuf| match Manifest::read(folder) {
        Ok(manifest) => manifest.app.name.as_str() == app,
        Err(_) => true,
    };
    !unusable.is_empty() || apps.iter().any(may_be)
}

/// Loads the standalone plugins of the plugins folder. Returns the plugins, and the files that
/// cannot be loaded. Neither result contains a file whose name is not a valid plugin name.
pub async fn standalone_plugins(
    config: &Config,
    sandbox: &dyn Sandbox,
) -> (Plugins, BTreeMap<PluginName, Unloaded>) {
    let (mut plugins, mut unloaded) = (Plugins::new(), BTreeMap::new());
    let mut files: BTreeMap<PluginName, Vec<PathBuf>> = BTreeMap::new();
    for path in scan::scan(config).plugins {
        if let Some(name) = scan::name_of_plugin(&path) {
            files.entry(name).or_default().push(path);
        }
    }
    for (name, mut paths) in files {
        let Some(path) = paths.pop() else { continue };
        if let Some(other) = paths.pop() {
            let reason = claims::duplicate_files(&name, [&other, &path], None);
            unloaded.insert(name, Unloaded { path, reason });
            continue;
        }
        let location = scan::plugin_location(config, &path);
        match plugin_file::load(sandbox, &location).await {
            Ok(plugin) => drop(plugins.insert(name, plugin)),
            Err(reason) => drop(unloaded.insert(name, Unloaded { path, reason })),
        }
    }
    (plugins, unloaded)
}
