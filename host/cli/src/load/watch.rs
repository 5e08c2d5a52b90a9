//! Reloads apps, plugins and grants when their files change.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use futures::StreamExt as _;
use futures::stream::{self, BoxStream, SelectAll};
use notify::RecursiveMode;
use tokio::time::Instant;

use crate::config::Config;
use crate::error::Error;
use crate::load::scan::canonical;
use crate::load::watcher::Watcher;
use crate::load::{Change, Changes, Loader, manifest};

/// Watches the configuration file and the folders that it names, and reloads files that change,
/// until the future is dropped. Calls `report` for each change.
///
/// # Errors
///
/// [`Error::Setup`] if the system cannot watch files.
pub async fn watch(loader: Loader, report: impl Fn(&Change) + Send) -> Result<(), Error> {
    let config_folder = ConfigFolder::of(loader.config());
    let mut watcher = Watcher::new()?;
    // A folder that does not exist cannot be watched. The plugins folder is created, because
    // operators put new plugins into it.
    let plugins = &loader.config().plugins;
    if let Err(error) = std::fs::create_dir_all(plugins) {
        let folder = plugins.display();
        tracing::warn!(%folder, %error, "cannot create the plugins folder; restart to load it");
    }
    for (folder, mode) in folders(&loader) {
        let only = config_folder.as_ref().filter(|it| it.folder == folder);
        let watched = match only.and_then(|it| it.only.as_deref()) {
            Some(name) => watcher.watch_entry(&folder, name),
            None => watcher.watch(&folder, mode),
        };
        if let Err(error) = watched {
            let folder = folder.display();
            tracing::warn!(%folder, %error, "cannot watch a folder; restart to load changes there");
        }
    }
    // A refresh does not wait for the loads of an earlier one.
    let mut changes = SelectAll::new();
    loop {
        // The first refresh loads changes that were made before the watch began.
        let (found, left_until) = loader.refresh_settled().await;
        changes.push(stream_of(found));
        loop {
            tokio::select! {
                Some(change) = changes.next() => report(&change),
                () = watcher.changed() => break,
                () = until(left_until) => break,
            }
        }
    }
}

/// Waits until a time, or for ever.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// The folder of the configuration file. It is watched in place of the file, since editors replace
/// files by renaming others.
struct ConfigFolder {
    folder: PathBuf,
    /// Name of the file. `None` if other entries of the folder count as well, because apps, plugins
    /// or components are in it, or because the file is a link, whose target is replaced.
    only: Option<OsString>,
}

impl ConfigFolder {
    /// Returns `None` for a configuration without a file.
    fn of(config: &Config) -> Option<Self> {
        let (folder, file) = (config.base.clone(), config.file.as_ref()?);
        let apps = config.apps.values().filter_map(|app| app.path.as_ref());
        let mut code = apps.map(|path| config.base.join(path)).chain([config.plugins.clone()]);
        let here = canonical(&folder);
        let mut files = config.apps.values().flat_map(|app| app.components.values());
        let has_code = code.any(|code| here.starts_with(canonical(&code)))
            || files.any(|file| folder.join(file).parent().map(canonical).as_ref() == Some(&here));
        let name = file.file_name().map(ToOwned::to_owned);
        let only = name.filter(|_| !has_code && !file.is_symlink());
        Some(Self { folder, only })
    }
}

fn stream_of(changes: Changes) -> BoxStream<'static, Change> {
    let next = |mut changes: Changes| async move { Some((changes.next().await?, changes)) };
    stream::unfold(changes, next).boxed()
}

fn folders(loader: &Loader) -> Vec<(PathBuf, RecursiveMode)> {
    let config = loader.config();
    let mut folders = vec![(config.plugins.clone(), RecursiveMode::Recursive)];
    let config_folder = ConfigFolder::of(config);
    folders.extend(config_folder.map(|it| (it.folder, RecursiveMode::NonRecursive)));
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
    // A folder that is watched with all below it needs no other watch.
    folders.sort_by_key(|(folder, mode)| (folder.clone(), *mode == RecursiveMode::NonRecursive));
    folders.dedup_by(|later, first| later.0 == first.0);
    folders
}
