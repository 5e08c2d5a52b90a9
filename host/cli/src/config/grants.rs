//! Requested and granted permissions of a plugin, in one format.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use wattle_graph::definition::HumanDuration;
use wattle_graph::id::PluginName;
use wattle_run::grant::{
    FolderRule, GrantKey, HttpRule, InDoubtPolicy, MemoryRule, SqlRule, ToolGrant,
};
use wattle_run::limit::Limits;

use crate::config::sql_grant::{self, SqlGrant};
use crate::config::{ByteSize, Config, ConfigProblem};

/// Requested permissions in `[needs]` of an app, or granted ones in a table under `[grants]` of the
/// operator.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Needs {
    /// Model routes that the plugin can call.
    pub llm: BTreeSet<String>,
    /// Hosts to which the plugin can send HTTP requests.
    pub http: Vec<HttpRule>,
    /// Databases that the plugin can access.
    pub sql: Vec<SqlGrant>,
    /// Tools of other plugins and of MCP servers, such as `date/parse` or `mcp:graph/*`.
    pub tools: BTreeSet<ToolGrant>,
    /// Namespaces of the long-term memory, such as
    /// `{ namespace = ["users"], access = "read-write" }`.
    pub memory: BTreeSet<MemoryRule>,
    /// Model routes that a web handler may set for a tenant.
    pub tenant_routes: BTreeSet<String>,
    /// Policy for calls in doubt: `fail` (default), `ask` or `retry`. Only the operator can set it.
    pub in_doubt: InDoubtPolicy,
    /// Resource limits. Default: those of the host.
    pub limits: LimitTable,
    /// Environment variables of a typed component. Only the operator can set them.
    pub environment: BTreeMap<String, String>,
    /// Folders of a typed component. Only the operator can give them.
    pub folders: Vec<FolderRule>,
    /// Permissions that an app requests for plugins of others; only in `app.toml`.
    pub plugins: BTreeMap<PluginName, Needs>,
}

impl Needs {
    /// Returns the rules by database. If a database has two entries, their rules are intersected.
    pub fn databases(&self) -> BTreeMap<String, SqlRule> {
        sql_grant::by_name(&self.sql)
    }

    /// Makes the paths of folders absolute. A link is resolved, so that the folder of the check is
    /// the one that is opened.
    pub(super) fn resolve(&mut self, base: &Path) {
        for folder in &mut self.folders {
            folder.path = resolved(&base.join(&folder.path));
        }
    }

    /// Checks the environment and the folders of a table of grants.
    pub(super) fn check(
        &self,
        table: &GrantKey,
        config: &Config,
        problems: &mut Vec<ConfigProblem>,
    ) {
        let mut add = |key: String, message: String, hint: &str| {
            problems.push(ConfigProblem { key, message, hint: Some(hint.to_owned()) });
        };
        for (name, value) in &self.environment {
            let key = format!("grants.{table}.environment.{name}");
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                let message = "this is no environment variable".to_owned();
                add(key, message, "use a name without `=`, and text without the character NUL");
            }
        }
        let mut places = BTreeSet::new();
        for folder in &self.folders {
            let key = format!("grants.{table}.folders");
            let guest = &folder.guest;
            if !guest.starts_with('/') || guest.contains('\0') {
                let message = format!("`{guest}` is not an absolute path");
                add(key.clone(), message, "write `guest` as `/data`");
            }
            if !places.insert(guest) {
                let message = format!("two folders have the path `{guest}`");
                add(key.clone(), message, "give each folder a `guest` of its own");
            }
            if folder.path.components().any(|part| part == Component::ParentDir) {
                let message = format!("`{}` has `..` in it", folder.path.display());
                add(key, message, "create the folder, or write its path without `..`");
                continue;
            }
            if let Some(what) = config.part_of_host_in(&folder.path) {
                let message = format!("`{}` and {what} overlap", folder.path.display());
                add(key, message, "give a folder that has nothing of the host in it");
            }
        }
    }
}

/// Returns a path with its links resolved; the path itself if it does not exist.
pub(super) fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Resource limits of a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitTable {
    /// Maximum linear memory of a guest. Default: 64 MiB.
    pub memory: Option<ByteSize>,
    /// Maximum CPU time of a guest call. Default: 2 s.
    pub cpu: Option<HumanDuration>,
    /// Timeout of a guest call. Default: 10 minutes.
    pub call_deadline: Option<HumanDuration>,
    /// Maximum number of host calls of a task. Default: 10,000.
    pub host_calls: Option<u32>,
    /// Maximum size of an outcome. Default: 4 MiB.
    pub output: Option<ByteSize>,
}

impl LimitTable {
    /// Returns all limits, with the defaults of the host.
    pub fn limits(&self) -> Limits {
        let defaults = Limits::default();
        Limits {
            memory_bytes: self.memory.map_or(defaults.memory_bytes, |size| size.0),
            cpu_ms: self.cpu.map_or(defaults.cpu_ms, HumanDuration::as_ms),
            node_timeout_ms: self
                .call_deadline
                .map_or(defaults.node_timeout_ms, HumanDuration::as_ms),
            host_calls: self.host_calls.unwrap_or(defaults.host_calls),
            output_bytes: self.output.map_or(defaults.output_bytes, |size| size.0),
            ..defaults
        }
    }
}
