//! The folder of an app, and the app that is loaded from the folder.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use wattle_graph::id::PluginName;
use wattle_run::app::App;
use wattle_run::ports::{Plugin, Sandbox};
use wattle_sql::Databases;

use crate::config::Config;
use crate::load::grants::GrantTables;
use crate::load::manifest::{ComponentFiles, Manifest};
use crate::load::migrations::DatabaseMigrations;

/// Plugins by name.
pub type Plugins = BTreeMap<PluginName, Arc<dyn Plugin>>;

/// The folder of an app, and everything that is required to load the app.
pub struct AppFolder<'a> {
    /// Path of the folder.
    pub folder: &'a Path,
    /// Content of `app.toml`.
    pub manifest: &'a Manifest,
    /// Files of its components.
    pub files: &'a ComponentFiles,
    /// Whether the migrations of the app are ignored. This is the case for an archived version,
    /// whose migrations were applied when it was the current version, and for an app of a replay,
    /// which applies no migrations.
    pub is_archived: bool,
    /// Configuration of the operator.
    pub config: &'a Config,
    /// Tables of grants of the operator.
    pub tables: &'a GrantTables,
    /// Sandbox that loads components.
    pub sandbox: &'a dyn Sandbox,
    /// Databases, whose dialects determine which migrations are read.
    pub databases: &'a Databases,
    /// Standalone plugins of the plugins folder.
    pub standalone: &'a Plugins,
}

/// An app that is ready to run.
pub struct LoadedApp {
    /// The app.
    pub app: App,
    /// Notes for the operator.
    pub notes: Vec<String>,
    /// Migrations that must be applied before the app is used.
    pub migrations: Vec<DatabaseMigrations>,
}
