//! JSON bodies of requests and responses.
//!
//! These types are separate from the types of the engine, so that the engine can change without a
//! change of the API.

pub mod access;
pub mod app;
pub mod client_job;
pub mod host;
pub mod interrupt;
pub mod key;
pub mod log;
pub mod maintenance;
pub mod memory;
pub mod model;
pub mod node;
pub mod options;
pub mod pending_call;
pub mod plugin;
pub mod plugin_install;
pub mod queue;
pub mod run;
pub mod run_summary;
pub mod statistics;
pub mod store;
pub mod store_sizes;
pub mod thread;
pub mod time_travel;
pub mod tool;

use std::collections::BTreeSet;
use std::fmt::Display;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wattle_run::catalog::LoadingItem;
use wattle_run::engine::recover::Recovery;

/// Maximum number of names of apps and of plugins in a [`LoadingDocument`].
const MAX_LOADING_NAMES: usize = 100;

/// A page of a list.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    /// Items of the page.
    pub items: Vec<T>,
    /// Offset of the next page; absent on the last page, and in lists that only a cursor continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
    /// Cursor of the next page; absent on the last page, and in lists without cursors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// Creates a page of a list that only a cursor continues.
    pub(crate) fn by_cursor(items: Vec<T>, next: Option<impl Display>) -> Self {
        let next_cursor = next.map(|next| next.to_string());
        Self { items, next_offset: None, next_cursor }
    }
}

/// The liveness of the host.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// Always `ok`.
    pub status: String,
    /// Version of Wattle.
    pub version: String,
    /// Instance id of the server. Each start generates a new id.
    pub instance: String,
    /// Progress of the recovery of runs that a crash or shutdown interrupted. Absent if the
    /// recovery is complete, no thread is set aside and no run waits until its app is loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveryDocument>,
    /// Number of files and folders that could not be loaded, as in `GET /api/v1/problems`. Absent
    /// if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problems: Option<usize>,
}

/// The progress of the recovery of runs that a crash or shutdown interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecoveryDocument {
    /// True if each found run was recovered, waits until its app is loaded, or cannot be recovered,
    /// so that its thread is set aside.
    pub over: bool,
    /// Number of runs that were found.
    pub found: usize,
    /// Number of runs that continue.
    pub recovered: usize,
    /// Number of threads that are set aside, because their runs cannot be recovered.
    pub set_aside: usize,
    /// Number of runs that wait until their apps are loaded.
    pub waiting: usize,
}

impl RecoveryDocument {
    /// Returns the progress of a recovery. Returns `None` if the recovery is complete, no thread is
    /// set aside and no run waits.
    pub(crate) fn new(recovery: Recovery) -> Option<Self> {
        let Recovery { is_complete, found, recovered, set_aside, waiting } = recovery;
        let is_done = is_complete && set_aside == 0 && waiting == 0;
        (!is_done).then_some(Self { over: is_complete, found, recovered, set_aside, waiting })
    }
}

/// Apps and plugins that are being loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoadingDocument {
    /// Number of apps and plugins.
    pub total: usize,
    /// Names of apps, at most 100. Requests for an app that was never loaded before are rejected
    /// with 503 until the app is loaded.
    pub apps: Vec<String>,
    /// Names of standalone plugins, at most 100.
    pub plugins: Vec<String>,
}

impl LoadingDocument {
    /// Returns the apps and plugins that are being loaded; `None` if there are none.
    pub(crate) fn new(loading: &BTreeSet<LoadingItem>) -> Option<Self> {
        let (mut apps, mut plugins) = (Vec::new(), Vec::new());
        for item in loading {
            let (names, name) = match item {
                LoadingItem::App { name, .. } => (&mut apps, name.to_string()),
                LoadingItem::Plugin(name) => (&mut plugins, name.to_string()),
            };
            if names.len() < MAX_LOADING_NAMES {
                names.push(name);
            }
        }
        let total = loading.len();
        (total > 0).then_some(Self { total, apps, plugins })
    }
}

/// A file or folder that could not be loaded. The previously loaded version remains active.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LoadProblem {
    /// Path of the file or folder.
    pub path: String,
    /// Time of the attempt, in milliseconds since 1970.
    pub at_ms: i64,
    /// Reason of the failure, and a hint.
    pub message: String,
    /// App that was read but cannot be used yet, because its migrations were not applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
}
