//! The changes of a refresh, in the order in which they happen.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use wattle_graph::id::{AppName, PluginName};
use wattle_run::text::Escaped;

use crate::config::ByteSize;
use crate::load::found_names::UnusedTable;
use crate::load::grants::UnrequestedGrant;

/// Target of log messages about changes.
pub(crate) const RELOAD_TARGET: &str = "wattle::reload";

/// An action of a refresh on one file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An app was installed.
    App {
        /// The app.
        name: AppName,
        /// Notes for the operator, such as requests that are not granted.
        notes: Vec<String>,
    },
    /// The operator's tables have changed, and the grants of an app with them, or the changed
    /// tables have no effect on an app for which they are.
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
    /// A table of the configuration file applies to nothing.
    Unused(UnusedTable),
    /// A granted permission has no effect, because nothing requests it.
    Unrequested(UnrequestedGrant),
    /// A component is being compiled. This change is sent at the start of the compilation, and
    /// again while the compilation continues.
    Compiling {
        /// File of the component.
        path: PathBuf,
        /// Size of the file.
        bytes: u64,
        /// Time since the start of the compilation.
        elapsed: Duration,
    },
    /// The compilation of a component has ended.
    Compiled {
        /// File of the component.
        path: PathBuf,
        /// Time since the start of the compilation.
        elapsed: Duration,
    },
    /// A plugin was loaded.
    Plugin {
        /// The plugin.
        name: PluginName,
        /// Notes for the operator, such as grants that nothing requests.
        notes: Vec<String>,
    },
    /// There are new notes about a plugin, because the operator's tables or the requests of apps
    /// have changed.
    PluginNotes {
        /// The plugin.
        name: PluginName,
        /// The new notes for the operator.
        notes: Vec<String>,
    },
    /// An app or a plugin was removed.
    Removed {
        /// Path of its folder or file.
        path: PathBuf,
    },
    /// A newly read app is not installed, because it claims paths that another app already has.
    Conflict {
        /// Folder of the rejected app.
        path: PathBuf,
        /// Error that names the claimed path.
        error: wattle_api::error::Error,
        /// Whether the version that was previously loaded from the path stays in use.
        keeps_old: bool,
    },
    /// A file or folder could not be loaded.
    Problem {
        /// Path of the file or folder.
        path: PathBuf,
        /// Reason of the failure, and a hint.
        message: String,
        /// Whether the version that was previously loaded from the path stays in use.
        keeps_old: bool,
    },
}

/// Severity of a message about a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// A load is in progress.
    Progress,
    /// The operator need not do anything.
    Note,
    /// The operator should know.
    Warning,
    /// A change has no effect until the operator does something.
    Error,
}

impl Change {
    /// Writes the messages for the operator to the log.
    pub(crate) fn log(&self) {
        for (severity, text) in self.messages() {
            match severity {
                Severity::Progress | Severity::Note => {
                    tracing::info!(target: RELOAD_TARGET, "{text}");
                }
                Severity::Warning => tracing::warn!(target: RELOAD_TARGET, "{text}"),
                Severity::Error => tracing::error!(target: RELOAD_TARGET, "{text}"),
            }
        }
    }

    /// Returns the messages for the operator.
    pub fn messages(&self) -> Vec<(Severity, String)> {
        let progress = |text| vec![(Severity::Progress, text)];
        let note = |text| vec![(Severity::Note, text)];
        match self {
            Self::App { name, notes } => {
                with_notes(note(format!("loaded app `{name}`: new threads use it")), notes)
            }
            Self::Grants { name, plugins, notes } => {
                let plugins = plugins.iter().flat_map(|plugin| {
                    note(format!("new calls of `{plugin}` in app `{name}` have other grants"))
                });
                with_notes(plugins.collect(), notes)
            }
            Self::Restart { path, sections } => {
                let (path, sections) = (path.display(), sections.join(", "));
                let text = format!("changes of {sections} in `{path}` apply after a restart");
                vec![(Severity::Warning, text)]
            }
            Self::Unused(UnusedTable { table, what, hint }) => note(format!(
                "`{table}` applies to no {what} that the host has found\n  hint: {hint}"
            )),
            Self::Unrequested(grant) => note(format!("{grant}\n  hint: {}", grant.hint)),
            Self::Compiling { path, bytes, elapsed } => {
                let (path, size) = (path.display(), ByteSize(*bytes));
                progress(match elapsed.as_secs() {
                    0 => format!("compiling `{path}`, {size}"),
                    seconds => format!("still compiling `{path}`, {size}, after {seconds} s"),
                })
            }
            Self::Compiled { path, elapsed } => {
                let (path, seconds) = (path.display(), elapsed.as_secs_f64());
                progress(format!("compiled `{path}` in {seconds:.1} s"))
            }
            Self::Plugin { name, notes } => {
                with_notes(note(format!("loaded plugin `{name}`")), notes)
            }
            Self::PluginNotes { notes, .. } => with_notes(Vec::new(), notes),
            Self::Removed { path } => note(format!("removed `{}`", Escaped(path.display()))),
            Self::Conflict { path, error, keeps_old } => {
                not_loaded_message(path, error, *keeps_old)
            }
            Self::Problem { path, message, keeps_old } => {
                not_loaded_message(path, message, *keeps_old)
            }
        }
    }
}

fn with_notes(mut messages: Vec<(Severity, String)>, notes: &[String]) -> Vec<(Severity, String)> {
    messages.extend(notes.iter().map(|note| (Severity::Warning, note.clone())));
    messages
}

fn not_loaded_message(
    path: &Path,
    reason: &dyn Display,
    keeps_old: bool,
) -> Vec<(Severity, String)> {
    let path = Escaped(path.display());
    let stays = if keeps_old { ", the old version stays in use" } else { "" };
    vec![(Severity::Error, format!("`{path}` is not loaded{stays}: {reason}"))]
}

/// The changes of a refresh. The files are loaded in the background even if this value is dropped.
pub struct Changes {
    receiver: mpsc::UnboundedReceiver<Change>,
}

impl Changes {
    pub(super) fn new(receiver: mpsc::UnboundedReceiver<Change>) -> Self {
        Self { receiver }
    }

    /// Returns the next change, or `None` after everything was loaded.
    pub async fn next(&mut self) -> Option<Change> {
        self.receiver.recv().await
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

    /// Waits until everything was loaded or `max_wait` has passed, and returns the results until
    /// then. Passes texts about loads in progress to `report`.
    pub async fn within(&mut self, max_wait: Duration, report: impl Fn(&str)) -> Vec<Change> {
        let mut changes = Vec::new();
        let end = Instant::now() + max_wait;
        while let Ok(Some(change)) = timeout_at(end, self.next()).await {
            add(&mut changes, change, &report);
        }
        changes
    }
}

/// Adds a result, or reports the progress of a load. An app that is read again after a plugin was
/// loaded is listed only once.
fn add(changes: &mut Vec<Change>, change: Change, report: &impl Fn(&str)) {
    if let [(Severity::Progress, text)] = change.messages().as_slice() {
        report(text);
        return;
    }
    if let Change::App { name, .. } = &change {
        changes.retain(|known| !matches!(known, Change::App { name: other, .. } if other == name));
    }
    changes.push(change);
}
