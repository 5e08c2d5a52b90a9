//! Reloads apps, plugins and grants when their files change.

use std::path::{Path, PathBuf};

use futures::StreamExt as _;
use futures::stream::{self, BoxStream, SelectAll};
use notify::RecursiveMode;
use tokio::time::Instant;

use crate::config::Config;
use crate::error::Error;
use crate::load::watcher::Watcher;
use crate::load::{Change, Changes, Loader, manifest};
use crate::paths::{canonical, path_entries};

/// Watches the configuration file and the folders that it names, and reloads files that change,
/// until the future is dropped. Calls `report` for each change.
///
/// # Errors
///
/// [`Error::Unusable`] if the system cannot watch files.
pub async fn watch(loader: Loader, report: impl Fn(&Change) + Send) -> Result<(), Error> {
    let mut watcher = Watcher::new()?;
    // The plugins folder is created if it does not exist, because operators put new plugins into
    // it, and only an existing folder can be watched.
    let plugins = &loader.config().plugins;
    if let Err(error) = std::fs::create_dir_all(plugins) {
        let folder = plugins.display();
        tracing::warn!(
            %folder,
            %error,
            "cannot create the plugins folder; create it and restart the server to load plugins"
        );
    }
    for (folder, mode) in folders(&loader) {
        warn_if_unwatched(&folder, watcher.watch(&folder, mode));
    }
    // A refresh does not wait for the loads of an earlier refresh.
    let mut changes = SelectAll::new();
    loop {
        watch_config(&mut watcher, loader.config());
        // The first refresh loads changes that were made before the watch began.
        let (found, deferred_until) = loader.refresh_settled().await;
        changes.push(stream_of(found));
        loop {
            tokio::select! {
                Some(change) = changes.next() => report(&change),
                () = watcher.changed() => break,
                () = wait_until(deferred_until) => break,
            }
        }
    }
}

/// Waits until a time; without a time, never completes.
async fn wait_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Watches the configuration file, and the links that currently lead to the file.
pub(crate) fn watch_config(watcher: &mut Watcher, config: &Config) {
    let Some(name) = config.file.as_deref().and_then(Path::file_name) else { return };
    for entry in link_chain(&config.base.join(name)) {
        if let (Some(folder), Some(name)) = (entry.parent(), entry.file_name()) {
            warn_if_unwatched(folder, watcher.watch_entry(folder, name));
        }
    }
}

fn warn_if_unwatched(folder: &Path, watched: notify::Result<()>) {
    if let Err(error) = watched {
        let folder = folder.display();
        tracing::warn!(%folder, %error, "cannot watch a folder; restart to load changes there");
    }
}

/// Returns the symbolic links that lead to a file, and the file itself. A new version of the file
/// may replace any of them, such as the link `..data` of a ConfigMap of Kubernetes.
fn link_chain(file: &Path) -> Vec<PathBuf> {
    let is_folder = |entry: &Path| entry.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    // The directory entry of the file is included even while the file is missing because it is
    // being replaced.
    path_entries(file).into_iter().filter(|entry| !is_folder(entry)).collect()
}

fn stream_of(changes: Changes) -> BoxStream<'static, Change> {
    let next = |mut changes: Changes| async move { Some((changes.next().await?, changes)) };
    stream::unfold(changes, next).boxed()
}

fn folders(loader: &Loader) -> Vec<(PathBuf, RecursiveMode)> {
    let config = loader.config();
    let mut folders = vec![(config.plugins.clone(), RecursiveMode::Recursive)];
    let here = canonical(&config.base);
    let mut files = config.apps.values().flat_map(|app| app.components.values());
    if files.any(|file| config.base.join(file).parent().map(canonical).as_ref() == Some(&here)) {
        folders.push((here, RecursiveMode::NonRecursive));
    }
    let apps = config.apps.values().filter_map(|app| app.path.as_ref());
    for folder in apps.map(|path| config.base.join(path)) {
        let files = manifest::component_files(config, &folder);
        let parents = files.iter().filter_map(|file| file.path().parent().map(Path::to_owned));
        folders.extend(
            parents
                .filter(|parent| !parent.starts_with(&folder))
                .map(|parent| (parent, RecursiveMode::NonRecursive)),
        );
        folders.push((folder, RecursiveMode::Recursive));
    }
    folders.retain(|(folder, _)| folder.is_dir());
    for (folder, _) in &mut folders {
        *folder = canonical(folder);
    }
    // If a folder is watched recursively, another watch for the same folder is not needed.
    folders.sort_by_key(|(folder, mode)| (folder.clone(), *mode == RecursiveMode::NonRecursive));
    folders.dedup_by(|later, first| later.0 == first.0);
    folders
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn all_links_that_lead_to_a_file_are_found() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        fs::create_dir(base.join("..2026")).unwrap();
        fs::write(base.join("..2026/wattle.toml"), "").unwrap();
        symlink("..2026", base.join("..data")).unwrap();
        symlink("..data/wattle.toml", base.join("wattle.toml")).unwrap();
        symlink("..2026/../wattle.toml", base.join("other.toml")).unwrap();
        let entries = |file: &str| link_chain(&base.join(file));
        let chain = ["..2026/wattle.toml", "..data", "wattle.toml"].map(|entry| base.join(entry));
        assert_eq!(entries("wattle.toml"), chain);
        assert_eq!(entries("..2026/wattle.toml"), chain[..1]);
        let other = entries("other.toml");
        assert!(other.len() == 4 && chain.iter().all(|entry| other.contains(entry)), "{other:?}");
        fs::remove_file(&chain[0]).unwrap();
        assert_eq!(entries("wattle.toml"), chain, "the file is missing for a moment");
    }
}
