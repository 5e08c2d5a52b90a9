//! One attempt of a task: the call of its node, with timeouts.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_graph::graph::{Node, NodeKind};
use wattle_graph::id::PluginName;
use wattle_graph::plan::Task;

use crate::app::App;
use crate::gate::unwind::Unwind;
use crate::gate::{Gate, Setting, TaskSide, log_lost};
use crate::ports::sandbox::{Ended, NodeCall};
use crate::ports::{Caller, Plugin};
use crate::task::context::{History, RunContext, handled};
use crate::task::done::Done;
use crate::task::idle::Alive;
use crate::task::started::Started;

/// Runs the node once.
pub(super) async fn attempt(
    context: &RunContext,
    task: &Task,
    node: &Node,
    history: &History,
    number: u32,
) -> Result<Done, Ended> {
    match context.log.check_room().await {
        Ok(Ok(())) => {}
        Ok(Err(full)) => return Err(Ended::Limit(full)),
        Err(error) => return Err(Ended::Unwound(log_lost(error))),
    }
    let alive = Alive::new(node.timeout.refresh, context.alive.clone());
    match &node.body {
        NodeKind::Plugin { plugin, export } => {
            let code = plugin_of(&context.app, node, plugin)?;
            let gate = Arc::new(gate(context, task, plugin, history, alive.clone()));
            let own_ms = gate.limits().node_timeout_ms;
            let call = call(context, task, node, export, number);
            let work = async { code.run_node(call, gate).await.map(Done::from) };
            within(context, task, node, Some(own_ms), &alive, work).await
        }
        NodeKind::Graph { graph, state } => {
            let work =
                context.subgraphs.attempt(context, task, node, (graph, *state), alive.clone());
            within(context, task, node, None, &alive, work).await
        }
    }
}

/// Ends the work at the run timeout, at the idle timeout, or when its run is cancelled. `own_ms` is
/// the run timeout if neither the task nor the node has one.
async fn within(
    context: &RunContext,
    task: &Task,
    node: &Node,
    own_ms: Option<u64>,
    alive: &Alive,
    work: impl Future<Output = Result<Done, Ended>>,
) -> Result<Done, Ended> {
    let run_ms = task.timeout_ms.or(node.timeout.run_ms).or(own_ms);
    let idle_ms = node.timeout.idle_ms;
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => Err(Ended::Unwound(Unwind::Cancelled)),
        ended = work => ended,
        () = after(run_ms) => Err(too_long("run", run_ms)),
        () = silence(alive, idle_ms) => Err(too_long("idle", idle_ms)),
    }
}

async fn after(ms: Option<u64>) {
    match ms {
        Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
        None => std::future::pending().await,
    }
}

async fn silence(alive: &Alive, idle_ms: Option<u64>) {
    match idle_ms {
        Some(idle_ms) => alive.silent_for(Duration::from_millis(idle_ms)).await,
        None => std::future::pending().await,
    }
}

/// Returns the failure of a task that exceeded a timeout. `which` is `run` for the whole attempt,
/// `idle` for the time without a heartbeat.
fn too_long(which: &str, allowed_ms: Option<u64>) -> Ended {
    let allowed_ms = allowed_ms.unwrap_or_default();
    let text = match which {
        "idle" => format!("sent no heartbeat for {allowed_ms} ms"),
        _ => format!("took longer than {allowed_ms} ms"),
    };
    let details = json!({ "limit": "timeout", "timeout": which, "allowed_ms": allowed_ms });
    Ended::Failure(Failure::new(code::TIMEOUT, text).retryable().with_details(details))
}

fn call(context: &RunContext, task: &Task, node: &Node, export: &str, attempt: u32) -> NodeCall {
    NodeCall {
        node: export.to_owned(),
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
        error: handled(context, task).as_deref().cloned(),
    }
}

fn plugin_of(app: &App, node: &Node, plugin: &PluginName) -> Result<Arc<dyn Plugin>, Ended> {
    app.plugins.get(plugin).cloned().ok_or_else(|| {
        Ended::Host(Failure::internal(format!(
            "plugin `{plugin}` of node `{}` is not loaded",
            node.name
        )))
    })
}

fn gate(
    context: &RunContext,
    task: &Task,
    plugin: &PluginName,
    history: &History,
    alive: Arc<Alive>,
) -> Gate {
    let setting = Setting {
        ports: context.ports.clone(),
        caller: Caller {
            app: context.app.name.clone(),
            plugin: plugin.clone(),
            tenant: context.record.tenant.clone(),
        },
        grants: context.app.grants_of(plugin),
        app: context.app.clone(),
        cancel: context.cancel.clone(),
        quotas: context.quotas.clone(),
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
        started: Arc::new(Started::new(context.clone(), alive.clone())),
        alive,
    };
    Gate::for_task(setting, side)
}
