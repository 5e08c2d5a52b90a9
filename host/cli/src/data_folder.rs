//! The host's own files and folders in the data folder.
//!
//! Apps can write files to the data folder as well: `[files.<name>]` in `app.toml`. Code that
//! writes a file of the host takes the name of the file from here, and [`OwnFiles`] keeps the files
//! of apps away from all of these names.

use std::ffi::OsStr;
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

/// File with the secret that signs compiled code. It is not in the folder of the compiled code,
/// which it protects.
pub(crate) const CACHE_KEY_FILE: &str = "cache.key";

/// Folder of compiled code.
pub(crate) const CACHE_FOLDER: &str = "cache";

/// Folder of archived versions of apps.
pub(crate) const VERSIONS_FOLDER: &str = "versions";

/// File with which `wattle doctor` checks that the data folder can be written.
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

/// Follows the name of a file in the names of drafts, marks and locks that the host writes beside
/// it, such as `wattle.redb.lock`.
const NAME_MARK: char = '.';

/// Follows the name of a database in the names of files that SQLite writes beside it, such as
/// `notes.db-wal`.
const DATABASE_MARK: char = '-';

/// The host's own files and folders in a data folder.
#[derive(Debug)]
pub(crate) struct OwnFiles {
    data: PathBuf,
    own: Vec<Own>,
}

/// A file or folder of the host.
#[derive(Debug)]
struct Own {
    /// Path in the data folder.
    path: PathBuf,
    /// The character after its name in the names of files beside it.
    mark: char,
}

impl OwnFiles {
    /// Returns the files and folders of the host in a data folder, with those of `databases` and
    /// the plugins folder that are in it.
    pub(crate) fn new(
        data: &Path,
        databases: impl IntoIterator<Item = PathBuf>,
        plugins: &Path,
    ) -> Self {
        let below = |path: &Path| {
            let path = path.strip_prefix(data).ok()?;
            // An empty path is the data folder itself, which is not the host's alone.
            (!path.as_os_str().is_empty()).then(|| path.to_owned())
        };
        let names = NAMES.iter().map(|name| (PathBuf::from(name), NAME_MARK));
        let databases = databases.into_iter().filter_map(|path| below(&path));
        let own = names
            .chain(databases.map(|path| (path, DATABASE_MARK)))
            .chain(below(plugins).map(|path| (path, NAME_MARK)))
            .map(|(path, mark)| Own { path, mark })
            .collect();
        Self { data: data.to_owned(), own }
    }

    /// Returns the paths of all files and folders of the host, from the data folder.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.own.iter().map(|own| own.path.as_path())
    }

    /// Returns the file or folder of the host that a file below `folder` could be, or be in.
    /// `fixed` has the first names of the paths of all files below the folder.
    pub(crate) fn met_by(&self, folder: &Path, fixed: &[String]) -> Option<&Path> {
        let inside = folder.strip_prefix(&self.data).ok()?;
        let target = inside.iter().chain(fixed.iter().map(OsStr::new));
        let target: Vec<String> = target.map(without_case).collect();
        let met = self.own.iter().find(|own| own.is_met_by(&target));
        met.map(|own| own.path.as_path())
    }
}

impl Own {
    /// Returns true if a path leads to this file or folder, to a file beside it, into it, or to a
    /// folder around it.
    fn is_met_by(&self, target: &[String]) -> bool {
        let mut names = self.path.iter().map(without_case).peekable();
        for part in target {
            let Some(name) = names.next() else { return true };
            let is_last = names.peek().is_none();
            match part.strip_prefix(name.as_str()) {
                Some("") => {}
                Some(rest) if is_last && rest.starts_with(self.mark) => {}
                _ => return false,
            }
        }
        true
    }
}

/// Returns a name in the form in which file systems that ignore case compare it. Some letters, such
/// as `ſ`, equal an ASCII letter in upper case only.
fn without_case(name: &OsStr) -> String {
    name.to_string_lossy().to_uppercase().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(dir: &str, fixed: &[&str]) -> Option<String> {
        let databases = ["/data/notes.db", "/data/sub/main.db", "/var/other.db"].map(PathBuf::from);
        let own = OwnFiles::new(Path::new("/data"), databases, Path::new("/data/plugins"));
        let fixed: Vec<String> = fixed.iter().map(|&part| part.to_owned()).collect();
        let met = own.met_by(&Path::new("/data").join(dir), &fixed);
        met.map(|path| path.display().to_string())
    }

    #[test]
    fn every_own_name_is_met_also_in_another_case_and_with_an_ending() {
        for name in NAMES {
            for dir in [
                name.to_owned(),
                format!("{name}/logs"),
                name.to_uppercase(),
                format!("{name}.new"),
                format!("./{name}"),
            ] {
                assert_eq!(met(&dir, &[]).as_deref(), Some(name), "{dir}");
            }
            assert_eq!(met("", &[name, "logs"]).as_deref(), Some(name));
        }
        assert_eq!(met("blob\u{17f}", &[]).as_deref(), Some("blobs"));
    }

    #[test]
    fn databases_and_plugins_in_the_data_folder_are_met() {
        assert_eq!(met("notes.db", &[]).as_deref(), Some("notes.db"));
        assert_eq!(met("notes.db-wal", &[]).as_deref(), Some("notes.db"));
        assert_eq!(met("sub/main.db-journal/x", &[]).as_deref(), Some("sub/main.db"));
        assert_eq!(met("plugins/asset", &[]).as_deref(), Some("plugins"));
        // A placeholder in the next part of the path can have any value.
        assert_eq!(met("sub", &[]).as_deref(), Some("sub/main.db"));
        assert_eq!(met("sub", &["logs"]), None);
    }

    #[test]
    fn the_data_folder_itself_is_met_unless_a_folder_in_it_is_fixed() {
        assert!(met("", &[]).is_some() && met(".", &[]).is_some());
        assert_eq!(met("", &["logs"]), None);
    }

    #[test]
    fn other_folders_are_free() {
        for dir in ["local_logs/node_io", "blobs2", "cached", "logs/blobs", "/blobs", "/var/data"] {
            assert_eq!(met(dir, &[]), None, "{dir}");
        }
    }
}
