//! The changes of a refresh, in the order in which they happen.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use wattle_graph::id::{AppName, PluginName};

use crate::config::ByteSize;

/// What a refresh does with one file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An app was installed, with notes for the operator.
    App {
        /// The app.
        name: AppName,
        /// Notes for the operator, such as requests that are not granted.
        notes: Vec<String>,
    },
    /// The grants of an app were replaced, because the operator's tables have changed.
    Grants {
        /// The app.
        name: AppName,
        /// The plugins with other grants.
        plugins: Vec<PluginName>,
        /// Notes about these plugins for the operator.
        notes: Vec<String>,
    },
    /// Sections of the configuration file have changed and apply after a restart.
    Restart {
        /// The configuration file.
        path: PathBuf,
        /// Names of the sections.
        sections: Vec<&'static str>,
    },
    /// A component is being compiled. Sent at the begin of the compilation, and again while it goes
    /// on.
    Compiling {
        /// File of the component.
        path: PathBuf,
        /// Size of the file.
        bytes: u64,
        /// Time since the begin.
        elapsed: Duration,
    },
    /// The compilation of a component has ended.
    Compiled {
        /// File of the component.
        path: PathBuf,
        /// Time since the begin.
        elapsed: Duration,
    },
    /// A plugin was loaded.
    Plugin {
        /// The plugin.
        name: PluginName,
    },
    /// An app or a plugin was removed.
    Removed {
        /// Path of its folder or file.
        path: PathBuf,
    },
    /// A newly read app is not installed, because it claims paths of another app.
    Conflict {
        /// Folder of the rejected app.
        path: PathBuf,
        /// Error that names the claimed path.
        error: wattle_api::error::Error,
        /// Whether the version that was loaded from the path before stays in use.
        keeps_old: bool,
    },
    /// A file or folder could not be loaded.
    Problem {
        /// Path of the file or folder.
        path: PathBuf,
        /// Reason of the failure, and a hint.
        message: String,
        /// Whether the version that was loaded from the path before stays in use.
        keeps_old: bool,
    },
}

impl Change {
    /// Returns the text about a load in progress; `None` for a result.
    pub fn progress(&self) -> Option<String> {
        match self {
            Self::Compiling { path, bytes, elapsed } => {
                let (path, size) = (path.display(), ByteSize(*bytes));
                Some(match elapsed.as_secs() {
                    0 => format!("compiling `{path}`, {size}"),
                    seconds => format!("still compiling `{path}`, {size}, after {seconds} s"),
                })
            }
            Self::Compiled { path, elapsed } => {
                Some(format!("compiled `{}` in {:.1} s", path.display(), elapsed.as_secs_f64()))
            }
            _ => None,
        }
    }
}

/// The changes of a refresh. The files are loaded in the background, also if this is dropped.
pub struct Changes {
    coming: mpsc::UnboundedReceiver<Change>,
}

impl Changes {
    pub(super) fn new(coming: mpsc::UnboundedReceiver<Change>) -> Self {
        Self { coming }
    }

    /// Returns the next change, or `None` after everything was loaded.
    pub async fn next(&mut self) -> Option<Change> {
        self.coming.recv().await
    }

    /// Waits until everything was loaded, and returns all remaining results. Passes texts about
    /// loads in progress to `report`.
    pub async fn all(&mut self, report: impl Fn(&str)) -> Vec<Change> {
        let mut changes = Vec::new();
        while let Some(change) = self.next().await {
            add(&mut changes, change, &report);
        }
        changes
    }

    /// Waits until everything was loaded or `patience` has passed, and returns the results until
    /// then. Passes texts about loads in progress to `report`.
    pub async fn within(&mut self, patience: Duration, report: impl Fn(&str)) -> Vec<Change> {
        let mut changes = Vec::new();
        let end = Instant::now() + patience;
        while let Ok(Some(change)) = timeout_at(end, self.next()).await {
            add(&mut changes, change, &report);
        }
        changes
    }
}

/// Adds a result, or reports the progress of a load. An app that is read again after a plugin was
/// loaded is listed once.
fn add(changes: &mut Vec<Change>, change: Change, report: &impl Fn(&str)) {
    if let Some(text) = change.progress() {
        report(&text);
        return;
    }
    if let Change::App { name, .. } = &change {
        changes.retain(|known| !matches!(known, Change::App { name: other, .. } if other == name));
    }
    changes.push(change);
}
