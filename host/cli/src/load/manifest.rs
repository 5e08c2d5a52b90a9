//! `app.toml`: what an app consists of and what it asks for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};
use wattle_graph::id::{AppName, PluginName};
use wattle_graph::mapping::FileMapping;
use wattle_run::ports::store::BLANK;

use crate::config::{AppConfig, Config, Needs};
use crate::load::file::{self, FilePlace, MANIFEST_BYTES};

/// The name of the file.
pub const FILE: &str = "app.toml";

/// Files of components by plugin name.
pub type ComponentFiles = BTreeMap<PluginName, FilePlace>;

/// A whole `app.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// `[app]`.
    pub app: AppTable,
    /// Component files by plugin name, relative to the folder.
    #[serde(default)]
    pub components: BTreeMap<PluginName, PathBuf>,
    /// What it asks for.
    #[serde(default)]
    pub needs: Needs,
    /// Migration folders by database and dialect, relative to the folder.
    #[serde(default)]
    pub migrations: BTreeMap<String, BTreeMap<String, PathBuf>>,
    /// Files that its events become.
    #[serde(default)]
    pub files: BTreeMap<String, FileMapping>,
    /// Non-secret settings.
    #[serde(default)]
    pub settings: Map<String, Value>,
    /// `[page]`.
    #[serde(default)]
    pub page: Option<PageTable>,
}

/// `[page]`: the page that the app's users see.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageTable {
    /// Its title, for lists of apps.
    pub title: String,
    /// Inputs that a newcomer can try.
    #[serde(default)]
    pub examples: Vec<String>,
    /// The folder with its built files, relative to that of the app.
    pub folder: PathBuf,
    /// The document that a browser shows, in that folder.
    #[serde(default = "entry_file")]
    pub entry: String,
    /// Patterns of the paths at which the document is shown.
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
    /// Its name.
    pub name: AppName,
    /// Its version.
    pub version: String,
    /// What it is for.
    #[serde(default)]
    pub doc: String,
    /// The plugin that answers its endpoints.
    #[serde(default)]
    pub web: Option<PluginName>,
    /// The file with its graphs.
    #[serde(default = "graph_file")]
    pub graphs: PathBuf,
}

fn graph_file() -> PathBuf {
    "graph.toml".into()
}

impl Manifest {
    /// Reads the manifest of a folder.
    ///
    /// # Errors
    ///
    /// A sentence that names the file, and the line where there is one.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let text = file::read_text(folder, Path::new(FILE), MANIFEST_BYTES)
            .map_err(|error| error.to_string())?;
        Self::parse(&text).map_err(|error| format!("{FILE}: {error}"))
    }

    /// Reads the text of a manifest.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong, with the line where there is one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let manifest: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
            let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            format!("{place}{}", error.message())
        })?;
        if manifest.app.name.as_str() == BLANK {
            return Err(format!("no app may be called `{BLANK}`: threads without a graph are"));
        }
        Ok(manifest)
    }

    /// Whether the app has graphs. One that only has a page needs none.
    pub fn has_graphs(&self, folder: &Path) -> bool {
        let is_page = self.page.is_some() && self.components.is_empty();
        // Whatever is there is wanted: reading it says what is wrong with it.
        !is_page || folder.join(&self.app.graphs).symlink_metadata().is_ok()
    }

    /// Where the components are: the operator's word goes before that of the app.
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

    /// Settings with those of the operator in place of the app's own.
    pub fn merged_settings(&self, app: Option<&AppConfig>) -> Value {
        let mut settings = self.settings.clone();
        settings.extend(app.map(|app| app.settings.clone()).unwrap_or_default());
        Value::Object(settings)
    }
}

/// Component files of an app, as far as its manifest can be read.
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
}
