//! What one host tells the others that share its store.

use wattle_graph::id::{RunId, ThreadId};
use wattle_graph::principal::Principal;

use crate::ports::store::Holder;

/// What one host tells the others, and itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signal {
    /// The host that runs the run is to cancel it.
    Cancel {
        /// The run.
        run: RunId,
        /// Who asks.
        principal: Option<Principal>,
    },
    /// The host that runs the run is to stop it before its next superstep.
    Drain(RunId),
    /// A run of a thread was enqueued. It may begin from a time on, milliseconds since 1970.
    Enqueued {
        /// The thread.
        thread: ThreadId,
        /// The time.
        due_ms: i64,
        /// The host that is to begin it; the others do if that does not. Without it any host does.
        host: Option<Holder>,
    },
    /// A host has stopped runs before their end and given their leases back: the others recover them.
    HandedOver,
}
