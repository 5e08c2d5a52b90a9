//! Requested and granted permissions of a plugin, in one format.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use wattle_graph::definition::HumanDuration;
use wattle_graph::id::PluginName;
use wattle_run::grant::{
    FolderAccess, FolderRule, GrantKey, HttpRule, InDoubtPolicy, MemoryRule, SqlRule, ToolGrant,
};
use wattle_run::limit::Limits;

use crate::config::sql_grant::{self, SqlGrant};
use crate::config::{ByteSize, Config, ConfigProblem};
use crate::paths::{leads_through, resolve_links};

/// Requested permissions in `[needs]` of an app, or granted permissions in a table of the operator
/// under `[grants]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GrantSpec {
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
    /// Permissions that an app requests for standalone plugins; only in `app.toml`.
    pub plugins: BTreeMap<PluginName, GrantSpec>,
}

impl GrantSpec {
    /// Returns the rules by database. If a database has two entries, their rules are intersected.
    pub fn databases(&self) -> BTreeMap<String, SqlRule> {
        sql_grant::rules_by_database(&self.sql)
    }

    /// Makes the paths of folders absolute and resolves symbolic links, so that the host opens the
    /// same folder that it has checked.
    pub(super) fn resolve(&mut self, base: &Path) {
        for folder in &mut self.folders {
            folder.path = resolve_links(&base.join(&folder.path));
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
                let message = "this is not a valid environment variable".to_owned();
                add(key, message, "use a name without `=`, and text without the character NUL");
            }
        }
        let mut guest_paths = BTreeSet::new();
        for folder in &self.folders {
            let key = format!("grants.{table}.folders");
            let guest = &folder.guest;
            if !guest.starts_with('/') || guest.contains('\0') {
                let message = format!("`{guest}` is not an absolute path");
                add(key.clone(), message, "write `guest` as `/data`");
            }
            if !guest_paths.insert(guest) {
                let message = format!("two folders have the path `{guest}`");
                add(key.clone(), message, "give each folder a `guest` of its own");
            }
            if folder.path.components().any(|part| part == Component::ParentDir) {
                let message = format!("`{}` has `..` in it", folder.path.display());
                add(key, message, "create the folder, or write its path without `..`");
                continue;
            }
            if let Some(what) = config.overlapping_host_part(&folder.path) {
                let message = format!("`{}` and {what} overlap", folder.path.display());
                add(key.clone(), message, "grant a folder that contains no part of the host");
            }
            if folder.access == FolderAccess::ReadWrite
                && let Some(files) = config.files_folder_through(&folder.path)
            {
                let message = format!(
                    "the path of `{}`, to which files of an app are written, leads through `{}`",
                    files.display(),
                    folder.path.display()
                );
                add(key, message, "grant the folder as `read-only`, or move one of them");
            }
        }
    }
}

/// Checks that no granted folder is within another folder that a component may write to, because
/// the component could replace the inner folder with another folder or a link. The paths are
/// relative to `base` and not yet resolved, because links on the way to a folder must not be
/// replaceable either.
pub(super) fn check_nesting(
    grants: &BTreeMap<GrantKey, GrantSpec>,
    base: &Path,
    problems: &mut Vec<ConfigProblem>,
) {
    let is_writable = |folder: &&FolderRule| folder.access == FolderAccess::ReadWrite;
    let writable = grants.values().flat_map(|needs| &needs.folders).filter(is_writable);
    let writable: Vec<PathBuf> =
        writable.map(|folder| resolve_links(&base.join(&folder.path))).collect();
    for (table, needs) in grants {
        for folder in &needs.folders {
            let path = base.join(&folder.path);
            if let Some(outer) = writable.iter().find(|outer| leads_through(&path, outer)) {
                problems.push(ConfigProblem {
                    key: format!("grants.{table}.folders"),
                    message: format!(
                        "the path `{}` leads through `{}`, where a component may write",
                        path.display(),
                        outer.display()
                    ),
                    hint: Some(
                        "grant the outer folder alone, or as `read-only`, or move one of them"
                            .to_owned(),
                    ),
                });
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    /// Returns the problems of a file in which each table grants a folder: its path and its access.
    fn problems(base: &Path, head: &str, folders: &[(&str, &str)]) -> String {
        let mut text = head.to_owned();
        for (index, (path, access)) in folders.iter().enumerate() {
            let folder = format!("{{ path = {path:?}, guest = \"/data\", access = {access:?} }}");
            text.push_str(&format!("\n[grants.p{index}]\nfolders = [{folder}]\n"));
        }
        parse(&text, base).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_folder_within_a_writable_folder_is_refused() {
        let of = |outer: &str, inner: &str| {
            let folders = [("work", outer), (inner, "read-only")];
            problems(Path::new("/base"), "", &folders)
        };
        for inner in ["work/cache", "work/a/b"] {
            let refused = of("read-write", inner);
            assert!(refused.contains("`grants.p1.folders`"), "{refused}");
            assert!(refused.contains("leads through `/base/work`"), "{refused}");
            assert_eq!(of("read-only", inner), "");
        }
        for beside in ["work", "work2", "."] {
            assert!(!of("read-write", beside).contains("leads through"), "{beside}");
        }
    }

    #[test]
    fn files_of_apps_are_not_written_through_a_writable_folder() {
        let of = |granted: &str, access: &str, dir: &str| {
            let head = format!("[apps.desk.files.log]\ndir = {dir:?}\n");
            problems(Path::new("/base"), &head, &[(granted, access)])
        };
        let refused = of("out", "read-write", "/base/out/logs");
        assert!(refused.contains("`grants.p0.folders`"), "{refused}");
        assert!(refused.contains("`/base/out/logs`, to which files of an app"), "{refused}");
        assert_eq!(of("out", "read-only", "/base/out/logs"), "");
        assert_eq!(of("out", "read-write", "/base/out"), "");
        // Files in the data folder are safe, because the host follows no link there.
        assert_eq!(of("data/out", "read-write", "out/logs"), "");
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_to_a_folder_or_to_parts_of_the_host_are_checked() {
        use std::fs::{create_dir_all, write};
        use std::os::unix::fs::symlink;

        use crate::config::read;

        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in ["disk/blobs", "etc", "host/data", "host/plugins", "links", "other", "work"] {
            create_dir_all(root.join(path)).unwrap();
        }
        symlink("../../disk/blobs", root.join("host/data/blobs")).unwrap();
        symlink("../host/plugins", root.join("links/plugins")).unwrap();
        symlink("../other", root.join("work/link")).unwrap();
        let head = "data = \"host/data\"\nplugins = \"links/plugins\"\n";
        for (folders, what) in [
            (&[("links", "read-write")][..], "the plugins folder"),
            (&[("links/plugins/new", "read-only")][..], "the plugins folder"),
            (&[("disk", "read-write")][..], "`blobs` in the data folder"),
            (&[("disk/blobs/new", "read-only")][..], "`blobs` in the data folder"),
            (&[("work", "read-write"), ("work/link", "read-only")][..], "leads through"),
        ] {
            let refused = problems(&root, head, folders);
            assert!(refused.contains(what), "{folders:?}: {refused}");
        }
        let host = root.join("host");
        let text = format!(
            "data = {:?}\nplugins = {:?}\n[grants.p]\nfolders = [{{ path = \".\", guest = \"/\" }}]",
            host.join("data"),
            host.join("plugins")
        );
        write(root.join("real.toml"), text).unwrap();
        symlink("../real.toml", root.join("etc/wattle.toml")).unwrap();
        let refused = read(Some(&root.join("etc/wattle.toml"))).unwrap_err().to_string();
        assert!(refused.contains("the configuration file"), "{refused}");
    }
}
