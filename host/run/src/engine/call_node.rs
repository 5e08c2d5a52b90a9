//! Calls one node of an app for a client, outside of any run.
//!
//! The node has the gate of a guest without a journal, like a [tool](super::call_once) that a client
//! calls. It is not the only node of a run on a thread of its own: a thread is pinned to the version
//! of a graph of an app that every host can load, also to recover the run, and a standalone plugin
//! belongs to no app. A question of the node therefore has no thread that could wait for its answer,
//! and the client gets it in place of an outcome.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;
use wattle_graph::event::{Send as SendTask, Write};
use wattle_graph::failure::{Failure, code};
use wattle_graph::graph::DEFAULT_RECURSION_LIMIT;
use wattle_graph::id::{GraphName, NodeName, PluginName, TaskId};
use wattle_graph::plan::TaskInput;
use wattle_graph::weight::weight;

use super::call_once::to_failure;
use super::find_function::{Found, PluginFunction as _, find_function};
use super::{Engine, new_id, new_run_id, new_thread_id};
use crate::app::App;
use crate::caller_id::CallerId;
use crate::gate::call_list::{CallList, ListedCall};
use crate::gate::client_call::{ClientCall, ClientNode, ListedLogs};
use crate::gate::tool_check::violations;
use crate::gate::unwind::Unwind;
use crate::gate::{Gate, GuestEnv, handlers_full};
use crate::hostcall::interrupt::InterruptRequest;
use crate::json::check_depth;
use crate::ports::sandbox::{GuestError, NodeCall, NodeInfo, NodeOutcome};
use crate::run_memory::MemoryCharge;
use crate::task::attempt::timed_out;
use crate::task::conversation::input_conversation;
use crate::task::outcome::check_form;

/// A call of one node.
#[derive(Clone, Debug)]
pub struct CallNodeOnce {
    /// Full reference of the node, such as `std/agent`, or a name that one plugin of the app has.
    pub node: String,
    /// Input of the node, in place of the state.
    pub input: Value,
    /// Configuration of the node, as `with` of a graph has it.
    pub config: Option<Value>,
    /// Whether the caller may choose a configuration. The configurations of graphs have limits that
    /// their authors set, such as approvals of tool calls, so a caller who may not choose one calls
    /// only nodes that take none.
    pub may_configure: bool,
    /// Context, as a run has it; `null` for none.
    pub context: Value,
    /// Tenant of the caller.
    pub tenant: Option<String>,
    /// Caller for which the guest instance and its work count.
    pub caller: CallerId,
}

/// The end of a call of one node.
#[derive(Debug)]
pub struct NodeCallEnd {
    /// How the node ended.
    pub result: NodeCallResult,
    /// Log messages of the node and of its tools.
    pub logs: ListedLogs,
    /// Duration of the call.
    pub duration: Duration,
    /// Host calls of the node and of the tools that it called, in the order in which they began.
    pub calls: Vec<ListedCall>,
    /// Number of further host calls.
    pub omitted_calls: u64,
}

/// How a node ended that a client called.
#[derive(Debug)]
pub enum NodeCallResult {
    /// The node returned an outcome.
    Finished(CalledNodeOutcome),
    /// The node, or a tool that it called, raised interrupts. A batch of tools can raise several.
    Interrupted(Vec<InterruptRequest>),
    /// The node failed.
    Failed(Failure),
}

/// The outcome of a node that a client called. Its JSON form is that of the event of a task that
/// finished.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CalledNodeOutcome {
    /// Writes in order.
    pub writes: Vec<Write>,
    /// Nodes to run next in place of the edges. `END` is left out, so an empty list ends the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goto: Option<Vec<NodeName>>,
    /// Further tasks of the next superstep.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sends: Vec<SendTask>,
    /// True if the outcome is for the parent graph.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub for_parent: bool,
}

impl Engine {
    /// Calls a node of an app. The call ends if its future is dropped.
    ///
    /// # Errors
    ///
    /// `not-found` if the app has no such node; `invalid` for a name that several plugins have, and
    /// for a configuration that violates the schema of the node; `denied` for a node that takes a
    /// configuration, which the caller may not choose; `limit` for a context that is too large, and
    /// if the runs of the caller leave no memory for the input; `unavailable` if guests outside of
    /// runs hold as many instances as they may. A failure of the node is in the result.
    pub async fn call_node_once(
        &self,
        app: &Arc<App>,
        call: CallNodeOnce,
    ) -> Result<NodeCallEnd, Failure> {
        check_depth("the input", &call.input)?;
        if let Some(config) = &call.config {
            check_depth("the configuration", config)?;
        }
        check_depth("the context", &call.context)?;
        self.check_context_size(&call.context)?;
        let Found { plugin, code, info } = find_function::<NodeInfo>(app, &call.node)?;
        if info.config_schema.is_some() && !call.may_configure {
            return Err(may_not_configure(&info.name));
        }
        let caller = call.caller;
        let env = self.env_outside_of_runs(app, plugin, call.tenant.clone(), caller);
        check_config(&env, info, call.config.as_ref()).await?;
        let memory = self.memory_of_input(caller, &call.input)?;
        let instance = self.0.handlers.lease(caller, 1, usize::MAX);
        let instance = instance.map_err(|_full| handlers_full())?;
        let allowed_ms = env.grants.limits.node_timeout_ms;
        let (node, node_call) = node_call(plugin, info, call).await?;
        let calls = CallList::default();
        let client = ClientCall { calls: calls.clone(), node: Some(Arc::clone(&node)) };
        let gate = Arc::new(Gate::for_client(env, instance, memory, client));
        let (app, plugin, code) = (Arc::clone(app), plugin.clone(), Arc::clone(code));
        let started = Instant::now();
        let work = async move {
            let run = within(allowed_ms, code.run_node(node_call, gate));
            app.count(&plugin, run).await
        };
        let ended = AbortOnDropHandle::new(self.0.runtime.spawn(work)).await;
        let duration = started.elapsed();
        let (questions, logs) = node.take_said();
        let result = match ended {
            Ok(ended) => to_result(ended, questions),
            Err(error) => {
                NodeCallResult::Failed(Failure::internal(format!("the node call failed: {error}")))
            }
        };
        let (calls, omitted_calls) = calls.to_calls();
        Ok(NodeCallEnd { result, logs, duration, calls, omitted_calls })
    }

    /// Takes memory for a node from that of all runs, without waiting. The input counts, because the
    /// host copies the lists that histories refer to. Requests with these histories count while their
    /// calls are in progress.
    fn memory_of_input(&self, caller: CallerId, input: &Value) -> Result<MemoryCharge, Failure> {
        let memory = MemoryCharge::new(self.0.run_memory.try_start(caller)?);
        memory.raise_to(weight(input))?;
        Ok(memory)
    }
}

/// Returns what the gate keeps of the node, and the call. Thread, run and task have new ids, which
/// the store does not have, and the graph has the name of the plugin.
async fn node_call(
    plugin: &PluginName,
    info: &NodeInfo,
    call: CallNodeOnce,
) -> Result<(Arc<ClientNode>, NodeCall), Failure> {
    let CallNodeOnce { input, config, context, tenant, caller, .. } = call;
    let graph = GraphName::new(plugin.as_str());
    let graph = graph.map_err(|error| Failure::internal(error.to_string()))?;
    let task = new_id(TaskId::new);
    let input = TaskInput::Sent(Arc::new(input));
    let declared = info.reads.as_ref().and_then(|reads| reads.conversation_for(config.as_ref()));
    let channel = declared.as_ref().map(|declared| declared.channel.clone());
    let node = Arc::new(ClientNode::new(task.clone(), input.clone(), channel));
    let conversation = match &declared {
        Some(declared) => Some(input_conversation(caller, declared, &node.input).await),
        None => None,
    };
    let call = NodeCall {
        node: info.name.clone(),
        graph,
        thread: new_thread_id(),
        run: new_run_id(),
        task,
        step: 0,
        attempt: 1,
        remaining_steps: DEFAULT_RECURSION_LIMIT,
        tenant,
        context: Arc::new(context.into()),
        input,
        conversation,
        config: Arc::new(config.unwrap_or_default().into()),
        error: None,
    };
    Ok((node, call))
}

fn may_not_configure(node: &str) -> Failure {
    let text = format!(
        "the node `{node}` takes a configuration, which graphs choose; start a run of a graph with \
         the node, or let the operator call it"
    );
    Failure::new(code::DENIED, text)
}

/// Awaits the node, and drops it if it takes too long.
async fn within(
    allowed_ms: u64,
    run: impl Future<Output = Result<NodeOutcome, GuestError>>,
) -> Result<NodeOutcome, GuestError> {
    match tokio::time::timeout(Duration::from_millis(allowed_ms), run).await {
        Ok(ended) => ended,
        Err(_elapsed) => Err(timed_out("run", Some(allowed_ms))),
    }
}

/// Returns how a node ended that raised `questions`.
fn to_result(
    ended: Result<NodeOutcome, GuestError>,
    questions: Vec<InterruptRequest>,
) -> NodeCallResult {
    let outcome = match ended {
        Ok(outcome) => outcome,
        Err(GuestError::Unwound(Unwind::Suspended(_))) => {
            return NodeCallResult::Interrupted(questions);
        }
        Err(ended) => return NodeCallResult::Failed(to_failure(ended, NodeInfo::KIND)),
    };
    match check_form(&outcome) {
        Ok(goto) => {
            let NodeOutcome { writes, sends, for_parent, .. } = outcome;
            NodeCallResult::Finished(CalledNodeOutcome { writes, goto, sends, for_parent })
        }
        Err(failure) => NodeCallResult::Failed(failure),
    }
}

/// Checks the configuration of a node that a client calls, as the check of a graph does. A missing
/// configuration counts as an empty one.
///
/// # Errors
///
/// `invalid`, with the violations, if the configuration violates the schema of the node; `invalid`
/// for a configuration of a node that takes none; `invalid` and `limit` for a schema that cannot be
/// used.
async fn check_config(
    env: &GuestEnv,
    info: &NodeInfo,
    config: Option<&Value>,
) -> Result<(), Failure> {
    let (node, empty) = (&info.name, json!({}));
    let (schema, config) = match (&info.config_schema, config) {
        (Some(schema), Some(config)) => (schema, config),
        (Some(schema), None) => (schema, &empty),
        (None, None) => return Ok(()),
        (None, Some(_)) => {
            let text = format!("the node `{node}` takes no configuration");
            return Err(Failure::new(code::INVALID, text));
        }
    };
    let subject = format!("the configuration schema of node `{node}`");
    let violations = violations(env, &subject, schema, config).await?;
    if violations.is_empty() {
        return Ok(());
    }
    let list = violations.join("; ");
    let text = format!("the configuration of `{node}` does not match its schema: {list}");
    Err(Failure::new(code::INVALID, text).with_details(json!({ "violations": violations })))
}
