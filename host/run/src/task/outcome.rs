//! Result of an attempt: a validated outcome, or a failure.

use std::time::Instant;

use serde_json::{Value, json};
use wattle_graph::event::{Send, TaskFault, TaskFinished, Write};
use wattle_graph::failure::{Failure, code};
use wattle_graph::graph::{Graph, Node, NodeKind};
use wattle_graph::id::{END, NodeName};
use wattle_graph::plan::Task;
use wattle_graph::step::{StepError, check_writes};

use crate::blocking::{block_in_place_unless_cancelled, is_long_validation};
use crate::caller_id::CallerId;
use crate::gate::unwind::Unwind;
use crate::json::check_depth;
use crate::ports::sandbox::{GuestError, NodeOutcome};
use crate::stop_flag::StopFlag;
use crate::task::context::{GraphContext, StepContext};
use crate::task::node_result::NodeResult;

/// Failure of one attempt.
pub(super) struct AttemptFailure {
    pub(super) kind: TaskFault,
    pub(super) failure: Failure,
}

/// Validates the outcome of a node.
///
/// # Errors
///
/// [`GuestError::Failure`] if the outcome is invalid; [`Unwind::Cancelled`] if the run was
/// cancelled while a large outcome waited to be validated.
pub(super) async fn validate(
    context: &StepContext,
    task: &Task,
    done: NodeResult,
    started: Instant,
) -> Result<TaskFinished, GuestError> {
    let NodeResult { outcome, subgraph_end } = done;
    let goto = check(context, task, &outcome).await?;
    Ok(TaskFinished {
        task: task.id.clone(),
        node: task.node.clone(),
        index: task.index,
        base: context.base,
        writes: outcome.writes,
        goto,
        sends: outcome.sends,
        for_parent: outcome.for_parent,
        child: subgraph_end,
        cached: false,
        duration_us: started.elapsed().as_micros() as u64,
    })
}

/// Validates an outcome against its graph: the graph of the task, or the parent graph. Returns the
/// `goto` of the outcome as nodes.
async fn check(
    context: &GraphContext,
    task: &Task,
    outcome: &NodeOutcome,
) -> Result<Option<Vec<NodeName>>, GuestError> {
    let (goto, graph) = targets(context, outcome).map_err(GuestError::Failure)?;
    let (caller, cancel) = (context.caller, &context.cancel);
    let (writes, sends) = (&outcome.writes, &outcome.sends);
    let checked =
        check_in_turn(caller, cancel, graph, &task.node, writes, goto.as_deref(), sends).await;
    match checked {
        Some(Ok(())) => Ok(goto),
        Some(Err(error)) => Err(GuestError::Failure(error.to_failure())),
        None => Err(GuestError::Unwound(Unwind::Cancelled)),
    }
}

/// Checks the depth of an outcome. Returns the `goto` of the outcome as nodes, and its graph.
fn targets<'c>(
    context: &'c GraphContext,
    outcome: &NodeOutcome,
) -> Result<(Option<Vec<NodeName>>, &'c Graph), Failure> {
    Ok((check_form(outcome)?, target_graph(context, outcome)?))
}

/// Checks what can be checked of an outcome without its graph: the depth of its values, and the
/// names in its `goto`. Returns the `goto` as nodes.
///
/// # Errors
///
/// `invalid`.
pub(crate) fn check_form(outcome: &NodeOutcome) -> Result<Option<Vec<NodeName>>, Failure> {
    for write in &outcome.writes {
        check_depth(format_args!("the write to channel `{}`", write.channel), &write.value)?;
    }
    for send in &outcome.sends {
        check_depth(format_args!("the input sent to `{}`", send.node), &send.input)?;
    }
    goto_targets(&outcome.goto)
}

/// Checks writes, targets and sends like [`check_writes`]. A long check waits for a turn of the
/// caller. Returns `None` if the run is cancelled before the turn.
pub(super) async fn check_in_turn(
    caller: CallerId,
    cancel: &StopFlag,
    graph: &Graph,
    node: &NodeName,
    writes: &[Write],
    goto: Option<&[NodeName]>,
    sends: &[Send],
) -> Option<Result<(), StepError>> {
    let is_long = is_long_validation(graph, writes.iter().map(|write| &write.value));
    let check = || check_writes(graph, node, writes, goto, sends);
    block_in_place_unless_cancelled(caller, is_long, cancel, check).await
}

/// Returns the graph of an outcome: the graph of the task, or the parent graph.
fn target_graph<'c>(
    context: &'c GraphContext,
    outcome: &NodeOutcome,
) -> Result<&'c Graph, Failure> {
    if !outcome.for_parent {
        return Ok(&context.graph_version.graph);
    }
    let above = context.parent_graph.as_deref().map(|graph_version| &graph_version.graph);
    above.ok_or_else(|| {
        Failure::new(
            code::INVALID,
            format!(
                "the outcome is for the parent graph of `{}`, which does not run as a subgraph \
                 here",
                context.graph_version.graph.name
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
pub(super) fn classify(ended: GuestError) -> AttemptFailure {
    let (kind, failure) = match ended {
        GuestError::Failure(failure) if failure.code == code::TIMEOUT => {
            (TaskFault::Timeout, failure)
        }
        GuestError::Failure(failure) => (TaskFault::Failure, failure),
        GuestError::Trap(failure) => (TaskFault::Trap, failure),
        GuestError::Limit(failure) | GuestError::Unwound(Unwind::Limit(failure)) => {
            (TaskFault::Limit, failure)
        }
        GuestError::Unwound(Unwind::Divergence(failure)) => (TaskFault::Divergence, failure),
        GuestError::Host(failure) => (TaskFault::Host, failure),
        GuestError::Unwound(
            Unwind::Suspended(_) | Unwind::Cancelled | Unwind::Drained | Unwind::LogLost(_),
        ) => (TaskFault::Host, Failure::internal("the task was aborted")),
    };
    AttemptFailure { kind, failure }
}

/// Adds node and plugin to a failure: as a prefix of the message, and in the details, where
/// `reason` is the message without prefix.
pub(super) fn with_node_context(mut failure: Failure, node: &Node) -> Failure {
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

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::poll;
    use wattle_graph::check::{AnyPlugin, check_toml};
    use wattle_graph::id::ChannelName;

    use super::*;
    use crate::blocking::hold_all_turns;

    #[tokio::test]
    async fn large_writes_wait_for_a_turn_of_long_work_unless_the_run_is_cancelled() {
        let text = "[graphs.g]\nentry = 'a'\nnodes = { a = {} }\nchannels = { list = {} }";
        let graph = check_toml("graph.toml", text, &AnyPlugin).unwrap().remove(0);
        let writes = |length: usize| {
            let (channel, value) = (ChannelName::new("list").unwrap(), json!(vec![0; length]));
            [Write { channel, value, overwrite: false }]
        };
        let (node, large, small) = (NodeName::new("a").unwrap(), writes(1_000), writes(1));
        let (goes_on, cancelled) = (StopFlag::default(), StopFlag::default());
        let check = |cancel, writes| {
            check_in_turn(CallerId::default(), cancel, &graph, &node, writes, None, &[])
        };
        let held = hold_all_turns().await;
        let mut waiting = pin!(check(&goes_on, &large));
        let mut given_up = pin!(check(&cancelled, &large));
        assert!(poll!(waiting.as_mut()).is_pending() && poll!(given_up.as_mut()).is_pending());
        assert!(check(&goes_on, &small).await.is_some_and(|checked| checked.is_ok()));
        cancelled.set();
        assert!(given_up.await.is_none());
        drop(held);
        assert!(waiting.await.is_some_and(|checked| checked.is_ok()));
    }
}
