//! What clients look for.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::wire::shape::{RunStatus, ThreadStatus};

/// Which end of a list comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SortOrder {
    /// The smallest.
    Asc,
    /// The largest.
    #[default]
    Desc,
}

/// Threads that are looked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ThreadSearch {
    /// Only these.
    pub ids: Option<Vec<String>>,
    /// All of these facts must be equal.
    pub metadata: Option<Map<String, Value>>,
    /// All of these channel values must be equal.
    pub values: Option<Map<String, Value>>,
    /// Only in this status.
    pub status: Option<ThreadStatus>,
    /// At most so many; ten without it.
    pub limit: Option<usize>,
    /// Skip so many.
    pub offset: Option<usize>,
    /// `thread_id`, `status`, `created_at`, `updated_at` or `state_updated_at`.
    #[schema(pattern = "^(thread_id|status|created_at|updated_at|state_updated_at)$")]
    pub sort_by: Option<String>,
    /// Which end comes first.
    pub sort_order: Option<SortOrder>,
    /// Only these fields of each.
    pub select: Option<Vec<String>>,
    /// Paths of values to show, by the names to show them under.
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub extract: Option<Map<String, Value>>,
}

/// Threads that are counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ThreadCount {
    /// All of these facts must be equal.
    pub metadata: Option<Map<String, Value>>,
    /// All of these channel values must be equal.
    pub values: Option<Map<String, Value>>,
    /// Only in this status.
    pub status: Option<ThreadStatus>,
}

/// Threads of which something is taken away.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ThreadPrune {
    /// These.
    pub thread_ids: Vec<String>,
    /// `delete` or `keep_latest`.
    #[schema(pattern = "^(delete|keep_latest)$")]
    pub strategy: Option<String>,
}

/// Which runs of a thread are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunStatusFilter {
    /// Only in this status.
    pub status: Option<RunStatus>,
    /// At most so many; ten without it.
    pub limit: Option<usize>,
    /// Skip so many.
    pub offset: Option<usize>,
}
