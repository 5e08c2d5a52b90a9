//! Lists the calls in doubt of a thread, and settles them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wattle_graph::event::{CallStarted, Called, Decision, Event, EventKind, Settled};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, NodeName, RunId, TaskId, ThreadId};
use wattle_graph::principal::Principal;

use super::owner::check_owner;
use super::{Engine, new_run_id, thread_not_found};
use crate::gate::is_in_doubt;
use crate::hostcall::result_override::check_settled;
use crate::log::Commit;
use crate::ports::store::CheckpointTuple;
use crate::view;

/// A call that has started and has no known result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingCall {
    /// The run that started the call.
    pub run: RunId,
    /// Sequence number of the event with the start of the call.
    pub seq: u64,
    /// The task that made the call.
    pub task: TaskId,
    /// The node of the task.
    pub node: NodeName,
    /// Numbers of the tool calls around the call, outermost first.
    pub scope: Vec<u32>,
    /// Number of the call within its scope.
    pub call: u32,
    /// Interface and function.
    pub function: String,
    /// One-line summary for people.
    pub summary: String,
    /// Start of the call, milliseconds since 1970.
    pub at_ms: i64,
    /// The request of a tool call, or only its first bytes if the request is large. `None` for
    /// other calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
    /// The decision about the call, if one was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}

/// A request to settle a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettleCall {
    /// The thread of the call.
    pub thread: ThreadId,
    /// The task that made the call.
    pub task: TaskId,
    /// Numbers of the tool calls around the call, outermost first.
    #[serde(default)]
    pub scope: Vec<u32>,
    /// Number of the call within its scope.
    pub call: u32,
    /// The start of the call that the decision is about, as [`PendingCall::seq`]. `None` for any
    /// start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The decision about the call.
    pub decision: Decision,
    /// Author of the decision, for the log.
    #[serde(default)]
    pub by: String,
    /// App of the caller. A thread of another app is not found. `None` for any app.
    #[serde(default)]
    pub app: Option<AppName>,
    /// Tenant of the caller. A thread of another tenant is not found.
    #[serde(default)]
    pub tenant: Option<String>,
    /// The caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

impl Engine {
    /// Returns the calls of a thread that have started and have no result. While a run is active
    /// they are in progress; after the run was orphaned or has failed they are in doubt. Calls
    /// whose server waits for the answer of a person are included.
    ///
    /// # Errors
    ///
    /// `not-found`; errors of the store.
    pub async fn pending_calls(&self, thread: &ThreadId) -> Result<Vec<PendingCall>, Failure> {
        let head = self.visible_thread(thread).await?.ok_or_else(|| thread_not_found(thread))?;
        let tuple = view::current_checkpoint(&self.0.states, &head).await?;
        Ok(tuple.map(|tuple| scan_pending_calls(&tuple)).unwrap_or_default())
    }

    /// Records the decision about a call in doubt, or about a call that waits for a person. The
    /// decision takes effect when the thread continues.
    ///
    /// # Errors
    ///
    /// `not-found`; `busy` while a run is active; `conflict` if the call is not in doubt, or has
    /// started again since the start of the request; `invalid` if the result in the decision is not
    /// valid for the call.
    pub async fn settle(&self, request: SettleCall) -> Result<(), Failure> {
        let thread = &request.thread;
        let slot = self.claim(thread, new_run_id()).await?;
        let head = self.unexpired_thread(thread).await?.ok_or_else(|| thread_not_found(thread))?;
        check_owner(&head, request.app.as_ref(), request.tenant.as_ref())?;
        let tuple = view::current_checkpoint(&self.0.states, &head).await?;
        let open = tuple.map(|tuple| scan_pending_calls(&tuple)).unwrap_or_default();
        let is_meant = |call: &PendingCall| {
            call.task == request.task && call.scope == request.scope && call.call == request.call
        };
        let Some(meant) = open.iter().find(|call| is_meant(call)) else {
            return Err(conflict(
                &request,
                "is not in doubt: it has a result, or was never started",
                &open,
            ));
        };
        if let Some(seq) = request.seq.filter(|seq| *seq != meant.seq) {
            let last = meant.seq;
            let reason = format!("was last started by event {last}, not by event {seq}");
            return Err(conflict(&request, &reason, &open));
        }
        if let Decision::Answer { answer } = &request.decision {
            check_settled(&meant.function, answer)?;
        }
        let log = self.thread_log(&head, &slot, request.principal.as_ref());
        log.push(EventKind::Settled(Settled {
            task: request.task,
            scope: request.scope,
            call: request.call,
            decision: request.decision,
            by: request.by,
            principal: request.principal,
        }));
        log.commit(Commit::default()).await;
        Ok(log.wait_durable().await?)
    }
}

/// Returns the failure of a request whose call is not among the `open` ones for this `reason`.
fn conflict(request: &SettleCall, reason: &str, open: &[PendingCall]) -> Failure {
    let known = open.iter().map(|call| {
        json!({ "task": call.task, "scope": call.scope, "call": call.call, "seq": call.seq })
    });
    let known: Vec<Value> = known.collect();
    let text = format!("call {} of task `{}` {reason}", request.call, request.task);
    Failure::new(code::CONFLICT, text).with_details(json!({ "open": known }))
}

/// A call that has started and has no result.
struct StartedCall<'t> {
    call: &'t CallStarted,
    /// Event with the start.
    event: &'t Event,
    decision: Option<&'t Decision>,
    /// Call batch in which the call failed as in doubt; `None` if the call did not fail.
    failed: Option<u32>,
}

impl StartedCall<'_> {
    fn is_call(&self, task: &TaskId, scope: &[u32], number: u32) -> bool {
        self.is_in_scope(task, scope) && self.call.call == number
    }

    fn is_in_scope(&self, task: &TaskId, scope: &[u32]) -> bool {
        self.call.task == *task && self.call.scope == scope
    }

    fn view(&self, node: &NodeName) -> PendingCall {
        let Self { call, event, decision, .. } = *self;
        PendingCall {
            run: event.run.clone(),
            seq: event.seq,
            task: call.task.clone(),
            node: node.clone(),
            scope: call.scope.clone(),
            call: call.call,
            function: call.function.clone(),
            summary: call.summary.clone(),
            at_ms: event.at_ms,
            request: call.request.clone(),
            decision: decision.cloned(),
        }
    }
}

/// Returns the calls since a checkpoint that have no result, in the order of their start.
fn scan_pending_calls(tuple: &CheckpointTuple) -> Vec<PendingCall> {
    let mut nodes: BTreeMap<&TaskId, &NodeName> = BTreeMap::new();
    let mut calls: Vec<StartedCall<'_>> = Vec::new();
    for event in &tuple.events {
        match &event.kind {
            EventKind::TaskStarted(started) => {
                nodes.insert(&started.task, &started.node);
            }
            EventKind::TaskFinished(finished) => {
                calls.retain(|begun| begun.call.task != finished.task);
            }
            EventKind::CallStarted(call) => {
                calls.retain(|other| !other.is_call(&call.task, &call.scope, call.call));
                calls.push(StartedCall { call, event, decision: None, failed: None });
            }
            EventKind::Called(called) => apply_result(&mut calls, called),
            // An elicitation in another call of the batch does not show that the task has
            // continued.
            EventKind::InterruptRaised(raised) if raised.elicited.is_none() => {
                let goes_on = |begun: &StartedCall<'_>| {
                    begun.failed.is_some() && begun.is_in_scope(&raised.task, &raised.scope)
                };
                calls.retain(|begun| !goes_on(begun));
            }
            EventKind::Settled(settled) => {
                let meant = calls
                    .iter_mut()
                    .filter(|begun| begun.is_call(&settled.task, &settled.scope, settled.call));
                meant.for_each(|begun| begun.decision = Some(&settled.decision));
            }
            _ => {}
        }
    }
    let view = |begun: &StartedCall<'_>| nodes.get(&begun.call.task).map(|node| begun.view(node));
    calls.iter().filter_map(view).collect()
}

/// Removes the calls that a result completes. A call that failed as in doubt stays until its task
/// has handled the failure and continued.
fn apply_result(calls: &mut Vec<StartedCall<'_>>, called: &Called) {
    calls.retain_mut(|begun| {
        if begun.is_call(&called.task, &called.scope, called.call) {
            begun.failed = is_in_doubt(called).then_some(called.batch);
            return begun.failed.is_some();
        }
        let goes_on = begun.failed.is_some_and(|batch| batch != called.batch);
        !(goes_on && begun.is_in_scope(&called.task, &called.scope))
    });
}
