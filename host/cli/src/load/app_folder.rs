//! From an app's folder to an app that is ready to run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use wattle_graph::channel::Reducer;
use wattle_graph::check::check_toml;
use wattle_graph::graph::Graph;
use wattle_graph::id::{Digest, PluginName};
use wattle_run::app::{App, GraphPack};
use wattle_run::grant::Grants;
use wattle_run::ports::{Plugin, Sandbox};
use wattle_sql::Databases;

use crate::config::{Config, Needs};
use crate::load::facts::PluginFacts;
use crate::load::manifest::{ComponentFiles, FILE, Manifest};
use crate::load::{grants, plugin_file};

/// Plugins by name.
pub type Plugins = BTreeMap<PluginName, Arc<dyn Plugin>>;

/// An app's folder, and what it takes to load it.
pub struct AppFolder<'a> {
    /// The folder.
    pub folder: &'a Path,
    /// Its `app.toml`.
    pub manifest: &'a Manifest,
    /// Its components.
    pub files: &'a ComponentFiles,
    /// Whether it is an old version, whose migrations were applied when it was new.
    pub is_old: bool,
    /// The operator's decisions.
    pub config: &'a Config,
    /// Loads components.
    pub sandbox: &'a dyn Sandbox,
    /// Where migrations are applied.
    pub databases: &'a Databases,
    /// Plugins of the plugins folder.
    pub loose: &'a Plugins,
}

/// An app that is ready to run.
pub struct LoadedApp {
    /// The app.
    pub app: App,
    /// What an operator should know about it.
    pub notes: Vec<String>,
}

impl AppFolder<'_> {
    /// Loads the app. Databases are only touched when everything else is right.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, one sentence each.
    pub async fn load(&self) -> Result<LoadedApp, Vec<String>> {
        let manifest = self.manifest;
        let own = components(self.files, self.sandbox).await?;
        let mut problems = check_web(manifest, &own);
        let graphs = self.graphs(manifest, &own).unwrap_or_else(|found| {
            problems.extend(found);
            Vec::new()
        });
        if !problems.is_empty() {
            return Err(problems);
        }
        if !self.is_old {
            self.migrate(manifest).await?;
        }
        let plugins = self.used(own, &graphs);
        let (grants, notes) = self.grants(manifest, &plugins);
        let settings = manifest.merged_settings(self.config.apps.get(&manifest.app.name));
        let packs: BTreeMap<_, _> = graphs
            .into_iter()
            .map(|graph| (graph.name.clone(), Arc::new(GraphPack::new(graph, &plugins))))
            .collect();
        let digest = Digest::of(
            packs.values().map(|pack| pack.version.to_hex()).collect::<String>().as_bytes(),
        );
        let operator = self.config.apps.get(&manifest.app.name);
        let app = App {
            name: manifest.app.name.clone(),
            doc: manifest.app.doc.clone(),
            version: manifest.app.version.clone(),
            digest,
            graphs: packs,
            plugins,
            grants,
            settings: Arc::new(settings),
            web: manifest.app.web.clone(),
            mount: operator.and_then(|app| app.mount.clone()),
        };
        Ok(LoadedApp { app, notes })
    }

    fn graphs(&self, manifest: &Manifest, own: &Plugins) -> Result<Vec<Graph>, Vec<String>> {
        let file = &manifest.app.graphs;
        let path = self.folder.join(file);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| vec![format!("`{}` cannot be read: {error}", path.display())])?;
        let facts = PluginFacts { app: &manifest.app.name, own, loose: self.loose };
        check_toml(&file.display().to_string(), &text, &facts)
            .map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    async fn migrate(&self, manifest: &Manifest) -> Result<(), Vec<String>> {
        let mut problems = Vec::new();
        for (database, folders) in &manifest.migrations {
            let folders = folders
                .iter()
                .map(|(dialect, folder)| (dialect.clone(), self.folder.join(folder)))
                .collect();
            let app = manifest.app.name.as_str();
            match self.databases.migrate(app, database, &folders).await {
                Ok(applied) if applied.is_empty() => {}
                Ok(applied) => {
                    tracing::info!(app, database, migrations = applied.join(", "), "migrated");
                }
                Err(error) => problems.push(chain(&error)),
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// The app's own plugins, and the loose ones that its graphs name: no others, so that a
    /// change of those does not make a new version of the app.
    fn used(&self, own: Plugins, graphs: &[Graph]) -> Plugins {
        let nodes = graphs.iter().flat_map(|graph| graph.nodes().values());
        let mut named: BTreeSet<&PluginName> = nodes.map(|node| &node.plugin).collect();
        for channel in graphs.iter().flat_map(|graph| graph.channels().values()) {
            if let Reducer::Plugin { plugin, .. } = &channel.reducer {
                named.insert(plugin);
            }
        }
        let mut used = own;
        for name in named {
            if let Some(plugin) = self.loose.get(name) {
                used.entry(name.clone()).or_insert_with(|| plugin.clone());
            }
        }
        used
    }

    /// What the plugins get. A loose plugin asks by its own manifest; one without a manifest gets
    /// what the operator grants it.
    fn grants(
        &self,
        manifest: &Manifest,
        plugins: &Plugins,
    ) -> (BTreeMap<PluginName, Arc<Grants>>, Vec<String>) {
        let vouched = self.config.apps.contains_key(&manifest.app.name);
        let (mut all, mut notes) = (BTreeMap::new(), Vec::new());
        for (name, plugin) in plugins {
            let is_own = manifest.components.contains_key(name);
            let granted = self.config.grants.get(name);
            let needs = if is_own {
                manifest.needs.clone()
            } else {
                grants::asked(plugin.info(), granted).unwrap_or_else(|problem| {
                    notes.push(problem);
                    Needs::default()
                })
            };
            let decision = grants::decide(name, &needs, granted, vouched && is_own);
            all.insert(name.clone(), Arc::new(decision.grants));
            notes.extend(decision.notes);
        }
        (all, notes)
    }
}

/// An app's own components: all of them, or all their problems.
///
/// # Errors
///
/// One sentence for each component that cannot be loaded.
pub async fn components(
    files: &ComponentFiles,
    sandbox: &dyn Sandbox,
) -> Result<Plugins, Vec<String>> {
    let (mut plugins, mut problems) = (Plugins::new(), Vec::new());
    for (name, path) in files {
        match plugin_file::load_as(sandbox, name, path).await {
            Ok(plugin) => drop(plugins.insert(name.clone(), plugin)),
            Err(message) => problems.push(message),
        }
    }
    if problems.is_empty() { Ok(plugins) } else { Err(problems) }
}

fn check_web(manifest: &Manifest, own: &Plugins) -> Vec<String> {
    let Some(web) = &manifest.app.web else { return Vec::new() };
    match own.get(web) {
        None => vec![format!(
            "{FILE}: `web` names the plugin `{web}`, which is not under `[components]`"
        )],
        Some(plugin) if plugin.info().routes.is_empty() => vec![format!(
            "{FILE}: `web` names the plugin `{web}`, which has no HTTP endpoints\n  hint: export \
             `wattle:plugin/web` from it, or leave `web` out"
        )],
        Some(_) => Vec::new(),
    }
}

/// An error with its causes, which it does not repeat by itself.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}
