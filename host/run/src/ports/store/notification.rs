//! Notifications between hosts that share a store.

use wattle_graph::id::{RunId, ThreadId};
use wattle_graph::principal::Principal;

use crate::caller_id::CallerId;
use crate::ports::store::LeaseHolder;

/// A message from one host to all hosts that share its store, including itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Notification {
    /// The host that executes the run cancels it.
    Cancel {
        /// The run.
        run: RunId,
        /// Who requested the cancel.
        principal: Option<Principal>,
    },
    /// The host that executes the run stops it before its next superstep.
    Drain(RunId),
    /// A run of a thread was enqueued.
    Enqueued {
        /// The thread.
        thread: ThreadId,
        /// Time from which the run may start, milliseconds since 1970.
        due_ms: i64,
        /// The caller that the run counts for.
        caller: CallerId,
        /// The host that starts the run. Other hosts start the run only if that host does not. If
        /// `None`, any host may start the run.
        host: Option<LeaseHolder>,
    },
    /// A host has stopped runs before their end and released their leases. Other hosts recover
    /// these runs.
    HandedOver,
}
