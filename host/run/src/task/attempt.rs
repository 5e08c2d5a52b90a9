//! One attempt of a task: the call of its node, with timeouts.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_graph::graph::{Node, NodeKind};
use wattle_graph::id::PluginName;
use wattle_graph::plan::Task;

use crate::app::App;
use crate::gate::task_input::HistoryInput;
use crate::gate::unwind::Unwind;
use crate::gate::{Gate, GuestEnv, TaskGate, log_lost};
use crate::ports::sandbox::{GuestError, NodeCall};
use crate::ports::{Caller, Plugin};
use crate::task::context::{GraphContext, StepContext, TaskHistory, handled_failure};
use crate::task::conversation::input_conversation;
use crate::task::node_result::NodeResult;
use crate::task::started_subgraphs::StartedSubgraphs;
use crate::task::task_heartbeat::TaskHeartbeat;

/// Runs the node once.
pub(super) async fn attempt(
    context: &Arc<StepContext>,
    task: &Task,
    node: &Node,
    history: &TaskHistory,
    number: u32,
) -> Result<NodeResult, GuestError> {
    match context.log.check_size().await {
        Ok(Ok(())) => {}
        Ok(Err(full)) => return Err(GuestError::Limit(full)),
        Err(error) => return Err(GuestError::Unwound(log_lost(error))),
    }
    let heartbeat = TaskHeartbeat::new(node.timeout.refresh, context.parent_heartbeat.clone());
    match &node.body {
        NodeKind::Plugin { plugin, export } => {
            let code = plugin_of(&context.app, node, plugin)?;
            let input = Arc::new(HistoryInput::new(context.input_of(task)));
            let side = (node, plugin, input.clone());
            let gate = Arc::new(gate(context, task, side, history, heartbeat.clone()));
            let own_ms = gate.limits().node_timeout_ms;
            let work = async {
                let call = node_call(context, task, (node, export.as_str()), &input, number).await;
                code.run_node(call, gate).await.map(NodeResult::from)
            };
            // Pinned here, because the futures around it would otherwise contain it several times.
            let work = pin!(work);
            let work = with_timeouts(context, task, node, Some(own_ms), &heartbeat, work);
            context.app.count(plugin, work).await
        }
        NodeKind::Graph { graph, state } => {
            let mut work = context.subgraph_runner.attempt(
                context,
                task,
                node,
                (graph, *state),
                heartbeat.clone(),
            );
            with_timeouts(context, task, node, None, &heartbeat, work.as_mut()).await
        }
    }
}

/// Ends the work at the run timeout, at the idle timeout, or when its run is cancelled. `own_ms` is
/// the run timeout if neither the task nor the node has one.
async fn with_timeouts(
    context: &GraphContext,
    task: &Task,
    node: &Node,
    own_ms: Option<u64>,
    heartbeat: &TaskHeartbeat,
    mut work: Pin<&mut (impl Future<Output = Result<NodeResult, GuestError>> + ?Sized)>,
) -> Result<NodeResult, GuestError> {
    let run_ms = task.timeout_ms.or(node.timeout.run_ms).or(own_ms);
    let idle_ms = node.timeout.idle_ms;
    let cut = async {
        tokio::select! {
            biased;
            () = context.cancel.wait() => GuestError::Unwound(Unwind::Cancelled),
            () = run_timeout(run_ms) => timed_out("run", run_ms),
            () = idle_timeout(heartbeat, idle_ms) => timed_out("idle", idle_ms),
        }
    };
    let mut cut = pin!(cut);
    // The wait for the flag takes locks, so it begins only if the work does not complete at once.
    poll_fn(|cx| {
        if context.cancel.is_set() {
            return Poll::Ready(Err(GuestError::Unwound(Unwind::Cancelled)));
        }
        match work.as_mut().poll(cx) {
            Poll::Pending => cut.as_mut().poll(cx).map(Err),
            ended @ Poll::Ready(_) => ended,
        }
    })
    .await
}

async fn run_timeout(ms: Option<u64>) {
    match ms {
        Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
        None => std::future::pending().await,
    }
}

async fn idle_timeout(heartbeat: &TaskHeartbeat, idle_ms: Option<u64>) {
    match idle_ms {
        Some(idle_ms) => heartbeat.wait_idle(Duration::from_millis(idle_ms)).await,
        None => std::future::pending().await,
    }
}

/// Returns the failure of a task that exceeded a timeout. `which` is `run` (time of the whole
/// attempt) or `idle` (time since the last heartbeat).
pub(crate) fn timed_out(which: &str, allowed_ms: Option<u64>) -> GuestError {
    let allowed_ms = allowed_ms.unwrap_or_default();
    let text = match which {
        "idle" => format!("sent no heartbeat for {allowed_ms} ms"),
        _ => format!("took longer than {allowed_ms} ms"),
    };
    let details = json!({ "limit": "timeout", "timeout": which, "allowed_ms": allowed_ms });
    GuestError::Failure(Failure::new(code::TIMEOUT, text).retryable().with_details(details))
}

async fn node_call(
    context: &StepContext,
    task: &Task,
    (node, export): (&Node, &str),
    input: &HistoryInput,
    attempt: u32,
) -> NodeCall {
    let conversation = match &node.conversation {
        Some(declared) => Some(input_conversation(context.caller, declared, input).await),
        None => None,
    };
    NodeCall {
        node: export.to_owned(),
        graph: context.graph_version.graph.name.clone(),
        thread: context.record.id.clone(),
        run: context.run.clone(),
        task: task.id.clone(),
        step: task.step,
        attempt,
        remaining_steps: context.remaining_steps,
        tenant: context.record.tenant.clone(),
        context: context.run_context.clone(),
        input: input.task_input().clone(),
        conversation,
        config: node.config.clone(),
        error: handled_failure(context, task).as_deref().cloned(),
    }
}

fn plugin_of(app: &App, node: &Node, plugin: &PluginName) -> Result<Arc<dyn Plugin>, GuestError> {
    app.plugins.get(plugin).cloned().ok_or_else(|| {
        GuestError::Host(Failure::internal(format!(
            "plugin `{plugin}` of node `{}` is not loaded",
            node.name
        )))
    })
}

fn gate(
    context: &Arc<StepContext>,
    task: &Task,
    (node, plugin, input): (&Node, &PluginName, Arc<HistoryInput>),
    history: &TaskHistory,
    heartbeat: Arc<TaskHeartbeat>,
) -> Gate {
    let env = GuestEnv {
        ports: context.ports.clone(),
        caller: Caller {
            app: context.app.name.clone(),
            plugin: plugin.clone(),
            tenant: context.record.tenant.clone(),
            owner: context.caller,
        },
        grants: context.app.grants_of(plugin),
        app: context.app.clone(),
        cancel: context.cancel.clone(),
        quotas: context.quotas.clone(),
        schemas: context.schemas.clone(),
    };
    let side = TaskGate {
        task: task.id.clone(),
        node: task.node.clone(),
        scope: Vec::new(),
        input: Some(input),
        conversation: node.conversation.as_ref().map(|it| it.channel.clone()),
        log: context.log.clone(),
        journal: history.journal.clone(),
        interrupts: history.interrupts.clone(),
        interrupt_ttl_ms: context.graph_version.graph.interrupt_ttl_ms(),
        clock: context.ports.clock.clone(),
        reusable_results: context.reusable_results.clone(),
        subgraphs: Arc::new(StartedSubgraphs::new(context.clone(), heartbeat.clone())),
        heartbeat,
        is_awaited_by_guest: context.is_awaited_by_guest,
    };
    Gate::for_task(env, side)
}
