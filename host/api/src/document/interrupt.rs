//! JSON bodies of the list and the count of pending interrupts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wattle_run::engine::interrupts::{InterruptCount, InterruptedThread};

use crate::document::run::InterruptDocument;

/// A pending interrupt with its thread, as in a list over all threads.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PendingInterruptDocument {
    /// Thread that waits for the answer.
    pub thread: String,
    /// Same value as `thread`, under the field name that requests use.
    pub thread_id: String,
    /// App of the thread.
    pub app: String,
    /// Graph of the thread.
    pub graph: String,
    /// Tenant of the thread; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Newest run of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Time of the last update of the thread, in milliseconds since 1970.
    pub updated_ms: i64,
    /// The interrupt.
    pub interrupt: InterruptDocument,
}

impl PendingInterruptDocument {
    /// Describes the pending interrupts of a thread, oldest first.
    pub fn of_thread(thread: InterruptedThread) -> impl Iterator<Item = Self> {
        let InterruptedThread { record, interrupts } = thread;
        interrupts.into_iter().map(move |interrupt| Self {
            thread: record.id.to_string(),
            thread_id: record.id.to_string(),
            app: record.app.to_string(),
            graph: record.graph.to_string(),
            tenant: record.tenant.clone(),
            run: record.run.as_ref().map(ToString::to_string),
            updated_ms: record.updated_ms,
            interrupt: interrupt.into(),
        })
    }
}

/// The number of pending interrupts of the threads that match some conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InterruptCountsDocument {
    /// Number of interrupts.
    pub total: u64,
    /// False if there may be more interrupts, because not all threads were read.
    pub is_complete: bool,
}

impl From<InterruptCount> for InterruptCountsDocument {
    fn from(count: InterruptCount) -> Self {
        let InterruptCount { total, is_complete } = count;
        Self { total, is_complete }
    }
}
