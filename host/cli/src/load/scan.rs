//! Where apps and plugins lie, and whether their files have changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::config::Config;
use crate::load::manifest::{self, Manifest};
use crate::load::page;

/// Levels of folders that are searched, the plugins folder counted: `plugins/<group>/<app>` has its
/// `app.toml` two levels below it, `plugins/<group>/<plugin>/<plugin>.wasm` its file likewise.
const LEVELS: u32 = 3;

/// Levels of an app's folder in which files are watched.
const APP_LEVELS: u32 = 3;

/// Installed packages of pages: thousands of files, none of them an app or a plugin.
const PACKAGES: &str = "node_modules";

/// What there is.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Folders with an `app.toml`.
    pub(super) apps: BTreeSet<PathBuf>,
    /// Single `.wasm` files.
    pub(super) plugins: BTreeSet<PathBuf>,
}

/// Size and time of each file that matters: when they are the same, the files are the same.
pub(super) type Print = BTreeMap<PathBuf, Option<(u64, SystemTime)>>;

/// Looks for apps and plugins: in the plugins folder, and where `[apps.<name>]` says.
pub(super) fn scan(config: &Config) -> Found {
    let mut found = Found::default();
    search(&config.plugins, LEVELS, &mut found);
    for app in config.apps.values() {
        if let Some(path) = &app.path {
            found.apps.insert(canonical(&config.base.join(path)));
        }
    }
    found
}

fn search(folder: &Path, levels: u32, found: &mut Found) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        if is_skipped(&path) {
            continue;
        }
        if path.join(manifest::FILE).is_file() {
            found.apps.insert(canonical(&path));
        } else if path.is_dir() && levels > 1 {
            search(&path, levels - 1, found);
        } else if path.extension().is_some_and(|it| it == "wasm") && path.is_file() {
            found.plugins.insert(canonical(&path));
        }
    }
}

/// Whether a folder or file of the plugins folder is hidden, or holds installed packages.
fn is_skipped(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') || name == PACKAGES
}

/// One folder has one name, however it was reached.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The print of a single file.
pub(super) fn print_of_file(path: &Path) -> Print {
    let mut print = Print::new();
    add(&mut print, path);
    print
}

/// The print of an app: its own files, those of its page, and components that lie elsewhere.
pub(super) fn print_of_app(config: &Config, folder: &Path) -> Print {
    let mut print = Print::new();
    add_folder(&mut print, folder, APP_LEVELS);
    if let Ok(manifest) = Manifest::read(folder) {
        for file in manifest.component_files(folder, config).values() {
            add(&mut print, file);
        }
        let page = manifest.page.iter().flat_map(|table| page::files_of(folder, table));
        page.for_each(|file| add(&mut print, &file));
    }
    print
}

fn add_folder(print: &mut Print, folder: &Path, levels: u32) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        let kind = path.extension().and_then(|it| it.to_str());
        if path.is_dir() && levels > 1 && !is_skipped(&path) {
            add_folder(print, &path, levels - 1);
        } else if matches!(kind, Some("toml" | "wasm" | "sql" | "md" | "txt")) {
            add(print, &path);
        }
    }
}

fn add(print: &mut Print, path: &Path) {
    let facts = fs::metadata(path).ok().and_then(|it| Some((it.len(), it.modified().ok()?)));
    print.insert(path.to_owned(), facts);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apps_and_plugins_are_found_and_changes_seen() {
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
        let before = print_of_app(&config, folder);
        fs::write(folder.join("app.toml"), "# changed").unwrap();
        assert_ne!(print_of_app(&config, folder), before);
    }
}
