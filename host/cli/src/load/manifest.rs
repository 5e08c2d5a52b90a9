//! `app.toml`: the parts of an app, and the permissions that it requests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};
use wattle_graph::id::{AppName, PluginName};
use wattle_graph::mapping::FileProjection;
use wattle_run::ports::store::UNBOUND;

use crate::config::{AppConfig, Config, Needs};
use crate::load::file::{self, FilePlace, MANIFEST_BYTES};
use crate::load::limits::APP_COMPONENTS;
use crate::load::migrations::{MigrationRequest, NotPermitted};

/// Name of the manifest file.
pub const FILE: &str = "app.toml";

/// Files of components by plugin name.
pub type ComponentFiles = BTreeMap<PluginName, FilePlace>;

/// The content of `app.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// `[app]`.
    pub app: AppTable,
    /// Component files by plugin name, relative to the app folder.
    #[serde(default)]
    pub components: BTreeMap<PluginName, PathBuf>,
    /// Permissions that the app requests.
    #[serde(default)]
    pub needs: Needs,
    /// Migration folders by database and dialect, relative to the app folder.
    #[serde(default)]
    pub migrations: BTreeMap<String, BTreeMap<String, PathBuf>>,
    /// File projections by name.
    #[serde(default)]
    pub files: BTreeMap<String, FileProjection>,
    /// Settings of the app, without secrets.
    #[serde(default)]
    pub settings: Map<String, Value>,
    /// `[page]`.
    #[serde(default)]
    pub page: Option<PageTable>,
}

/// `[page]`: the web page of the app.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageTable {
    /// Title in lists of apps.
    pub title: String,
    /// Example inputs that the page offers.
    #[serde(default)]
    pub examples: Vec<String>,
    /// Folder with the built files, relative to the app folder.
    pub folder: PathBuf,
    /// Entry document that a browser loads, relative to the folder.
    #[serde(default = "entry_file")]
    pub entry: String,
    /// Patterns of the paths that return the entry document.
    #[serde(default = "root_path")]
    pub paths: Vec<String>,
}

fn entry_file() -> String {
    "index.html".into()
}

fn root_path() -> Vec<String> {
    vec!["/".into()]
}

/// `[app]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppTable {
    /// Name of the app.
    pub name: AppName,
    /// Version of the app.
    pub version: String,
    /// Description of the app.
    #[serde(default)]
    pub doc: String,
    /// Plugin with the endpoints of the app.
    #[serde(default)]
    pub web: Option<PluginName>,
    /// File with the graphs, relative to the app folder.
    #[serde(default = "graph_file")]
    pub graphs: PathBuf,
}

fn graph_file() -> PathBuf {
    "graph.toml".into()
}

impl Manifest {
    /// Reads the manifest in an app folder.
    ///
    /// # Errors
    ///
    /// A message that names the file and, if known, the line.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let text = file::read_text(folder, Path::new(FILE), MANIFEST_BYTES)
            .map_err(|error| error.to_string())?;
        Self::parse(&text).map_err(|error| format!("{FILE}: {error}"))
    }

    /// Parses a manifest.
    ///
    /// # Errors
    ///
    /// A message that names the line, if known.
    pub fn parse(text: &str) -> Result<Self, String> {
        let manifest: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
            let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            format!("{place}{}", error.message())
        })?;
        if manifest.app.name.as_str() == UNBOUND {
            return Err(format!(
                "the app name `{UNBOUND}` is reserved for threads without a graph"
            ));
        }
        if manifest.components.len() > APP_COMPONENTS {
            return Err(format!(
                "`[components]` has more than {APP_COMPONENTS} components\n  hint: put several \
                 nodes into one component, or split the app"
            ));
        }
        Ok(manifest)
    }

    /// Returns true if the app has graphs. An app that consists of a page needs no graphs.
    pub fn has_graphs(&self, folder: &Path) -> bool {
        let is_page = self.page.is_some() && self.components.is_empty();
        // Any entry at this path counts, because reading the graphs reports its problems.
        !is_page || folder.join(&self.app.graphs).symlink_metadata().is_ok()
    }

    /// Returns the component files. Files of the operator take precedence over those of the app.
    pub fn component_files(&self, folder: &Path, config: &Config) -> ComponentFiles {
        let operator = config.apps.get(&self.app.name);
        let place = |(name, file): (&PluginName, &PathBuf)| {
            let place = match operator.and_then(|app| app.components.get(name)) {
                Some(path) => FilePlace::Named(config.base.join(path)),
                None => FilePlace::Inside { folder: folder.to_owned(), path: file.clone() },
            };
            (name.clone(), place)
        };
        self.components.iter().map(place).collect()
    }

    /// Returns the databases that the app would change by its migrations and may not.
    pub fn refused_migrations(&self, config: &Config) -> Vec<NotPermitted> {
        let plugins = self.components.keys().collect();
        let request = MigrationRequest { app: &self.app.name, plugins, needs: &self.needs };
        let databases = self.migrations.keys();
        databases.filter_map(|database| request.refusal(database, config)).collect()
    }

    /// Returns the settings of the app, overridden by those of the operator.
    pub fn merged_settings(&self, app: Option<&AppConfig>) -> Value {
        let mut settings = self.settings.clone();
        settings.extend(app.map(|app| app.settings.clone()).unwrap_or_default());
        Value::Object(settings)
    }
}

/// Returns the component files of an app. Returns none if its manifest is invalid.
pub(super) fn component_files(config: &Config, folder: &Path) -> Vec<FilePlace> {
    let manifest = Manifest::read(folder);
    manifest.map_or_else(
        |_| Vec::new(),
        |manifest| manifest.component_files(folder, config).into_values().collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_manifest_is_read() {
        let manifest = Manifest::parse(
            r#"
            [app]
            name = "asset"
            version = "0.1.0"
            doc = "adds assets"
            web = "asset"
            [components]
            asset = "asset.wasm"
            [needs]
            llm  = ["vision", "chat", "light"]
            http = [{ host = "api.massive.com", methods = ["GET"], secrets = ["MASSIVE_API_KEY"] }]
            sql  = [{ database = "asset", access = "read-write" }]
            [migrations.asset]
            sqlite = "migrations/sqlite"
            postgres = "migrations/postgres"
            [settings]
            massive_base_url = "https://api.massive.com"
            "#,
        )
        .unwrap();
        assert_eq!(manifest.app.graphs, Path::new("graph.toml"));
        let mut config = AppConfig::default();
        config.settings.insert("massive_base_url".into(), "http://127.0.0.1:9".into());
        let settings = manifest.merged_settings(Some(&config));
        assert_eq!(settings["massive_base_url"], "http://127.0.0.1:9");
    }

    #[test]
    fn problems_name_the_line() {
        let error = Manifest::parse("[app]\nname = \"a\"\nversion = \"1\"\ncolour = 1\n");
        let error = error.unwrap_err();
        assert!(error.starts_with("line 4: ") && error.contains("colour"), "{error}");
    }

    #[test]
    fn the_number_of_components_is_limited() {
        let manifest = |components: usize| {
            let lines = (0..components).map(|number| format!("c{number} = \"c.wasm\"\n"));
            let lines: String = lines.collect();
            let head = "[app]\nname = \"a\"\nversion = \"1\"\n[components]\n";
            Manifest::parse(&format!("{head}{lines}"))
        };
        assert_eq!(manifest(APP_COMPONENTS).unwrap().components.len(), APP_COMPONENTS);
        let error = manifest(APP_COMPONENTS + 1).unwrap_err();
        assert!(error.contains("more than 32 components"), "{error}");
    }
}
