//! The JSON documents that answers consist of.
//!
//! They are types of their own, so that the engine may change its types without changing the API.

pub mod app;
pub mod host;
pub mod key;
pub mod memory;
pub mod options;
pub mod plugin;
pub mod run;
pub mod thread;
pub mod travel;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wattle_run::engine::recover::Recovery;

/// A page of a list.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Offset of the next page; absent if this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
}

/// Whether the host lives.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// Always `ok`.
    pub status: String,
    /// Version of Wattle.
    pub version: String,
    /// Which server this is: another one after each start.
    pub instance: String,
    /// How far the host is with runs that were cut before its start; absent when all of them go on
    /// or have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveryDocument>,
}

/// How far the host is with runs that were cut before its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecoveryDocument {
    /// Whether it has looked at all of them.
    pub over: bool,
    /// Runs that were found.
    pub found: usize,
    /// Runs that go on.
    pub recovered: usize,
    /// Runs that are set aside, since they cannot be gone on with.
    pub set_aside: usize,
}

impl RecoveryDocument {
    /// How far a recovery is; `None` when nothing is left to do.
    pub(crate) fn of(recovery: Recovery) -> Option<Self> {
        let Recovery { is_over, found, recovered, set_aside } = recovery;
        let is_done = is_over && set_aside == 0;
        (!is_done).then_some(Self { over: is_over, found, recovered, set_aside })
    }
}

/// A file or folder that could not be loaded. What was loaded from it before stays.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LoadProblem {
    /// What was to be loaded.
    pub path: String,
    /// When, milliseconds since 1970.
    pub at_ms: i64,
    /// What is wrong, and what to do.
    pub message: String,
}
