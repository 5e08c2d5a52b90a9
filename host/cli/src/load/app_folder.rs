//! From an app's folder to an app that is ready to run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use wattle_graph::check::check_toml;
use wattle_graph::graph::Graph;
use wattle_graph::id::{Digest, PluginName};
use wattle_run::app::{App, GraphPack, Projections};
use wattle_run::ports::{Plugin, Sandbox};
use wattle_sql::Databases;

use crate::config::Config;
use crate::load::facts::PluginFacts;
use crate::load::manifest::{ComponentFiles, FILE, Manifest};
use crate::load::parts::Parts;
use crate::load::{page, plugin_file, projections};

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
        let projections = projections::read(self).unwrap_or_else(|found| {
            problems.extend(found);
            Projections::default()
        });
        let page = page::read(self).unwrap_or_else(|problem| {
            problems.push(problem);
            None
        });
        let parts = Parts::gather(self, own, &graphs);
        problems.extend(parts.problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        if !self.is_old {
            self.migrate(manifest).await?;
        }
        let plugins = parts.plugins;
        let settings = manifest.merged_settings(self.config.apps.get(&manifest.app.name));
        let packs: BTreeMap<_, _> = graphs
            .into_iter()
            .map(|graph| (graph.name.clone(), Arc::new(GraphPack::new(graph, &plugins))))
            .collect();
        let mut notes = parts.notes;
        notes.extend(page.as_ref().and_then(|page| page::note(manifest, page)));
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
            grants: parts.grants,
            settings: Arc::new(settings),
            web: manifest.app.web.clone(),
            mount: operator.and_then(|app| app.mount.clone()),
            projections,
            page,
        };
        Ok(LoadedApp { app, notes })
    }

    fn graphs(&self, manifest: &Manifest, own: &Plugins) -> Result<Vec<Graph>, Vec<String>> {
        if !manifest.has_graphs(self.folder) {
            return Ok(Vec::new());
        }
        let file = &manifest.app.graphs;
        let path = self.folder.join(file);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| vec![format!("`{}` cannot be read: {error}", path.display())])?;
        let facts =
            PluginFacts { app: &manifest.app.name, own, loose: self.loose, folder: self.folder };
        check_toml(&file.display().to_string(), &text, &facts)
            .map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    async fn migrate(&self, manifest: &Manifest) -> Result<(), Vec<String>> {
        let mut problems = Vec::new();
        let kept_elsewhere =
            |database: &String| self.config.sql.get(database).is_some_and(|it| !it.migrate);
        for (database, folders) in &manifest.migrations {
            if kept_elsewhere(database) {
                continue;
            }
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
