//! `app.toml`: the parts of an app, and the permissions that it requests.

pub mod build;
mod tables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};
use wattle_graph::id::{AppName, PluginName};
use wattle_graph::mapping::FileProjection;
use wattle_graph::suggest;
use wattle_run::ports::store::UNBOUND;

use crate::config::{AppConfig, Config, GrantSpec};
use crate::load::app_request::AppRequest;
use crate::load::file::{self, FileLocation, MANIFEST_BYTES};
use crate::load::grants::GrantTables;
use crate::load::limits::APP_COMPONENTS;
use crate::load::manifest::build::BuildTable;
use crate::load::manifest::tables::Tables;
use crate::load::migrations::{MigrationDenied, MigrationRequest};

pub use self::tables::ManifestProblem;

/// Name of the manifest file.
pub const FILE: &str = "app.toml";

/// Files of components by plugin name.
pub type ComponentFiles = BTreeMap<PluginName, FileLocation>;

/// The names of the tables that the file may have.
const TABLES: [&str; 8] =
    ["app", "components", "needs", "migrations", "files", "settings", "page", "build"];

/// The content of `app.toml`.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// `[app]`.
    pub app: AppTable,
    /// Component files by plugin name, relative to the app folder.
    pub components: BTreeMap<PluginName, PathBuf>,
    /// Permissions that the app requests.
    pub needs: GrantSpec,
    /// Migration folders by database and dialect, relative to the app folder.
    pub migrations: BTreeMap<String, BTreeMap<String, PathBuf>>,
    /// File projections by name.
    pub files: BTreeMap<String, FileProjection>,
    /// Settings of the app, without secrets.
    pub settings: Map<String, Value>,
    /// `[page]`.
    pub page: Option<PageTable>,
    /// `[build]`.
    pub build: Option<BuildTable>,
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
    /// All problems, one after the other, with the path of the file and, if known, the line.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let text = file::read_text(folder, Path::new(FILE), MANIFEST_BYTES)
            .map_err(|error| error.to_string())?;
        Self::parse(&text).map_err(|problems| {
            let path = folder.join(FILE);
            let texts: Vec<String> =
                problems.iter().map(|problem| problem.of_file(&path)).collect();
            texts.join("\n")
        })
    }

    /// Parses a manifest.
    ///
    /// # Errors
    ///
    /// All problems by line.
    pub fn parse(text: &str) -> Result<Self, Vec<ManifestProblem>> {
        let mut tables = Tables::parse(text).map_err(|problem| vec![problem])?;
        let app: Option<AppTable> = tables.take_required("app", &["name", "version"]);
        let components: BTreeMap<PluginName, PathBuf> =
            tables.take("components", &[]).unwrap_or_default();
        let needs = tables.take("needs", &[]).unwrap_or_default();
        let migrations = tables.take("migrations", &[]).unwrap_or_default();
        let files = tables.take("files", &[]).unwrap_or_default();
        let settings = tables.take("settings", &[]).unwrap_or_default();
        let page = tables.take("page", &["title", "folder"]);
        let build: Option<BuildTable> = tables.take("build", &["commands", "outputs"]);
        if app.as_ref().is_some_and(|app| app.name.as_str() == UNBOUND) {
            tables.add(ManifestProblem::new(
                format!("the app name `{UNBOUND}` is reserved for threads without a graph"),
                "give the app another name",
            ));
        }
        if components.len() > APP_COMPONENTS {
            tables.add(ManifestProblem::new(
                format!("`[components]` has more than {APP_COMPONENTS} components"),
                "put several nodes into one component, or split the app",
            ));
        }
        for name in build.iter().flat_map(|build| build.outputs.keys()) {
            if !components.contains_key(name) {
                tables.add(ManifestProblem::new(
                    format!("`[build]` has an output for the component `{name}`"),
                    suggest::hint(
                        name.as_str(),
                        "the components are",
                        components.keys().map(PluginName::as_str),
                    ),
                ));
            }
        }
        let problems = tables.finish(&TABLES);
        match app.filter(|_| problems.is_empty()) {
            Some(app) => {
                Ok(Self { app, components, needs, migrations, files, settings, page, build })
            }
            None => Err(problems),
        }
    }

    /// Returns true if the app has graphs. An app that consists of a page needs no graphs.
    pub fn has_graphs(&self, folder: &Path) -> bool {
        let is_page = self.page.is_some() && self.components.is_empty();
        // Any entry at the path counts as graphs, because reading the graphs reports problems of
        // the entry.
        !is_page || folder.join(&self.app.graphs).symlink_metadata().is_ok()
    }

    /// Returns true if `wattle build` makes the file of a component.
    pub(super) fn is_built(&self, component: &PluginName) -> bool {
        self.build.as_ref().is_some_and(|build| build.outputs.contains_key(component))
    }

    /// Returns the component files. Files of the operator take precedence over those of the app.
    pub fn component_files(&self, folder: &Path, config: &Config) -> ComponentFiles {
        let operator = config.apps.get(&self.app.name);
        let location = |(name, file): (&PluginName, &PathBuf)| {
            let location = match operator.and_then(|app| app.components.get(name)) {
                Some(path) => FileLocation::Named(config.base.join(path)),
                None => FileLocation::Inside { folder: folder.to_owned(), path: file.clone() },
            };
            (name.clone(), location)
        };
        self.components.iter().map(location).collect()
    }

    /// Returns what the app requests.
    pub(super) fn request(&self) -> AppRequest {
        AppRequest {
            app: self.app.name.clone(),
            components: self.components.keys().cloned().collect(),
            needs: self.needs.clone(),
        }
    }

    /// Returns an error for each database that the migrations of the app would change without
    /// permission.
    pub fn refused_migrations(
        &self,
        config: &Config,
        tables: &GrantTables,
    ) -> Vec<MigrationDenied> {
        let plugins = self.components.keys().collect();
        let request = MigrationRequest { app: &self.app.name, plugins, needs: &self.needs };
        let databases = self.migrations.keys();
        databases.filter_map(|database| request.refusal(database, config, tables)).collect()
    }

    /// Returns the settings of the app, overridden by the settings of the operator.
    pub fn merged_settings(&self, app: Option<&AppConfig>) -> Value {
        let mut settings = self.settings.clone();
        settings.extend(app.map(|app| app.settings.clone()).unwrap_or_default());
        Value::Object(settings)
    }
}

/// Returns the component files of an app. Returns an empty list if the manifest is invalid.
pub(super) fn component_files(config: &Config, folder: &Path) -> Vec<FileLocation> {
    let manifest = Manifest::read(folder);
    manifest.map_or_else(
        |_| Vec::new(),
        |manifest| manifest.component_files(folder, config).into_values().collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scaffold::language::Language;

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

    fn problems(text: &str) -> Vec<String> {
        let problems = Manifest::parse(text).unwrap_err();
        problems.iter().map(|problem| problem.of_file(Path::new("notes/app.toml"))).collect()
    }

    #[test]
    fn all_problems_name_the_file_and_the_line() {
        let text = r#"
[app]
name = "notes"
vesion = "1"
colour = 1
[components]
notes = 3
"1x" = "x.wasm"
[needs]
llm = ["chat"]
htpp = []
sql = [{ database = "notes" }, { acces = "read-only" }]
[page]
title = "Notes"
[setings]
a = 1
"#;
        let app = "expected one of `name`, `version`, `doc`, `web`, `graphs`";
        let needs = "expected one of `llm`, `http`, `sql`, `tools`, `memory`, `tenant_routes`, \
                     `in_doubt`, `limits`, `environment`, `folders`, `plugins`";
        let sql = "expected one of `database`, `access`, `tables`, `schema`, `functions`, \
                   `timeout`, `rows`, `bytes`";
        let tables = "the tables are: `app`, `components`, `needs`, `migrations`, `files`, \
                      `settings`, `page`, `build`";
        let expected = [
            format!("4: unknown field `vesion`, {app}\n  hint: did you mean `version`?"),
            format!("5: unknown field `colour`, {app}"),
            "7: invalid type: integer `3`, expected a path".to_owned(),
            "8: `1x` is not a valid plugin name: 1 to 128 of letters, digits, `_`, `-` and `.`, \
             starting with a letter or `_`"
                .to_owned(),
            format!("11: unknown field `htpp`, {needs}\n  hint: did you mean `http`?"),
            format!("12: unknown field `acces`, {sql}\n  hint: did you mean `access`?"),
            "13: `[page]` has no key `folder`".to_owned(),
            format!("15: unknown field `setings`\n  hint: did you mean `settings`? {tables}"),
        ];
        assert_eq!(problems(text), expected.map(|problem| format!("notes/app.toml:{problem}")));
    }

    #[test]
    fn a_manifest_without_its_table_or_with_bad_syntax_has_one_problem() {
        let missing = "notes/app.toml: the table `app` is missing\n  hint: add `[app]`";
        assert_eq!(problems(""), [missing]);
        assert_eq!(problems("app = 1"), ["notes/app.toml:1: `app` must be a table, not integer"]);
        let [syntax]: [String; 1] = problems("[app]\nname = \n").try_into().unwrap();
        assert!(syntax.starts_with("notes/app.toml:2: "), "{syntax}");
        let reserved = format!("[app]\nname = \"{UNBOUND}\"\nversion = \"1\"");
        let [reserved]: [String; 1] = problems(&reserved).try_into().unwrap();
        assert!(reserved.contains("is reserved"), "{reserved}");
        let deep = format!("[settings]\na = {}1{}", "{ b.b = ".repeat(60), "}".repeat(60));
        let expected = "notes/app.toml:2: tables and arrays are nested deeper than 100 levels";
        assert_eq!(problems(&deep), [expected]);
    }

    #[test]
    fn the_build_of_components_is_read_and_checked() {
        let head = "[app]\nname = \"notes\"\nversion = \"1\"\n[components]\nnotes = \"a.wasm\"\n";
        let text = format!(
            "{head}[build]\nsdk = \"python\"\ncommands = [[\"make\", \"all\"]]\n\
             outputs = {{ notes = \"out/a.wasm\" }}\n"
        );
        let build = Manifest::parse(&text).unwrap().build.unwrap();
        assert_eq!(build.sdk, Some(Language::Python));
        assert_eq!(build.commands[0].to_string(), "make all");
        assert_eq!(build.watch, [Path::new("src")]);
        let wrong = format!(
            "{head}[build]\nsdk = \"perl\"\ncommands = [[]]\noutputs = {{ note = \"a.wasm\" }}\n"
        );
        let expected = [
            "7: unknown variant `perl`, expected one of `rust`, `typescript`, `python`, `c`",
            "8: a command is a list that begins with a program, such as `[\"npm\", \"ci\"]`",
        ];
        assert_eq!(problems(&wrong), expected.map(|problem| format!("notes/app.toml:{problem}")));
        let other =
            format!("{head}[build]\ncommands = [[\"make\"]]\noutputs = {{ note = \"a.wasm\" }}\n");
        let [other]: [String; 1] = problems(&other).try_into().unwrap();
        assert!(other.contains("for the component `note`"), "{other}");
        assert!(other.contains("did you mean `notes`?"), "{other}");
    }

    #[test]
    fn the_number_of_reported_problems_is_limited() {
        let keys: String = (0..5_000).map(|number| format!("k{number} = 1\n")).collect();
        let found = problems(&format!("[app]\nname = \"a\"\nversion = \"1\"\n{keys}"));
        assert_eq!(found.len(), 100);
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
        let problems = manifest(APP_COMPONENTS + 1).unwrap_err();
        assert!(problems[0].reason.message.contains("more than 32 components"), "{problems:?}");
    }
}
