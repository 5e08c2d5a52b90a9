//! Result of an attempt: a validated and logged outcome, or a failure.

use std::time::Instant;

use serde_json::{Value, json};
use wattle_graph::event::{EventKind, TaskFault, TaskFinished};
use wattle_graph::failure::{Failure, code};
use wattle_graph::graph::{Graph, Node, NodeKind};
use wattle_graph::id::{END, NodeName};
use wattle_graph::plan::Task;
use wattle_graph::step::check_writes;

use crate::gate::Journal;
use crate::gate::unwind::Unwind;
use crate::json::check_depth;
use crate::ports::sandbox::{Ended, NodeOutcome};
use crate::task::context::RunContext;
use crate::task::done::Done;

/// Failure of one attempt.
pub(super) struct Fault {
    pub(super) kind: TaskFault,
    pub(super) failure: Failure,
}

/// Validates the outcome of a node and logs it.
pub(super) fn finish(
    context: &RunContext,
    task: &Task,
    journal: &Journal,
    done: Done,
    started: Instant,
) -> Result<TaskFinished, Fault> {
    let Done { outcome, child } = done;
    let goto = check(context, task, &outcome)
        .map_err(|failure| Fault { kind: TaskFault::Failure, failure })?;
    let finished = TaskFinished {
        task: task.id.clone(),
        node: task.node.clone(),
        index: task.index,
        base: context.base,
        writes: outcome.writes,
        goto,
        sends: outcome.sends,
        for_parent: outcome.for_parent,
        child,
        cached: false,
        duration_us: started.elapsed().as_micros() as u64,
    };
    write_down(context, journal, &finished);
    Ok(finished)
}

/// Logs `task_finished`. A task of a subgraph also records it in its journal, because the parent
/// task can be aborted and retried at any time.
pub(super) fn write_down(context: &RunContext, journal: &Journal, finished: &TaskFinished) {
    context.log.push(EventKind::TaskFinished(finished.clone()));
    if !context.log.namespace().is_root() {
        journal.finish(finished.clone());
    }
}

/// Validates an outcome against the graph it is for. Returns its `goto` as nodes.
fn check(
    context: &RunContext,
    task: &Task,
    outcome: &NodeOutcome,
) -> Result<Option<Vec<NodeName>>, Failure> {
    for write in &outcome.writes {
        check_depth(&format!("the write to channel `{}`", write.channel), &write.value)?;
    }
    for send in &outcome.sends {
        check_depth(&format!("the input sent to `{}`", send.node), &send.input)?;
    }
    let goto = goto_targets(&outcome.goto)?;
    let graph = target(context, outcome)?;
    check_writes(graph, &task.node, &outcome.writes, goto.as_deref(), &outcome.sends)
        .map_err(|error| error.to_failure())?;
    Ok(goto)
}

/// Returns the graph that an outcome is for.
fn target<'c>(context: &'c RunContext, outcome: &NodeOutcome) -> Result<&'c Graph, Failure> {
    if !outcome.for_parent {
        return Ok(&context.pack.graph);
    }
    let above = context.above.as_deref().map(|pack| &pack.graph);
    above.ok_or_else(|| {
        Failure::new(
            code::INVALID,
            format!(
                "the outcome is for the parent graph of `{}`, which does not run as a subgraph \
                 here",
                context.pack.graph.name
            ),
        )
    })
}

/// Returns the targets of a `goto`; `END` among them means no target.
fn goto_targets(goto: &[String]) -> Result<Option<Vec<NodeName>>, Failure> {
    if goto.is_empty() {
        return Ok(None);
    }
    goto.iter()
        .filter(|target| *target != END)
        .map(|target| {
            NodeName::new(target).map_err(|error| {
                Failure::new(code::INVALID, format!("`goto` names an invalid node: {error}"))
            })
        })
        .collect::<Result<_, _>>()
        .map(Some)
}

/// Returns the fault of an attempt that did not finish.
pub(super) fn classify(ended: Ended) -> Fault {
    let (kind, failure) = match ended {
        Ended::Failure(failure) if failure.code == code::TIMEOUT => (TaskFault::Timeout, failure),
        Ended::Failure(failure) => (TaskFault::Failure, failure),
        Ended::Trap(failure) => (TaskFault::Trap, failure),
        Ended::Limit(failure) | Ended::Unwound(Unwind::Limit(failure)) => {
            (TaskFault::Limit, failure)
        }
        Ended::Unwound(Unwind::Divergence(failure)) => (TaskFault::Divergence, failure),
        Ended::Host(failure) => (TaskFault::Host, failure),
        Ended::Unwound(
            Unwind::Suspended(_) | Unwind::Cancelled | Unwind::Drained | Unwind::Log(_),
        ) => (TaskFault::Host, Failure::internal("the task was aborted")),
    };
    Fault { kind, failure }
}

/// Adds node and plugin to a failure: as a prefix of the message, and in the details, where
/// `reason` is the message without prefix.
pub(super) fn named(mut failure: Failure, node: &Node) -> Failure {
    let (place, prefix) = match &node.body {
        NodeKind::Plugin { plugin, export } => (
            format!("node `{}` of plugin `{plugin}`: ", node.name),
            format!("node `{export}` of plugin `{plugin}`: "),
        ),
        NodeKind::Graph { graph, .. } => {
            let place = format!("node `{}`, which is graph `{graph}`: ", node.name);
            (place.clone(), place)
        }
    };
    let reason = failure.message.strip_prefix(&prefix).unwrap_or(&failure.message).to_owned();
    failure.message = format!("{place}{reason}");
    let details = failure.details.get_or_insert_with(|| json!({}));
    if let Value::Object(details) = details {
        details.entry("node").or_insert_with(|| json!(node.name));
        if let Some(plugin) = node.plugin() {
            details.entry("plugin").or_insert_with(|| json!(plugin));
        }
        details.entry("reason").or_insert_with(|| json!(reason));
    }
    failure
}
