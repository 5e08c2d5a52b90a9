//! What one host asks of whichever host has a run.

use wattle_graph::id::RunId;

/// What is to become of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wish {
    /// It is to end at once.
    Cancel(RunId),
    /// It is to stand still before its next superstep.
    Drain(RunId),
}
