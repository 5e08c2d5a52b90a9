//! `[apps.<name>]`: the settings of an operator for an app.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};
use wattle_graph::id::PluginName;

/// `[apps.<name>]`. The operator trusts an app that has this section: a plugin of the app without a
/// `[grants.<plugin>]` gets everything that it requests.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AppConfig {
    /// Folder of the app, if it is not in the plugins folder.
    pub path: Option<PathBuf>,
    /// Mount of its endpoints on the main address. By default, they are only below `/apps/<name>`.
    pub mount: Option<String>,
    /// Address that serves only this app.
    pub listen: Option<SocketAddr>,
    /// Settings that replace those of the app, key by key.
    pub settings: Map<String, Value>,
    /// Component files that replace those of the app.
    pub components: BTreeMap<PluginName, PathBuf>,
    /// Settings of its file projections, by their name in `app.toml`.
    pub files: BTreeMap<String, FilesConfig>,
}

/// `[apps.<name>.files.<files>]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilesConfig {
    /// Folder that replaces the one of the app, relative to the data folder.
    pub dir: Option<PathBuf>,
    /// Environment variable with the folder, which takes precedence if it is set. Without `dir` and
    /// `dir_env`, this is the name of the file projection in capitals with the suffix `_LOG_DIR`.
    pub dir_env: Option<String>,
    /// Whether files are written. Default: true.
    pub enabled: bool,
}

impl Default for FilesConfig {
    fn default() -> Self {
        Self { dir: None, dir_env: None, enabled: true }
    }
}
