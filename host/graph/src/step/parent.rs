//! Outcomes of subgraphs for their parent graphs.

use std::collections::BTreeSet;

use crate::event::{Send, Write};
use crate::id::NodeName;
use crate::lineage::Lineage;
use crate::step::tasks_in_order;

/// The outcome that tasks of a subgraph return for the parent graph. This outcome becomes the
/// outcome of the task that runs the subgraph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParentOutcome {
    /// Writes, in task order.
    pub writes: Vec<Write>,
    /// Nodes to run next in place of the edges, without duplicates; `None` if no task named any.
    pub goto: Option<Vec<NodeName>>,
    /// Further tasks, in task order.
    pub sends: Vec<Send>,
}

/// Returns the outcome of the finished tasks for the parent graph; `None` if no task has such an
/// outcome. An outcome ends the subgraph and discards the results of its other tasks in the
/// superstep.
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
