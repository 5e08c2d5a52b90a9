//! One task of a superstep: attempts of a node, with timeout and retries, until it has ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wattle_graph::event::{EventKind, TaskFailed, TaskFault, TaskFinished, TaskStarted};
use wattle_graph::failure::{Failure, code};
use wattle_graph::graph::Node;
use wattle_graph::id::{CheckpointId, END, InterruptId, NodeName, RunId};
use wattle_graph::interrupt::Question;
use wattle_graph::plan::Task;
use wattle_graph::step::check_writes;

use crate::app::{App, GraphPack};
use crate::cancel::Cancel;
use crate::gate::unwind::Unwind;
use crate::gate::{Gate, Journal, Setting, TaskSide};
use crate::json::check_depth;
use crate::log::ThreadLog;
use crate::ports::sandbox::{Ended, NodeCall, NodeOutcome};
use crate::ports::store::ThreadRecord;
use crate::ports::{Caller, Plugin, Ports};
use crate::salvage::Salvage;

/// Everything a task needs of its run.
#[derive(Clone)]
pub(crate) struct RunContext {
    pub app: Arc<App>,
    pub pack: Arc<GraphPack>,
    pub log: Arc<ThreadLog>,
    pub record: Arc<ThreadRecord>,
    pub run: RunId,
    pub ports: Ports,
    pub cancel: Cancel,
    pub remaining_steps: u32,
    pub base: CheckpointId,
    pub salvage: Arc<Salvage>,
}

/// What was logged of a task before.
pub(crate) struct History {
    pub journal: Arc<Journal>,
    pub questions: Arc<BTreeMap<InterruptId, Question>>,
    /// Attempts that have failed.
    pub failed_attempts: u32,
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TaskEnd {
    /// Well; the event is in the log.
    Finished(Box<TaskFinished>),
    /// With a question; the event is in the log.
    Suspended,
    /// Badly and for good; the event is in the log.
    Failed(TaskFailed),
    /// By cancellation.
    Cancelled,
    /// The log could not be written.
    LogLost(Failure),
}

/// How one attempt ended badly.
struct Fault {
    kind: TaskFault,
    failure: Failure,
}

/// Runs a task to its end.
pub(crate) async fn run_task(context: RunContext, task: Task, history: History) -> TaskEnd {
    let Some(node) = context.pack.graph.node(&task.node) else {
        return TaskEnd::LogLost(Failure::internal(format!(
            "node `{}` is not in the graph",
            task.node
        )));
    };
    let mut attempt = history.failed_attempts + 1;
    loop {
        context.log.push(EventKind::TaskStarted(TaskStarted {
            task: task.id.clone(),
            node: task.node.clone(),
            step: task.step,
            attempt,
        }));
        let started = Instant::now();
        let ended = attempt_node(&context, &task, node, &history, attempt).await;
        let fault = match ended {
            Ok(outcome) => match finish(&context, &task, outcome, started) {
                Ok(end) => return end,
                Err(fault) => fault,
            },
            Err(Ended::Unwound(Unwind::Suspended(_))) => return TaskEnd::Suspended,
            Err(Ended::Unwound(Unwind::Cancelled)) => return TaskEnd::Cancelled,
            Err(Ended::Unwound(Unwind::Log(failure))) => return TaskEnd::LogLost(failure),
            Err(ended) => classify(ended),
        };
        let retry_in_ms = retry_delay(node, &fault.failure, attempt);
        let failed = TaskFailed {
            task: task.id.clone(),
            node: task.node.clone(),
            attempt,
            fault: fault.kind,
            failure: named(fault.failure, node),
            retry_in_ms,
        };
        context.log.push(EventKind::TaskFailed(failed.clone()));
        let Some(delay_ms) = retry_in_ms else { return TaskEnd::Failed(failed) };
        context.log.flush().await;
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(delay_ms)) => {}
            () = context.cancel.cancelled() => return TaskEnd::Cancelled,
        }
        history.journal.begin_attempt();
        attempt += 1;
    }
}

async fn attempt_node(
    context: &RunContext,
    task: &Task,
    node: &Node,
    history: &History,
    attempt: u32,
) -> Result<NodeOutcome, Ended> {
    let plugin = plugin_of(&context.app, node)?;
    let gate = Arc::new(gate(context, task, node, history));
    let timeout_ms = node.timeout_ms.unwrap_or(gate.limits().node_timeout_ms);
    let call = NodeCall {
        node: node.export.clone(),
        graph: context.pack.graph.name.clone(),
        thread: context.record.id.clone(),
        run: context.run.clone(),
        task: task.id.clone(),
        step: task.step,
        attempt,
        remaining_steps: context.remaining_steps,
        tenant: context.record.tenant.clone(),
        context: context.record.context.clone(),
        input: task.input.clone(),
        config: node.config.clone(),
    };
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => Err(Ended::Unwound(Unwind::Cancelled)),
        ended = tokio::time::timeout(Duration::from_millis(timeout_ms), plugin.run_node(call, gate)) => {
            ended.unwrap_or_else(|_| Err(Ended::Failure(timed_out(timeout_ms))))
        }
    }
}

fn plugin_of(app: &App, node: &Node) -> Result<Arc<dyn Plugin>, Ended> {
    app.plugins.get(&node.plugin).cloned().ok_or_else(|| {
        Ended::Host(Failure::internal(format!(
            "plugin `{}` of node `{}` is not loaded",
            node.plugin, node.name
        )))
    })
}

fn gate(context: &RunContext, task: &Task, node: &Node, history: &History) -> Gate {
    let setting = Setting {
        ports: context.ports.clone(),
        caller: Caller {
            app: context.app.name.clone(),
            plugin: node.plugin.clone(),
            tenant: context.record.tenant.clone(),
        },
        grants: context.app.grants_of(&node.plugin),
        app: context.app.clone(),
        cancel: context.cancel.clone(),
    };
    let side = TaskSide {
        task: task.id.clone(),
        node: task.node.clone(),
        scope: Vec::new(),
        log: context.log.clone(),
        journal: history.journal.clone(),
        questions: history.questions.clone(),
        interrupt_ttl_ms: context.pack.graph.interrupt_ttl_ms(),
        clock: context.ports.clock.clone(),
        salvage: context.salvage.clone(),
    };
    Gate::for_task(setting, side)
}

/// Checks what a node decided and writes it to the log.
fn finish(
    context: &RunContext,
    task: &Task,
    outcome: NodeOutcome,
    started: Instant,
) -> Result<TaskEnd, Fault> {
    let invalid = |failure| Fault { kind: TaskFault::Failure, failure };
    for write in &outcome.writes {
        check_depth(&format!("the write to channel `{}`", write.channel), &write.value)
            .map_err(invalid)?;
    }
    for send in &outcome.sends {
        check_depth(&format!("the input sent to `{}`", send.node), &send.input).map_err(invalid)?;
    }
    let goto = goto_targets(&outcome.goto).map_err(invalid)?;
    check_writes(&context.pack.graph, &task.node, &outcome.writes, goto.as_deref(), &outcome.sends)
        .map_err(|error| invalid(error.to_failure()))?;
    let finished = TaskFinished {
        task: task.id.clone(),
        node: task.node.clone(),
        index: task.index,
        base: context.base,
        writes: outcome.writes,
        goto,
        sends: outcome.sends,
        duration_us: started.elapsed().as_micros() as u64,
    };
    context.log.push(EventKind::TaskFinished(finished.clone()));
    Ok(TaskEnd::Finished(Box::new(finished)))
}

/// Targets of a `goto`; `END` among them means no target.
fn goto_targets(goto: &[String]) -> Result<Option<Vec<NodeName>>, Failure> {
    if goto.is_empty() {
        return Ok(None);
    }
    goto.iter()
        .filter(|target| *target != END)
        .map(|target| {
            NodeName::new(target).map_err(|error| {
                Failure::new(code::INVALID, format!("`goto` names no node: {error}"))
            })
        })
        .collect::<Result<_, _>>()
        .map(Some)
}

fn classify(ended: Ended) -> Fault {
    let (kind, failure) = match ended {
        Ended::Failure(failure) if failure.code == code::TIMEOUT => (TaskFault::Timeout, failure),
        Ended::Failure(failure) => (TaskFault::Failure, failure),
        Ended::Trap(failure) => (TaskFault::Trap, failure),
        Ended::Limit(failure) | Ended::Unwound(Unwind::Limit(failure)) => {
            (TaskFault::Limit, failure)
        }
        Ended::Unwound(Unwind::Divergence(failure)) => (TaskFault::Divergence, failure),
        Ended::Host(failure) => (TaskFault::Host, failure),
        Ended::Unwound(Unwind::Suspended(_) | Unwind::Cancelled | Unwind::Log(_)) => {
            (TaskFault::Host, Failure::internal("the task was ended from outside"))
        }
    };
    Fault { kind, failure }
}

fn timed_out(timeout_ms: u64) -> Failure {
    Failure::new(code::TIMEOUT, format!("took longer than {timeout_ms} ms"))
        .retryable()
        .with_details(json!({ "limit": "timeout", "allowed_ms": timeout_ms }))
}

fn retry_delay(node: &Node, failure: &Failure, attempt: u32) -> Option<u64> {
    let again = attempt < node.retry.attempts && node.retry.covers(failure);
    again.then(|| node.retry.delay_ms(attempt, jitter()))
}

/// A number from 0 to 1 that spreads retries of many runs; not journaled, since nobody sees it.
fn jitter() -> f64 {
    f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX)
}

/// Names plugin and node: in front of the message for people, in the details for programs, where
/// `reason` is the message alone.
fn named(mut failure: Failure, node: &Node) -> Failure {
    let sandbox_prefix = format!("node `{}` of plugin `{}`: ", node.export, node.plugin);
    let reason =
        failure.message.strip_prefix(&sandbox_prefix).unwrap_or(&failure.message).to_owned();
    failure.message = format!("node `{}` of plugin `{}`: {reason}", node.name, node.plugin);
    let details = failure.details.get_or_insert_with(|| json!({}));
    if let Value::Object(details) = details {
        details.entry("node").or_insert_with(|| json!(node.name));
        details.entry("plugin").or_insert_with(|| json!(node.plugin));
        details.entry("reason").or_insert_with(|| json!(reason));
    }
    failure
}
