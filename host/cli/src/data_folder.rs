//! The host's own files and folders in the data folder.
//!
//! Apps can also write files to the data folder, by `[files.<name>]` in `app.toml`. Code that
//! writes a file of the host uses the constants of this module, and [`HostFiles`] prevents that
//! files of apps have any of these names.

use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io;
use std::path::{Path, PathBuf};

use wattle_store::{BACKUPS_FOLDER, BLOBS_FOLDER};

/// File of the store.
pub(crate) const STORE_FILE: &str = "wattle.redb";

/// File of the long-term memory.
pub(crate) const MEMORY_FILE: &str = "memory.redb";

/// File with the model routes of tenants.
pub(crate) const TENANT_ROUTES_FILE: &str = "tenant-routes.json";

/// File with the address of the running server.
pub(crate) const SERVER_FILE: &str = "server.json";

/// File with the secret that signs links to blobs.
pub(crate) const LINK_KEY_FILE: &str = "link.key";

/// File with the secret that signs compiled code. The file is not in the folder of the compiled
/// code, because the secret protects the files of that folder.
pub(crate) const CACHE_KEY_FILE: &str = "cache.key";

/// Folder of compiled code.
pub(crate) const CACHE_FOLDER: &str = "cache";

/// Folder of archived versions of apps.
pub(crate) const VERSIONS_FOLDER: &str = "versions";

/// File that `wattle doctor` writes to check that the data folder is writable.
pub(crate) const PROBE_FILE: &str = ".probe";

/// All names above, and the folders of the store.
const NAMES: [&str; 11] = [
    STORE_FILE,
    MEMORY_FILE,
    TENANT_ROUTES_FILE,
    SERVER_FILE,
    LINK_KEY_FILE,
    CACHE_KEY_FILE,
    CACHE_FOLDER,
    VERSIONS_FOLDER,
    PROBE_FILE,
    BLOBS_FOLDER,
    BACKUPS_FOLDER,
];

/// Character after the name of a file in the names of drafts, markers and locks beside it, such as
/// `wattle.redb.lock`.
const NAME_SEPARATOR: char = '.';

/// Character after the name of a database in the names of files that SQLite writes beside it, such
/// as `notes.db-wal`.
const DATABASE_SEPARATOR: char = '-';

/// Creates a folder that only its owner can access, together with missing parents. A folder that
/// exists keeps its permissions. The data folder contains data of people, and compiled code that is
/// executed without further checks.
///
/// # Errors
///
/// Those of the file system.
pub(crate) fn make_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// The host's own files and folders in a data folder.
#[derive(Debug)]
pub(crate) struct HostFiles {
    data: PathBuf,
    files: Vec<HostFile>,
}

/// A file or folder of the host.
#[derive(Debug)]
struct HostFile {
    /// Path in the data folder.
    path: PathBuf,
    /// The character that follows the name in the names of the files beside this file or folder.
    separator: char,
}

impl HostFiles {
    /// Returns the files and folders of the host in a data folder, including the files of
    /// `databases` and the plugins folder if they are in the data folder.
    pub(crate) fn new(
        data: &Path,
        databases: impl IntoIterator<Item = PathBuf>,
        plugins: &Path,
    ) -> Self {
        let below = |path: &Path| {
            let path = path.strip_prefix(data).ok()?;
            // An empty path is the data folder itself, to which apps may write.
            (!path.as_os_str().is_empty()).then(|| path.to_owned())
        };
        let names = NAMES.iter().map(|name| (PathBuf::from(name), NAME_SEPARATOR));
        let databases = databases.into_iter().filter_map(|path| below(&path));
        let files = names
            .chain(databases.map(|path| (path, DATABASE_SEPARATOR)))
            .chain(below(plugins).map(|path| (path, NAME_SEPARATOR)))
            .map(|(path, separator)| HostFile { path, separator })
            .collect();
        Self { data: data.to_owned(), files }
    }

    /// Returns the paths of all files and folders of the host, relative to the data folder.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }

    /// Returns a file or folder of the host that files below `folder` could overwrite, or that
    /// could contain them. `fixed` contains the first components of the paths of all these files.
    pub(crate) fn conflicting(&self, folder: &Path, fixed: &[String]) -> Option<&Path> {
        let inside = folder.strip_prefix(&self.data).ok()?;
        let target = inside.iter().chain(fixed.iter().map(OsStr::new));
        let target: Vec<String> = target.map(case_folded).collect();
        let conflict = self.files.iter().find(|file| file.conflicts_with(&target));
        conflict.map(|file| file.path.as_path())
    }
}

impl HostFile {
    /// Returns true if a path is this file or folder of the host, a file beside it, a path in it,
    /// or a folder that contains it.
    fn conflicts_with(&self, target: &[String]) -> bool {
        let mut names = self.path.iter().map(case_folded).peekable();
        for part in target {
            let Some(name) = names.next() else { return true };
            let is_last = names.peek().is_none();
            match part.strip_prefix(name.as_str()) {
                Some("") => {}
                Some(rest) if is_last && rest.starts_with(self.separator) => {}
                _ => return false,
            }
        }
        true
    }
}

/// Folds the case of a name, like file systems that ignore case. Some letters, such as `ſ`, equal
/// an ASCII letter in upper case only.
fn case_folded(name: &OsStr) -> String {
    name.to_string_lossy().to_uppercase().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conflict(dir: &str, fixed: &[&str]) -> Option<String> {
        let databases = ["/data/notes.db", "/data/sub/main.db", "/var/other.db"].map(PathBuf::from);
        let files = HostFiles::new(Path::new("/data"), databases, Path::new("/data/plugins"));
        let fixed: Vec<String> = fixed.iter().map(|&part| part.to_owned()).collect();
        let conflict = files.conflicting(&Path::new("/data").join(dir), &fixed);
        conflict.map(|path| path.display().to_string())
    }

    #[test]
    fn every_host_name_conflicts_in_any_case_and_with_a_suffix() {
        for name in NAMES {
            for dir in [
                name.to_owned(),
                format!("{name}/logs"),
                name.to_uppercase(),
                format!("{name}.new"),
                format!("./{name}"),
            ] {
                assert_eq!(conflict(&dir, &[]).as_deref(), Some(name), "{dir}");
            }
            assert_eq!(conflict("", &[name, "logs"]).as_deref(), Some(name));
        }
        assert_eq!(conflict("blob\u{17f}", &[]).as_deref(), Some("blobs"));
    }

    #[test]
    fn databases_and_plugins_in_the_data_folder_conflict() {
        assert_eq!(conflict("notes.db", &[]).as_deref(), Some("notes.db"));
        assert_eq!(conflict("notes.db-wal", &[]).as_deref(), Some("notes.db"));
        assert_eq!(conflict("sub/main.db-journal/x", &[]).as_deref(), Some("sub/main.db"));
        assert_eq!(conflict("plugins/asset", &[]).as_deref(), Some("plugins"));
        // A placeholder in the next component of the path can have any value.
        assert_eq!(conflict("sub", &[]).as_deref(), Some("sub/main.db"));
        assert_eq!(conflict("sub", &["logs"]), None);
    }

    #[test]
    fn files_in_the_data_folder_itself_conflict_unless_all_are_in_a_folder_of_another_name() {
        assert!(conflict("", &[]).is_some() && conflict(".", &[]).is_some());
        assert_eq!(conflict("", &["logs"]), None);
    }

    #[test]
    fn folders_without_files_of_the_host_do_not_conflict() {
        for dir in ["local_logs/node_io", "blobs2", "cached", "logs/blobs", "/blobs", "/var/data"] {
            assert_eq!(conflict(dir, &[]), None, "{dir}");
        }
    }
}
