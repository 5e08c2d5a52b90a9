//! Determines what runs after a superstep.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::checkpoint::{CheckpointMeta, TakenCase, Trigger, Values};
use crate::definition::BranchMode;
use crate::error::StepError;
use crate::event::{Send, TaskFinished};
use crate::expr::{ConditionBudget, EvalError};
use crate::graph::{Branch, Edge, Graph, is_end};
use crate::id::NodeName;
use crate::limit::{Exceeded, STEP_INPUT_BYTES};
use crate::weight::weight;

/// Barriers that only some of their sources have reached, by key.
type Barriers = BTreeMap<String, BTreeSet<NodeName>>;

/// A finished task or edit, with its gotos and sends.
pub(super) struct FinishedNode<'t> {
    node: &'t NodeName,
    goto: Option<&'t [NodeName]>,
    sends: &'t [Send],
}

impl<'t> FinishedNode<'t> {
    /// Creates a task or edit without gotos and sends.
    pub(super) fn without_goto(node: &'t NodeName) -> Self {
        Self { node, goto: None, sends: &[] }
    }
}

impl<'t> From<&'t TaskFinished> for FinishedNode<'t> {
    fn from(task: &'t TaskFinished) -> Self {
        Self { node: &task.node, goto: task.goto.as_deref(), sends: &task.sends }
    }
}

/// Triggers of the next superstep, incomplete barriers, deferred triggers, and the cases of
/// branches that were taken.
pub(super) struct NextTriggers {
    pub(super) triggers: Vec<Trigger>,
    pub(super) barriers: Barriers,
    pub(super) deferred: Vec<Trigger>,
    pub(super) taken: Vec<TakenCase>,
}

/// Returns the triggers of the next superstep. The `goto` of a task replaces the edges, branches
/// and barriers of its node. The sends of a task are added.
pub(super) fn next(
    graph: &Graph,
    base: &CheckpointMeta,
    tasks: &[FinishedNode<'_>],
    state: &Values,
) -> Result<NextTriggers, StepError> {
    let mut triggers = Triggers::default();
    let mut ran = BTreeSet::new();
    for task in tasks {
        match task.goto {
            Some(targets) => triggers.add_plain(task.node, targets),
            None => {
                ran.insert(task.node);
            }
        }
    }
    let mut barriers = Barriers::new();
    for edge in graph.edges() {
        take_edge(edge, &ran, &base.barriers, &mut barriers, &mut triggers);
    }
    let (budget, mut taken) = (ConditionBudget::default(), Vec::new());
    for branch in graph.branches() {
        if let Some(from) = branch.from.iter().find(|node| ran.contains(node)) {
            for index in matching_cases(branch, state, &budget)? {
                triggers.add_plain(from, &branch.cases[index].to);
                taken.push(TakenCase { branch: branch.name.clone(), case: index as u32 });
            }
        }
    }
    let (triggers, deferred) = split_deferred(graph, triggers.finish(tasks), base.deferred.clone());
    Ok(NextTriggers { triggers, barriers, deferred, taken })
}

/// Checks the number of tasks of a superstep.
pub(super) fn check_task_count(graph: &Graph, tasks: usize) -> Result<(), StepError> {
    let allowed = graph.limits().step_tasks;
    if tasks as u64 <= allowed {
        return Ok(());
    }
    let message = format!(
        "{tasks} tasks are to run in one superstep, more than the limit of {allowed}: send fewer \
         that do more each"
    );
    Err(StepError::Limit(Exceeded::new("step_tasks", allowed, message)))
}

/// Checks the limits of a superstep with these triggers.
pub(super) fn check_load(graph: &Graph, triggers: &[Trigger]) -> Result<(), StepError> {
    check_task_count(graph, triggers.len())?;
    let inputs = triggers.iter().filter_map(|trigger| trigger.input.as_deref());
    let mut bytes = 0_u64;
    if inputs.map(weight).any(|more| {
        bytes = bytes.saturating_add(more);
        bytes > STEP_INPUT_BYTES
    }) {
        let message = format!(
            "the inputs of the tasks that are to run in one superstep take more than \
             {STEP_INPUT_BYTES} bytes of memory: put large things into channels or blobs"
        );
        let exceeded = Exceeded::new("step_input_bytes", STEP_INPUT_BYTES, message);
        return Err(StepError::Limit(exceeded));
    }
    Ok(())
}

/// Splits triggers into triggers of the next superstep and deferred triggers. `waiting` are the
/// triggers that are already deferred. The deferred triggers become those of the next superstep if
/// there are no others.
pub(super) fn split_deferred(
    graph: &Graph,
    triggers: Vec<Trigger>,
    mut waiting: Vec<Trigger>,
) -> (Vec<Trigger>, Vec<Trigger>) {
    let defers = |trigger: &Trigger| graph.node(&trigger.node).is_some_and(|node| node.defer);
    let (late, now): (Vec<Trigger>, Vec<Trigger>) = triggers.into_iter().partition(defers);
    for trigger in late {
        let again = |other: &Trigger| other.node == trigger.node && other.input.is_none();
        if trigger.input.is_some() || !waiting.iter().any(again) {
            waiting.push(trigger);
        }
    }
    sort(&mut waiting);
    if now.is_empty() { (waiting, Vec::new()) } else { (now, waiting) }
}

/// Sorts triggers by node. Sends come after the plain trigger and keep their order.
pub(super) fn sort(triggers: &mut [Trigger]) {
    triggers.sort_by(|one, other| {
        (&one.node, one.input.is_some()).cmp(&(&other.node, other.input.is_some()))
    });
}

/// Follows an edge if its source has run. Follows a barrier if the last of its sources has run.
fn take_edge(
    edge: &Edge,
    ran: &BTreeSet<&NodeName>,
    barriers: &Barriers,
    left: &mut Barriers,
    triggers: &mut Triggers,
) {
    let arrived = edge.from.iter().find(|node| ran.contains(node));
    if !edge.is_barrier() {
        if let Some(from) = arrived {
            triggers.add_plain(from, &edge.to);
        }
        return;
    }
    let before = barriers.get(&edge.key);
    let waits = |node: &NodeName| !ran.contains(node) && before.is_none_or(|b| !b.contains(node));
    match arrived {
        Some(from) if !edge.from.iter().any(waits) => triggers.add_plain(from, &edge.to),
        _ => {
            let seen: BTreeSet<NodeName> =
                edge.from.iter().filter(|node| !waits(node)).cloned().collect();
            if !seen.is_empty() {
                left.insert(edge.key.clone(), seen);
            }
        }
    }
}

/// Returns the indexes of the cases of a branch that are taken.
fn matching_cases(
    branch: &Branch,
    state: &Values,
    budget: &ConditionBudget,
) -> Result<Vec<usize>, StepError> {
    let mut matching = Vec::new();
    for (index, case) in branch.cases.iter().enumerate() {
        let Some(condition) = &case.when else { continue };
        let matches = condition.eval(state, budget).map_err(|error| match error {
            EvalError::Failed(message) => {
                StepError::Condition { branch: branch.name.clone(), message }
            }
            EvalError::Limit(exceeded) => {
                StepError::Limit(exceeded.of(&format!("branch `{}`", branch.name)))
            }
        })?;
        if matches {
            matching.push(index);
            if branch.mode == BranchMode::First {
                break;
            }
        }
    }
    if !matching.is_empty() {
        return Ok(matching);
    }
    match (branch.cases.iter().position(|case| case.when.is_none()), branch.mode) {
        (Some(default), _) => Ok(vec![default]),
        (None, BranchMode::All) => Ok(Vec::new()),
        (None, BranchMode::First) => Err(StepError::NoCase { branch: branch.name.clone() }),
    }
}

/// Nodes to run, each with the first node that triggered it.
#[derive(Default)]
struct Triggers(BTreeMap<NodeName, NodeName>);

impl Triggers {
    fn add_plain(&mut self, from: &NodeName, targets: &[NodeName]) {
        for target in targets.iter().filter(|target| !is_end(target)) {
            if !self.0.contains_key(target) {
                self.0.insert(target.clone(), from.clone());
            }
        }
    }

    /// Returns all triggers by node. Sends come after the plain trigger, in task order.
    fn finish(self, tasks: &[FinishedNode<'_>]) -> Vec<Trigger> {
        let plain = self.0.into_iter();
        let mut all: Vec<Trigger> =
            plain.map(|(node, from)| Trigger::without_input(node, Some(from))).collect();
        for task in tasks {
            all.extend(task.sends.iter().map(|send| Trigger {
                node: send.node.clone(),
                from: Some(task.node.clone()),
                input: Some(Arc::new(send.input.clone())),
                timeout_ms: send.timeout_ms,
            }));
        }
        sort(&mut all);
        all
    }
}
