//! Opens the folders that the operator grants a guest.
//!
//! Each guest call opens the folders again. Between two calls, a guest that may write to a folder
//! can replace the entries of the folder, so it is not enough to check a path when the
//! configuration is read. The host therefore resolves a path one part at a time and follows no
//! symbolic link.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use cap_primitives::ambient_authority;
use cap_primitives::fs::{open_ambient_dir, open_dir_nofollow};
use wasmtime_wasi::filesystem::Dir;
use wasmtime_wasi::{FsPerms, OpenMode};
use wattle_graph::failure::{Failure, code};
use wattle_run::grant::{FolderAccess, FolderRule};

/// A folder that a guest may use.
pub(crate) struct OpenFolder {
    pub(crate) dir: Dir,
    /// Path under which the guest finds the folder.
    pub(crate) guest: String,
}

impl OpenFolder {
    /// Opens a granted folder.
    ///
    /// # Errors
    ///
    /// The failure about a folder that cannot be opened, or whose path has a symbolic link.
    pub(crate) fn open(rule: &FolderRule) -> Result<Self, Failure> {
        let (permissions, mode) = match rule.access {
            FolderAccess::ReadOnly => (FsPerms::ReadOnly, OpenMode::READ),
            FolderAccess::ReadWrite => (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE),
        };
        let opened = open_without_links(&rule.path).map_err(|error| unavailable(rule, &error))?;
        Ok(Self { dir: Dir::new(opened, permissions, mode, false), guest: rule.guest.clone() })
    }
}

/// Opens a folder by its absolute path. Returns an error if a part of the path is a symbolic link.
fn open_without_links(path: &Path) -> io::Result<File> {
    let is_root = |part: &Component<'_>| matches!(part, Component::Prefix(_) | Component::RootDir);
    let root: PathBuf = path.components().take_while(is_root).collect();
    let root = open_ambient_dir(&root, ambient_authority())?;
    let mut parts = path.components().skip_while(is_root);
    parts.try_fold(root, |folder, part| open_dir_nofollow(&folder, part.as_ref()))
}

/// Returns the failure about a folder that cannot be opened. Only the log names the path on the
/// host, because the path is for the operator only.
fn unavailable(rule: &FolderRule, error: &io::Error) -> Failure {
    let path = rule.path.display();
    tracing::warn!(
        "the granted folder `{path}` cannot be opened: {error}; each part of its path must be a \
         folder, not a symbolic link"
    );
    let message = format!(
        "the folder `{}` cannot be opened; the log of the host names its path and the reason",
        rule.guest
    );
    Failure::new(code::UNAVAILABLE, message).retryable()
}
