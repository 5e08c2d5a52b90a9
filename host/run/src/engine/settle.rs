//! Calls in doubt of threads that stand still: which there are, and what becomes of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;
use wattle_graph::event::{CallStarted, Called, Decision, EventKind, Settled};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, NodeName, TaskId, ThreadId};
use wattle_graph::principal::Principal;

use super::owner::check_owner;
use super::{Engine, new_run_id, no_thread};
use crate::gate::is_in_doubt;
use crate::hostcall::replace::check_settled;
use crate::log::Commit;
use crate::ports::store::CheckpointTuple;
use crate::view::{self, store_failure};

/// A call that was begun and of which nobody knows how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenCall {
    /// The task.
    pub task: TaskId,
    /// Its node.
    pub node: NodeName,
    /// Which calls of the task it is inside of.
    pub scope: Vec<u32>,
    /// Its number.
    pub call: u32,
    /// Interface and function.
    pub function: String,
    /// One line for people.
    pub summary: String,
    /// When it began, milliseconds since 1970.
    pub at_ms: i64,
    /// What was decided of it, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettleCall {
    /// The thread.
    pub thread: ThreadId,
    /// The task.
    pub task: TaskId,
    /// Which calls of the task it is inside of.
    #[serde(default)]
    pub scope: Vec<u32>,
    /// Its number.
    pub call: u32,
    /// What becomes of it.
    pub decision: Decision,
    /// Who decides, for the log.
    #[serde(default)]
    pub by: String,
    /// Only a thread of this app.
    #[serde(default)]
    pub app: Option<AppName>,
    /// Only a thread of this tenant.
    #[serde(default)]
    pub tenant: Option<String>,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

impl Engine {
    /// Calls of a thread that were begun and have no answer. While a run is at work these are the
    /// calls under way; when it has been cut or has failed they are in doubt. Calls in which a server
    /// has asked a person are among them while they wait for the answer.
    ///
    /// # Errors
    ///
    /// `not-found`, and those of the store.
    pub async fn open_calls(&self, thread: &ThreadId) -> Result<Vec<OpenCall>, Failure> {
        let head = self.live_thread(thread).await?.ok_or_else(|| no_thread(thread))?;
        let store = self.0.ports.store.as_ref();
        let tuple = view::current(store, &head).await.map_err(store_failure)?;
        Ok(tuple.map(|tuple| open(&tuple)).unwrap_or_default())
    }

    /// Writes down what becomes of a call in doubt, or of one that waits for a person. It takes effect
    /// when the thread goes on.
    ///
    /// # Errors
    ///
    /// `not-found`; `busy` while a run is at work; `conflict` if the call is not in doubt;
    /// `invalid` for an answer that is none of the call.
    pub async fn settle(&self, request: SettleCall) -> Result<(), Failure> {
        let thread = &request.thread;
        let slot = self.claim(thread, new_run_id()).await?;
        let head = self.live_thread(thread).await?.ok_or_else(|| no_thread(thread))?;
        check_owner(&head, request.app.as_ref(), request.tenant.as_ref())?;
        let store = self.0.ports.store.as_ref();
        let tuple = view::current(store, &head).await.map_err(store_failure)?;
        let open = tuple.map(|tuple| open(&tuple)).unwrap_or_default();
        let is_meant = |call: &OpenCall| {
            call.task == request.task && call.scope == request.scope && call.call == request.call
        };
        let Some(meant) = open.iter().find(|call| is_meant(call)) else {
            let known: Vec<_> = open
                .iter()
                .map(|call| json!({ "task": call.task, "scope": call.scope, "call": call.call }))
                .collect();
            let text = format!(
                "call {} of task `{}` is not in doubt: it was answered, or never made",
                request.call, request.task
            );
            return Err(Failure::new(code::CONFLICT, text).with_details(json!({ "open": known })));
        };
        if let Decision::Answer { answer } = &request.decision {
            check_settled(&meant.function, answer)?;
        }
        let log = self.log(&head, &slot);
        log.push(EventKind::Settled(Settled {
            task: request.task,
            scope: request.scope,
            call: request.call,
            decision: request.decision,
            by: request.by,
            principal: request.principal,
        }));
        log.commit(Commit::default()).await;
        log.barrier().await.map_err(store_failure)
    }
}

/// A call that has no answer so far.
struct Begun<'t> {
    call: &'t CallStarted,
    at_ms: i64,
    decision: Option<&'t Decision>,
    /// The batch in which it failed as in doubt, if it did.
    failed: Option<u32>,
}

impl Begun<'_> {
    fn is(&self, task: &TaskId, scope: &[u32], number: u32) -> bool {
        self.is_of(task, scope) && self.call.call == number
    }

    fn is_of(&self, task: &TaskId, scope: &[u32]) -> bool {
        self.call.task == *task && self.call.scope == scope
    }
}

/// The calls since a checkpoint that have no answer, in the order in which they were begun.
fn open(tuple: &CheckpointTuple) -> Vec<OpenCall> {
    let mut nodes: BTreeMap<&TaskId, &NodeName> = BTreeMap::new();
    let mut calls: Vec<Begun<'_>> = Vec::new();
    for event in &tuple.events {
        match &event.kind {
            EventKind::TaskStarted(started) => {
                nodes.insert(&started.task, &started.node);
            }
            EventKind::TaskFinished(finished) => {
                calls.retain(|begun| begun.call.task != finished.task);
            }
            EventKind::CallStarted(call) => {
                calls.retain(|other| !other.is(&call.task, &call.scope, call.call));
                calls.push(Begun { call, at_ms: event.at_ms, decision: None, failed: None });
            }
            EventKind::Called(called) => answered(&mut calls, called),
            // What a server asks in another call of its batch is no sign that the task has gone on.
            EventKind::Asked(asked) if asked.elicited.is_none() => {
                let goes_on = |begun: &Begun<'_>| {
                    begun.failed.is_some() && begun.is_of(&asked.task, &asked.scope)
                };
                calls.retain(|begun| !goes_on(begun));
            }
            EventKind::Settled(settled) => {
                let meant = calls
                    .iter_mut()
                    .filter(|begun| begun.is(&settled.task, &settled.scope, settled.call));
                meant.for_each(|begun| begun.decision = Some(&settled.decision));
            }
            _ => {}
        }
    }
    let view = |Begun { call, at_ms, decision, .. }: Begun<'_>| {
        Some(OpenCall {
            task: call.task.clone(),
            node: (*nodes.get(&call.task)?).clone(),
            scope: call.scope.clone(),
            call: call.call,
            function: call.function.clone(),
            summary: call.summary.clone(),
            at_ms,
            decision: decision.cloned(),
        })
    };
    calls.into_iter().filter_map(view).collect()
}

/// Takes note of an answer. A call that failed as in doubt is still to be settled, unless its task
/// has dealt with that and gone on.
fn answered(calls: &mut Vec<Begun<'_>>, called: &Called) {
    calls.retain_mut(|begun| {
        if begun.is(&called.task, &called.scope, called.call) {
            begun.failed = is_in_doubt(called).then_some(called.batch);
            return begun.failed.is_some();
        }
        let goes_on = begun.failed.is_some_and(|batch| batch != called.batch);
        !(goes_on && begun.is_of(&called.task, &called.scope))
    });
}
