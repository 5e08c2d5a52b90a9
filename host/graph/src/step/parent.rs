//! What a nested graph wants of the graph above it.

use std::collections::BTreeSet;

use crate::event::{Send, Write};
use crate::id::NodeName;
use crate::lineage::Lineage;
use crate::step::tasks_in_order;

/// What the tasks of a nested graph want for the graph above it: the outcome of the task that the
/// nested graph is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParentOutcome {
    /// Their writes, in task order.
    pub writes: Vec<Write>,
    /// Nodes to run next in place of the edges, each once; `None` if no task named any.
    pub goto: Option<Vec<NodeName>>,
    /// Further tasks, in task order.
    pub sends: Vec<Send>,
}

/// What the finished tasks of a superstep want for the graph above their own; `None` if none of
/// them wants anything. Their graph then ends, and what its other tasks did in the superstep is
/// given up.
pub fn parent_outcome(lineage: &Lineage) -> Option<ParentOutcome> {
    let mut outcome: Option<ParentOutcome> = None;
    let mut named = BTreeSet::new();
    for task in tasks_in_order(lineage).into_iter().filter(|task| task.for_parent) {
        let outcome = outcome.get_or_insert_default();
        outcome.writes.extend(task.writes.iter().cloned());
        outcome.sends.extend(task.sends.iter().cloned());
        for target in task.goto.iter().flatten() {
            if named.insert(target) {
                outcome.goto.get_or_insert_default().push(target.clone());
            }
        }
        if task.goto.is_some() {
            outcome.goto.get_or_insert_default();
        }
    }
    outcome
}
