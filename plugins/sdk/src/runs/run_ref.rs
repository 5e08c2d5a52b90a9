//! References to runs.

use serde::{Deserialize, Serialize};

/// A reference to a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunRef {
    /// Id of the thread.
    pub thread_id: String,
    /// Id of the run.
    pub run_id: String,
}
