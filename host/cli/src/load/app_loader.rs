//! Loads an app from its folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wattle_graph::check::{check_archived_toml, check_toml};
use wattle_graph::graph::Graph;
use wattle_graph::id::{Digest, PluginName};
use wattle_run::app::{App, AppGrants, GraphVersion, Projections};
use wattle_run::meter::plugin_use::PluginUses;
use wattle_run::ports::Sandbox;
use wattle_sql::Script;

use crate::config::MigrateRule;
use crate::load::app_folder::{AppFolder, LoadedApp, Plugins};
use crate::load::app_plugins::AppPlugins;
use crate::load::file::{self, DOCUMENT_BYTES, Entry, FileError, MIGRATION_BYTES, TotalSize};
use crate::load::hinted_message::HintedMessage;
use crate::load::limits::MIGRATIONS_BYTES;
use crate::load::manifest::{ComponentFiles, FILE, Manifest};
use crate::load::migrations::{DatabaseMigrations, error_chain};
use crate::load::plugin_catalog::AppPluginCatalog;
use crate::load::plugin_file::Unloaded;
use crate::load::turns::Turn;
use crate::load::{names, page, plugin_file, projections};
use crate::output::Output;

impl AppFolder<'_> {
    /// Loads the app. The migrations of the app are read but not applied. Returns `None` if a
    /// component needs another turn.
    ///
    /// # Errors
    ///
    /// All problems, one message per problem.
    pub async fn load(&self, turn: &mut Turn) -> Result<Option<LoadedApp>, Vec<String>> {
        let manifest = self.manifest;
        let built = (!self.is_archived).then_some(manifest);
        let own = components_in_turn(self.files, built, self.sandbox, turn).await?;
        let Some(own) = own else { return Ok(None) };
        let mut problems = check_web(manifest, &own);
        let named = manifest.components.keys().map(|name| ("plugin name", name.as_str()));
        let named = named.chain([("app name", manifest.app.name.as_str())]);
        // The names of an archived version are not checked, so that threads that are pinned to the
        // version can continue.
        let named = named.filter(|_| !self.is_archived);
        let named = named.filter_map(|(what, name)| names::problem(what, name));
        problems.extend(named.map(|problem| problem.to_string()));
        let graphs = self.graphs(manifest, &own).await.unwrap_or_else(|found| {
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
        let migrations = if self.is_archived { Ok(Vec::new()) } else { self.migrations() };
        let migrations = migrations.unwrap_or_else(|found| {
            problems.extend(found);
            Vec::new()
        });
        let AppPlugins { plugins, grants, requests, mut notes, problems: of_plugins } =
            AppPlugins::collect(self, own, &graphs);
        problems.extend(of_plugins);
        if !problems.is_empty() {
            return Err(problems);
        }
        let settings = manifest.merged_settings(self.config.apps.get(&manifest.app.name));
        let graph_versions: BTreeMap<_, _> = graphs
            .into_iter()
            .map(|graph| (graph.name.clone(), Arc::new(GraphVersion::new(graph, &plugins))))
            .collect();
        notes.extend(page.as_ref().and_then(|page| page::note(manifest, page)));
        let digest = Digest::of(
            graph_versions
                .values()
                .map(|graph| graph.version.to_hex())
                .collect::<String>()
                .as_bytes(),
        );
        let operator = self.config.apps.get(&manifest.app.name);
        let app = App {
            name: manifest.app.name.clone(),
            doc: manifest.app.doc.clone(),
            version: manifest.app.version.clone(),
            digest,
            graphs: graph_versions,
            plugins,
            grants: AppGrants::new(grants, requests),
            settings: Arc::new(settings),
            web: manifest.app.web.clone(),
            mount: operator.and_then(|app| app.mount.clone()),
            projections,
            page,
            uses: PluginUses::default(),
        };
        Ok(Some(LoadedApp { app, notes, migrations }))
    }

    /// Reads and checks the graphs on a blocking thread, because the check compiles all schemas of
    /// the document, and a schema of a plugin for each node.
    async fn graphs(&self, manifest: &Manifest, own: &Plugins) -> Result<Vec<Graph>, Vec<String>> {
        if !manifest.has_graphs(self.folder) {
            return Ok(Vec::new());
        }
        let (app, graphs) = (manifest.app.name.clone(), manifest.app.graphs.clone());
        let (own, standalone) = (own.clone(), self.standalone.clone());
        let folder = self.folder.to_owned();
        let plugins_folder = self.config.plugins.clone();
        let check_document = if self.is_archived { check_archived_toml } else { check_toml };
        let check = move || {
            let text = file::read_text(&folder, &graphs, DOCUMENT_BYTES)
                .map_err(|error| vec![error.to_string()])?;
            let catalog = AppPluginCatalog {
                app: &app,
                own: &own,
                standalone: &standalone,
                folder: &folder,
                plugins_folder: &plugins_folder,
            };
            check_document(&graphs.display().to_string(), &text, &catalog).map_err(
                |problems| -> Vec<String> { problems.iter().map(ToString::to_string).collect() },
            )
        };
        let checked = tokio::task::spawn_blocking(check).await;
        let graphs = checked
            .map_err(|error| vec![format!("the check of the graphs did not end: {error}")])??;
        let names: Vec<String> = graphs.iter().flat_map(names::problems).collect();
        let limits = self.config.limits.graphs();
        let graphs = graphs.into_iter().map(|graph| graph.with_limits(limits)).collect();
        if names.is_empty() || self.is_archived { Ok(graphs) } else { Err(names) }
    }

    /// Reads the migrations that the host applies.
    fn migrations(&self) -> Result<Vec<DatabaseMigrations>, Vec<String>> {
        let refused = self.manifest.refused_migrations(self.config, self.tables);
        let mut problems: Vec<String> = refused.iter().map(ToString::to_string).collect();
        let mut total = TotalSize::new("the migrations of the app", MIGRATIONS_BYTES);
        let mut found = Vec::new();
        for (database, folders) in &self.manifest.migrations {
            let configured = self.config.sql.get(database);
            if configured.is_some_and(|it| it.migrate == MigrateRule::Nobody) {
                continue;
            }
            match self.scripts(database, folders, &mut total) {
                Ok(scripts) => {
                    found.push(DatabaseMigrations { database: database.clone(), scripts });
                }
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(found) } else { Err(problems) }
    }

    /// Reads the migrations in the folder for the dialect of a database.
    fn scripts(
        &self,
        database: &str,
        folders: &BTreeMap<String, PathBuf>,
        total: &mut TotalSize,
    ) -> Result<Vec<Script>, String> {
        let app = self.manifest.app.name.as_str();
        let folder = self.databases.migration_folder(app, database, folders);
        let folder = folder.map_err(|error| error_chain(&error))?;
        self.scripts_in(folder, total).map_err(|error| error.to_string())
    }

    /// Reads the migrations in a folder. If the total size of the files exceeds `total`, no file is
    /// read, because a sparse file can have any size.
    fn scripts_in(&self, folder: &Path, total: &mut TotalSize) -> Result<Vec<Script>, FileError> {
        let mut entries = file::list(self.folder, folder)?;
        entries.retain(|entry| entry.has_ending("sql"));
        let mut listed = total.clone();
        entries.iter().try_for_each(|entry| listed.add(entry.bytes))?;
        let script = |entry: &Entry| {
            let path = folder.join(entry.path.file_name().unwrap_or_default());
            let text = file::read_text(self.folder, &path, MIGRATION_BYTES)?;
            total.add(text.len() as u64)?;
            Ok(Script { path, text })
        };
        entries.iter().map(script).collect()
    }
}

/// Loads all components of an app for a command, without a limit on compilations, which are
/// printed. Returns the plugins, and the components that cannot be loaded.
pub async fn components(
    files: &ComponentFiles,
    manifest: &Manifest,
    sandbox: &dyn Sandbox,
) -> (Plugins, BTreeMap<PluginName, Unloaded>) {
    let (mut plugins, mut unloaded) = (Plugins::new(), BTreeMap::new());
    for (name, location) in files {
        let (is_built, mut turn) = (manifest.is_built(name), Turn::unlimited(Output::note));
        let loaded = plugin_file::load_as(sandbox, name, location, is_built, &mut turn).await;
        // In a turn without limits, every component is compiled.
        let compiled =
            |it: Option<_>| it.ok_or_else(|| HintedMessage::plain("it was not compiled"));
        match loaded.and_then(compiled) {
            Ok(plugin) => drop(plugins.insert(name.clone(), plugin)),
            Err(reason) => {
                unloaded.insert(name.clone(), Unloaded { path: location.path(), reason });
            }
        }
    }
    (plugins, unloaded)
}

/// Loads all components. Returns `None` if one of them needs another turn. `built` is the manifest
/// of the app if `wattle build` can make its components.
///
/// # Errors
///
/// One message for each component that cannot be loaded in this turn.
pub(super) async fn components_in_turn(
    files: &ComponentFiles,
    built: Option<&Manifest>,
    sandbox: &dyn Sandbox,
    turn: &mut Turn,
) -> Result<Option<Plugins>, Vec<String>> {
    let (mut plugins, mut problems, mut is_complete) = (Plugins::new(), Vec::new(), true);
    for (name, location) in files {
        let is_built = built.is_some_and(|manifest| manifest.is_built(name));
        match plugin_file::load_as(sandbox, name, location, is_built, turn).await {
            Ok(Some(plugin)) => drop(plugins.insert(name.clone(), plugin)),
            Ok(None) => is_complete = false,
            Err(reason) => problems.push(reason.to_string()),
        }
    }
    if problems.is_empty() { Ok(is_complete.then_some(plugins)) } else { Err(problems) }
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
