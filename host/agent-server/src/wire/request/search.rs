//! Searches for threads and runs.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::wire::response::{RunStatus, ThreadStatus};

/// The sort order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SortOrder {
    /// Smallest value first.
    Asc,
    /// Largest value first.
    #[default]
    Desc,
}

/// A search for threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ThreadSearch {
    /// Only threads with these ids.
    pub ids: Option<Vec<String>>,
    /// Metadata that a thread must contain.
    pub metadata: Option<Map<String, Value>>,
    /// Channel values that a thread must contain.
    pub values: Option<Map<String, Value>>,
    /// Only threads with this status.
    pub status: Option<ThreadStatus>,
    /// Maximum number of threads. The default is 10.
    #[schema(minimum = 1)]
    pub limit: Option<usize>,
    /// Number of threads to skip.
    pub offset: Option<usize>,
    /// Field to sort by: `thread_id`, `status`, `created_at`, `updated_at` (the default) or
    /// `state_updated_at`.
    #[schema(pattern = "^(thread_id|status|created_at|updated_at|state_updated_at)$")]
    pub sort_by: Option<String>,
    /// Sort order. The default is `desc`.
    pub sort_order: Option<SortOrder>,
    /// Fields to return of each thread.
    pub select: Option<Vec<String>>,
    /// Paths of values to return. The keys name the values in the response.
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub extract: Option<Map<String, Value>>,
}

/// A filter for threads to count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ThreadCount {
    /// Metadata that a thread must contain.
    pub metadata: Option<Map<String, Value>>,
    /// Channel values that a thread must contain.
    pub values: Option<Map<String, Value>>,
    /// Only threads with this status.
    pub status: Option<ThreadStatus>,
}

/// A request to prune or delete threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ThreadPrune {
    /// Ids of the threads.
    pub thread_ids: Vec<String>,
    /// `delete` (the default) deletes the threads, `keep_latest` deletes all states except the
    /// newest one of each thread.
    #[schema(pattern = "^(delete|keep_latest)$")]
    pub strategy: Option<String>,
}

/// A filter for the runs of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunStatusFilter {
    /// Only runs with this status.
    pub status: Option<RunStatus>,
    /// Maximum number of runs. The default is 10.
    pub limit: Option<usize>,
    /// Number of runs to skip.
    pub offset: Option<usize>,
}
