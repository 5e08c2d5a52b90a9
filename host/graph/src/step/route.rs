//! Where the tasks of a superstep lead.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::checkpoint::{Trigger, Values};
use crate::definition::BranchMode;
use crate::error::StepError;
use crate::event::TaskFinished;
use crate::graph::{Branch, Edge, Graph, is_end};
use crate::id::NodeName;

/// Barriers that are not full yet, by key.
pub(super) type Barriers = BTreeMap<String, BTreeSet<NodeName>>;

/// What runs next, and the barriers that are not full yet. A task's own `goto` takes the place of
/// the edges, branches and barriers of its node; its sends come in addition.
pub(super) fn next(
    graph: &Graph,
    barriers: &Barriers,
    tasks: &[&TaskFinished],
    state: &Values,
) -> Result<(Vec<Trigger>, Barriers), StepError> {
    let mut triggers = Triggers::default();
    let mut ran = BTreeSet::new();
    for task in tasks {
        match &task.goto {
            Some(targets) => triggers.plain(&task.node, targets),
            None => {
                ran.insert(&task.node);
            }
        }
    }
    let mut left = Barriers::new();
    for edge in graph.edges() {
        follow(edge, &ran, barriers, &mut left, &mut triggers);
    }
    for branch in graph.branches() {
        if let Some(from) = branch.from.iter().find(|node| ran.contains(node)) {
            decide(branch, from, state, &mut triggers)?;
        }
    }
    Ok((triggers.finish(tasks), left))
}

/// Follows an edge if its source, or for a barrier the last of its sources, has run.
fn follow(
    edge: &Edge,
    ran: &BTreeSet<&NodeName>,
    barriers: &Barriers,
    left: &mut Barriers,
    triggers: &mut Triggers,
) {
    let arrived = edge.from.iter().find(|node| ran.contains(node));
    if !edge.is_barrier() {
        if let Some(from) = arrived {
            triggers.plain(from, &edge.to);
        }
        return;
    }
    let before = barriers.get(&edge.key);
    let waits = |node: &NodeName| !ran.contains(node) && before.is_none_or(|b| !b.contains(node));
    match arrived {
        Some(from) if !edge.from.iter().any(waits) => triggers.plain(from, &edge.to),
        _ => {
            let seen: BTreeSet<NodeName> =
                edge.from.iter().filter(|node| !waits(node)).cloned().collect();
            if !seen.is_empty() {
                left.insert(edge.key.clone(), seen);
            }
        }
    }
}

/// Takes the matching cases of a branch.
fn decide(
    branch: &Branch,
    from: &NodeName,
    state: &Values,
    triggers: &mut Triggers,
) -> Result<(), StepError> {
    let mut taken = false;
    for case in &branch.cases {
        let Some(condition) = &case.when else { continue };
        let matches = condition
            .eval(state)
            .map_err(|message| StepError::Condition { branch: branch.name.clone(), message })?;
        if matches {
            taken = true;
            triggers.plain(from, &case.to);
            if branch.mode == BranchMode::First {
                break;
            }
        }
    }
    if taken {
        return Ok(());
    }
    match (branch.cases.iter().find(|case| case.when.is_none()), branch.mode) {
        (Some(default), _) => triggers.plain(from, &default.to),
        (None, BranchMode::All) => {}
        (None, BranchMode::First) => {
            return Err(StepError::NoCase { branch: branch.name.clone() });
        }
    }
    Ok(())
}

/// Nodes to run: each once, by the first that led there.
#[derive(Default)]
struct Triggers(BTreeMap<NodeName, NodeName>);

impl Triggers {
    fn plain(&mut self, from: &NodeName, targets: &[NodeName]) {
        for target in targets.iter().filter(|target| !is_end(target)) {
            if !self.0.contains_key(target) {
                self.0.insert(target.clone(), from.clone());
            }
        }
    }

    /// All triggers with the sends of the tasks, by node; sends after the plain one, in task order.
    fn finish(self, tasks: &[&TaskFinished]) -> Vec<Trigger> {
        let plain = self.0.into_iter();
        let mut all: Vec<Trigger> =
            plain.map(|(node, from)| Trigger { node, from: Some(from), input: None }).collect();
        for task in tasks {
            all.extend(task.sends.iter().map(|send| Trigger {
                node: send.node.clone(),
                from: Some(task.node.clone()),
                input: Some(Arc::new(send.input.clone())),
            }));
        }
        all.sort_by(|one, other| {
            (&one.node, one.input.is_some()).cmp(&(&other.node, other.input.is_some()))
        });
        all
    }
}
