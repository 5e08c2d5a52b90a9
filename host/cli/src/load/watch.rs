//! Reloads apps and plugins when their files change.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream, SelectAll};
use notify::RecursiveMode;
use notify_debouncer_full::{DebounceEventResult, new_debouncer};
use tokio::sync::mpsc;

use crate::error::Error;
use crate::load::{Change, Changes, Loader, manifest};

/// Time without a change before a reload. While a file is being copied, it is incomplete.
const DEBOUNCE: Duration = Duration::from_millis(300);

/// Watches the folders of the configuration and reloads files that change, until the future is
/// dropped. Calls `report` for each change.
///
/// # Errors
///
/// [`Error::Setup`] if the system cannot watch files.
pub async fn watch(loader: Loader, report: impl Fn(&Change) + Send) -> Result<(), Error> {
    let failed = |error: notify::Error| Error::Setup {
        what: "watching for changed files",
        message: error.to_string(),
    };
    // A capacity of one is sufficient, because each refresh scans all files.
    let (sender, mut changed) = mpsc::channel(1);
    let tell = move |events: DebounceEventResult| match events {
        Ok(_) => drop(sender.try_send(())),
        Err(errors) => tracing::warn!(?errors, "cannot watch for changed files"),
    };
    let mut debouncer = new_debouncer(DEBOUNCE, None, tell).map_err(failed)?;
    // A folder that does not exist cannot be watched. The plugins folder is created, because
    // operators put new plugins into it.
    let plugins = &loader.config().plugins;
    if let Err(error) = std::fs::create_dir_all(plugins) {
        let folder = plugins.display();
        tracing::warn!(%folder, %error, "cannot create the plugins folder; restart to load it");
    }
    for (folder, mode) in folders(&loader) {
        if let Err(error) = debouncer.watch(&folder, mode) {
            let folder = folder.display();
            tracing::warn!(%folder, %error, "cannot watch a folder; restart to load changes there");
        }
    }
    // A refresh does not wait for the loads of an earlier one.
    let mut changes = SelectAll::new();
    // The first refresh loads changes that were made before the watch began.
    changes.push(stream_of(loader.refresh().await));
    loop {
        tokio::select! {
            Some(change) = changes.next() => report(&change),
            next = changed.recv() => match next {
                Some(()) => changes.push(stream_of(loader.refresh().await)),
                None => return Ok(()),
            },
        }
    }
}

fn stream_of(changes: Changes) -> BoxStream<'static, Change> {
    let next = |mut changes: Changes| async move { Some((changes.next().await?, changes)) };
    stream::unfold(changes, next).boxed()
}

fn folders(loader: &Loader) -> Vec<(PathBuf, RecursiveMode)> {
    let config = loader.config();
    let mut folders = vec![(config.plugins.clone(), RecursiveMode::Recursive)];
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
    folders.sort_by(|one, two| one.0.cmp(&two.0));
    folders.dedup();
    folders
}
