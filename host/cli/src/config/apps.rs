//! `[apps.<name>]`: the operator's settings of an app.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};
use wattle_graph::id::PluginName;

/// `[apps.<name>]`. The operator trusts an app that has this section: a plugin of the app that has
/// no section under `[grants]` is granted everything that it requests. The section applies to one
/// folder, and no app of this name can be loaded from another folder.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AppConfig {
    /// Folder of the app, if it is not in the plugins folder.
    pub path: Option<PathBuf>,
    /// Path at which the endpoints are mounted on the main address, in addition to `/apps/<name>`.
    pub mount: Option<String>,
    /// Listen address that serves only this app.
    pub listen: Option<SocketAddr>,
    /// Settings that override those of the app, key by key.
    pub settings: Map<String, Value>,
    /// Component files that replace those of the app, by plugin name.
    pub components: BTreeMap<PluginName, PathBuf>,
    /// Settings of the app's file projections, by their name in `app.toml`.
    pub files: BTreeMap<String, FilesConfig>,
}

/// `[apps.<name>.files.<files>]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilesConfig {
    /// Folder that overrides the folder that the app selects. Relative to the data folder.
    pub dir: Option<PathBuf>,
    /// Environment variable that contains the folder and takes precedence if it is set. Without
    /// `dir` and `dir_env`, the variable is the name of the file projection in capitals with the
    /// suffix `_LOG_DIR`.
    pub dir_env: Option<String>,
    /// Whether the files of the projection are written. Default: true.
    pub enabled: bool,
}

impl Default for FilesConfig {
    fn default() -> Self {
        Self { dir: None, dir_env: None, enabled: true }
    }
}
