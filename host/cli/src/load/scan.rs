//! Finds apps and plugins, and detects changes of their files.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use wattle_graph::id::{AppName, PluginName};

use crate::config::Config;
use crate::load::app_request::AppRequest;
use crate::load::file::{self, Entry, FileError, FileLocation};
use crate::load::found_names::FoundNames;
use crate::load::grants::KnownNames;
use crate::load::limits::{APP_ENTRIES, SEARCHED_ENTRIES};
use crate::load::manifest::{self, Manifest};
use crate::load::page;
use crate::paths::canonical;

/// Depth of the search, including the plugins folder. It reaches `plugins/<group>/<app>/app.toml`
/// and `plugins/<group>/<plugin>/<plugin>.wasm`.
const LEVELS: u32 = 3;

/// Depth to which the files of an app folder are scanned for changes.
const APP_LEVELS: u32 = 3;

/// Folder of installed npm packages. It contains thousands of files, but no apps or plugins.
const PACKAGES: &str = "node_modules";

/// The apps and plugins that were found.
#[derive(Debug, Default)]
pub(super) struct DiscoveredFiles {
    /// Folders with an `app.toml`.
    pub(super) apps: BTreeSet<PathBuf>,
    /// Standalone `.wasm` files.
    pub(super) plugins: BTreeSet<PathBuf>,
    /// Paths that are not searched, with the reason.
    pub(super) unusable: BTreeMap<PathBuf, String>,
    /// Number of searched entries of the plugins folder.
    searched: usize,
}

/// Fingerprint: size and modification time of each relevant file. Files with equal fingerprints are
/// regarded as equal.
pub(super) type Fingerprint = BTreeMap<PathBuf, Option<(u64, SystemTime)>>;

/// Apps and plugins with their fingerprints.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    /// Standalone `.wasm` files.
    pub(super) plugins: BTreeMap<PathBuf, Fingerprint>,
    /// Folders with an `app.toml`.
    pub(super) apps: BTreeMap<PathBuf, AppFiles>,
    /// Paths that are not loaded, each with its fingerprint and the reason.
    pub(super) unusable: BTreeMap<PathBuf, (Fingerprint, String)>,
}

impl Snapshot {
    /// Returns true if the scan has found the path.
    pub(super) fn contains(&self, path: &Path) -> bool {
        self.apps.contains_key(path)
            || self.plugins.contains_key(path)
            || self.unusable.contains_key(path)
    }

    /// Returns the standalone plugins, by file.
    pub(super) fn standalone(&self) -> BTreeMap<PathBuf, PluginName> {
        let named = |path: &PathBuf| Some((path.clone(), name_of_plugin(path)?));
        self.plugins.keys().filter_map(named).collect()
    }

    /// Returns the names of all apps and plugins; `None` if some of them are unknown, because a
    /// manifest is invalid or a path is not searched.
    pub(super) fn all_names(&self) -> Option<FoundNames> {
        if !self.unusable.is_empty() {
            return None;
        }
        let standalone = self.standalone().into_values().collect();
        let mut names = FoundNames { standalone, ..FoundNames::default() };
        for files in self.apps.values().filter(|files| !files.is_missing) {
            names.add_app(files.request.as_ref()?);
        }
        Some(names)
    }

    /// Returns what the apps request whose manifests are valid.
    pub(super) fn requests(&self) -> Vec<AppRequest> {
        self.apps.values().filter_map(|files| files.request.clone()).collect()
    }

    /// Returns the names that determine to which plugins the tables of grants apply.
    pub(super) fn names(&self) -> KnownNames {
        let shared = self.apps.values().filter_map(|files| files.shared_name.clone());
        let standalone = self.standalone().into_values();
        KnownNames { standalone: standalone.collect(), shared: shared.collect() }
    }
}

/// The files of an app.
#[derive(Debug)]
pub(super) struct AppFiles {
    pub(super) fingerprint: Fingerprint,
    /// What the app requests; `None` if its manifest is missing or invalid.
    request: Option<AppRequest>,
    /// True if the folder has no manifest, so that there is no app.
    is_missing: bool,
    /// Name of the component that has the name of the app, if there is one.
    shared_name: Option<PluginName>,
}

impl AppFiles {
    /// Returns the name of the app; `None` if its manifest is missing or invalid.
    pub(super) fn name(&self) -> Option<&AppName> {
        self.request.as_ref().map(|request| &request.app)
    }
}

/// Finds apps and plugins, and computes the fingerprints of their files. An app with too many files
/// is unusable.
pub(super) fn snapshot(config: &Config) -> Snapshot {
    let DiscoveredFiles { apps, plugins, unusable, mut searched } = scan(config);
    let root = canonical(&config.plugins);
    let plugins = plugins.into_iter().map(|path| (path.clone(), fingerprint_of(&path))).collect();
    let unusable = unusable.into_iter();
    let unusable = unusable.map(|(path, why)| (path.clone(), (fingerprint_of(&path), why)));
    let mut snapshot = Snapshot { plugins, unusable: unusable.collect(), apps: BTreeMap::new() };
    for folder in apps {
        // Folders outside of the plugins folder are named by the operator, and each of them is
        // counted separately.
        let mut elsewhere = 0;
        let is_inside = folder.starts_with(&root);
        let all = if is_inside { &mut searched } else { &mut elsewhere };
        match scan_app(config, &folder, all) {
            Ok(files) => drop(snapshot.apps.insert(folder, files)),
            Err(why) => {
                let fingerprint = fingerprint_of(&folder);
                snapshot.unusable.insert(folder, (fingerprint, why));
            }
        }
    }
    snapshot
}

/// Finds apps and plugins in the plugins folder, and apps with a `path` in `[apps.<name>]`.
pub(super) fn scan(config: &Config) -> DiscoveredFiles {
    let mut found = DiscoveredFiles::default();
    let root = canonical(&config.plugins);
    // A missing plugins folder is treated as empty.
    if root.is_dir() {
        search(&root, LEVELS, &mut found);
    }
    for app in config.apps.values() {
        if let Some(path) = &app.path {
            found.apps.insert(canonical(&config.base.join(path)));
        }
    }
    found
}

/// Returns the names that determine to which plugins the tables of grants apply, and what the apps
/// request whose manifests are valid.
pub(super) fn names(config: &Config) -> (KnownNames, Vec<AppRequest>) {
    let DiscoveredFiles { apps, plugins, .. } = scan(config);
    let manifests = apps.iter().filter_map(|folder| Manifest::read(folder).ok());
    let manifests: Vec<Manifest> = manifests.collect();
    let names = KnownNames {
        standalone: plugins.iter().filter_map(|path| name_of_plugin(path)).collect(),
        shared: manifests.iter().filter_map(shared_name).collect(),
    };
    (names, manifests.iter().map(Manifest::request).collect())
}

/// Returns the name of the standalone plugin in a file: the name of the file without its extension.
pub(super) fn name_of_plugin(path: &Path) -> Option<PluginName> {
    PluginName::new(path.file_stem()?.to_str()?).ok()
}

/// Returns the name of the component that has the same name as its app, if the app has such a
/// component.
fn shared_name(manifest: &Manifest) -> Option<PluginName> {
    let mut components = manifest.components.keys();
    components.find(|name| name.as_str() == manifest.app.name.as_str()).cloned()
}

/// Returns the location of a file in the plugins folder.
pub(super) fn plugin_location(config: &Config, path: &Path) -> FileLocation {
    let root = canonical(&config.plugins);
    match path.strip_prefix(&root) {
        Ok(below) => FileLocation::Inside { path: below.to_owned(), folder: root },
        Err(_) => FileLocation::Named(path.to_owned()),
    }
}

/// Searches a folder. Symbolic links are listed but not followed; reading a link later reports the
/// reason.
fn search(folder: &Path, levels: u32, found: &mut DiscoveredFiles) {
    let entries = match file::entries(folder) {
        Ok(entries) => entries,
        Err(error) => {
            found.unusable.insert(folder.to_owned(), error.to_string());
            return;
        }
    };
    found.searched += entries.len();
    if found.searched > SEARCHED_ENTRIES {
        found.unusable.insert(folder.to_owned(), not_searched());
        return;
    }
    for Entry { path, kind, .. } in entries {
        if is_skipped(path.file_name().unwrap_or_default()) {
            continue;
        }
        if kind.is_dir() {
            if path.join(manifest::FILE).symlink_metadata().is_ok() {
                found.apps.insert(path);
            } else if levels > 1 {
                search(&path, levels - 1, found);
            }
        } else if path.extension().is_some_and(|it| it == "wasm") {
            found.plugins.insert(path);
        } else if kind.is_symlink() && path.is_dir() {
            let message = FileError::Link { path: path.clone() }.to_string();
            found.unusable.insert(path, message);
        }
    }
}

fn not_searched() -> String {
    format!(
        "the plugins folder has more than {SEARCHED_ENTRIES} files and folders, and this one is \
         not searched\n  hint: move what is neither an app nor a plugin elsewhere"
    )
}

/// Returns true if a folder or file with this name is hidden, or contains installed packages.
pub(super) fn is_skipped(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with('.') || name == PACKAGES
}

/// Returns the fingerprint of a single file.
pub(super) fn fingerprint_of(path: &Path) -> Fingerprint {
    let mut fingerprint = Fingerprint::new();
    add(&mut fingerprint, path);
    fingerprint
}

/// Returns the name and the fingerprint of an app: the files of its folder, the files of its page,
/// and components in other folders. Adds the entries of its folder to `searched`.
fn scan_app(config: &Config, folder: &Path, searched: &mut usize) -> Result<AppFiles, String> {
    let app_limit = *searched + APP_ENTRIES;
    let limit = app_limit.min(SEARCHED_ENTRIES);
    let mut fingerprint = Fingerprint::new();
    if *searched <= limit {
        let added = add_folder(&mut fingerprint, folder, APP_LEVELS, searched, limit);
        added.map_err(|error| error.to_string())?;
    }
    if *searched > app_limit {
        let (path, limit) = (folder.to_owned(), APP_ENTRIES);
        return Err(FileError::TooManyBelow { path, limit }.to_string());
    }
    if *searched > limit {
        return Err(not_searched());
    }
    let manifest = Manifest::read(folder).ok();
    if let Some(manifest) = &manifest {
        for file in manifest.component_files(folder, config).values() {
            add(&mut fingerprint, &file.path());
        }
        let page = manifest.page.iter().flat_map(|table| page::page_files(folder, table));
        page.for_each(|file| add(&mut fingerprint, &file));
    }
    let request = manifest.as_ref().map(Manifest::request);
    let shared_name = manifest.as_ref().and_then(shared_name);
    let is_missing = matches!(folder.join(manifest::FILE).try_exists(), Ok(false));
    Ok(AppFiles { fingerprint, request, is_missing, shared_name })
}

/// Adds the files of a folder, and its entries to `searched`, and stops when `searched` exceeds
/// `limit`.
fn add_folder(
    fingerprint: &mut Fingerprint,
    folder: &Path,
    levels: u32,
    searched: &mut usize,
    limit: usize,
) -> Result<(), FileError> {
    let entries = match file::entries(folder) {
        Err(error @ FileError::TooMany { .. }) => return Err(error),
        // A folder that cannot be read has no fingerprint. Loading its files reports the reason.
        entries => entries.unwrap_or_default(),
    };
    *searched += entries.len();
    for Entry { path, kind, .. } in entries {
        if *searched > limit {
            break;
        }
        let ending = path.extension().and_then(|it| it.to_str());
        let name = path.file_name().unwrap_or_default();
        if kind.is_dir() && levels > 1 && !is_skipped(name) {
            add_folder(fingerprint, &path, levels - 1, searched, limit)?;
        } else if matches!(ending, Some("toml" | "wasm" | "sql" | "md" | "txt")) {
            add(fingerprint, &path);
        }
    }
    Ok(())
}

/// Adds a file. A symbolic link of the operator has the fingerprint of its target, because the
/// target is read.
fn add(fingerprint: &mut Fingerprint, path: &Path) {
    let metadata = fs::metadata(path).ok().and_then(|it| Some((it.len(), it.modified().ok()?)));
    fingerprint.insert(path.to_owned(), metadata);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apps_plugins_and_changes_are_found() {
        let base = tempfile::tempdir().unwrap();
        let plugins = base.path().join("plugins");
        fs::create_dir_all(plugins.join("apps/one")).unwrap();
        fs::create_dir_all(plugins.join("two")).unwrap();
        fs::write(plugins.join("apps/one/app.toml"), "").unwrap();
        fs::write(plugins.join("two/app.toml"), "").unwrap();
        fs::create_dir_all(plugins.join("tools/date/target")).unwrap();
        fs::write(plugins.join("tools/date/date.wasm"), "").unwrap();
        fs::write(plugins.join("tools/date/target/deep.wasm"), "").unwrap();
        fs::write(plugins.join("apps/one/own.wasm"), "").unwrap();
        fs::write(plugins.join("tool.wasm"), "").unwrap();
        fs::write(plugins.join("notes.txt"), "").unwrap();
        let config = Config::in_folder(base.path());
        let found = scan(&config);
        assert_eq!((found.apps.len(), found.plugins.len()), (2, 2));
        let folder = found.apps.first().unwrap();
        let fingerprint = || snapshot(&config).apps[folder].fingerprint.clone();
        let before = fingerprint();
        assert_eq!(before, fingerprint());
        fs::write(folder.join("app.toml"), "# changed").unwrap();
        assert_ne!(fingerprint(), before);
    }

    #[test]
    fn an_app_with_too_many_files_and_folders_is_unusable() {
        let base = tempfile::tempdir().unwrap();
        let app = |name: &str| base.path().join("plugins").join(name);
        for name in ["few", "many"] {
            fs::create_dir_all(app(name)).unwrap();
            fs::write(app(name).join("app.toml"), "").unwrap();
        }
        let half = APP_ENTRIES / 2;
        for folder in ["a", "b"] {
            fs::create_dir_all(app("many").join(folder)).unwrap();
            for number in 0..half {
                fs::write(app("many").join(folder).join(number.to_string()), "").unwrap();
            }
        }
        let found = snapshot(&Config::in_folder(base.path()));
        let names: Vec<_> = found.apps.keys().filter_map(|path| path.file_name()).collect();
        assert_eq!(names, ["few"]);
        let (_, why) = found.unusable.values().next().unwrap();
        assert!(why.contains("more than 10000 files and folders"), "{why}");
    }
}
