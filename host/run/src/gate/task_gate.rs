//! What a gate needs of the task whose host calls it performs: journal, log and interrupts.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use wattle_graph::event::{EventKind, Log};
use wattle_graph::id::{ChannelName, InterruptId, NodeName, TaskId, call_path};
use wattle_graph::interrupt::Interrupt;

use crate::gate::journal::Journal;
use crate::gate::task_input::HistoryInput;
use crate::gate::task_subgraphs::TaskSubgraphs;
use crate::gate::unwind::Unwind;
use crate::grant::Grants;
use crate::log::ThreadLog;
use crate::ports::store::StoreError;
use crate::ports::{Caller, Clock};
use crate::result_reuse::ReusableResults;
use crate::task::task_heartbeat::TaskHeartbeat;

/// What a gate needs of the task whose host calls it performs. The gate of a web handler has no
/// task.
pub struct TaskGate {
    /// The task.
    pub task: TaskId,
    /// Node of the task.
    pub node: NodeName,
    /// Call numbers of the tool calls that led to the guest, outermost first. The scope of the node
    /// itself is empty.
    pub scope: Vec<u32>,
    /// Input of the task; `None` for a tool, which sees of its caller's state only what a graph
    /// passes to it.
    pub(crate) input: Option<Arc<HistoryInput>>,
    /// Channel with the conversation that the node declares; `None` for a tool.
    pub conversation: Option<ChannelName>,
    /// Log of the thread.
    pub log: Arc<ThreadLog>,
    /// Journal of the task, shared by all attempts.
    pub journal: Arc<Journal>,
    /// Interrupts of the task that were raised before this execution, with their answers.
    pub interrupts: Arc<BTreeMap<InterruptId, Interrupt>>,
    /// Time until an interrupt expires, in milliseconds; `None` if it does not expire.
    pub interrupt_ttl_ms: Option<u64>,
    /// Clock for times in the journal.
    pub clock: Arc<dyn Clock>,
    /// Results of cancelled runs that the task may reuse.
    pub(crate) reusable_results: Arc<ReusableResults>,
    /// Heartbeat of the task.
    pub(crate) heartbeat: Arc<TaskHeartbeat>,
    /// Subgraphs that the task started.
    pub(crate) subgraphs: Arc<dyn TaskSubgraphs>,
    /// True if the graph of the task is a subgraph that a guest started and waits for, or runs
    /// inside of such a subgraph.
    pub(crate) is_awaited_by_guest: bool,
}

impl TaskGate {
    /// Returns the task gate for the tool that the host call with the number `call` calls.
    pub(crate) fn for_tool_call(&self, call: u32) -> Arc<Self> {
        let mut scope = self.scope.clone();
        scope.push(call);
        Arc::new(Self {
            task: self.task.clone(),
            node: self.node.clone(),
            scope,
            input: None,
            conversation: None,
            log: self.log.clone(),
            journal: self.journal.tool_journal(call),
            interrupts: self.interrupts.clone(),
            interrupt_ttl_ms: self.interrupt_ttl_ms,
            clock: self.clock.clone(),
            reusable_results: self.reusable_results.clone(),
            heartbeat: self.heartbeat.clone(),
            subgraphs: self.subgraphs.clone(),
            is_awaited_by_guest: self.is_awaited_by_guest,
        })
    }

    /// Returns an interrupt of the task, raised before or in the current attempt.
    pub(crate) fn interrupt(&self, interrupt: &InterruptId) -> Option<Interrupt> {
        self.interrupts.get(interrupt).cloned().or_else(|| self.journal.interrupt(interrupt))
    }

    /// Returns the sequence number of the last interrupt that suspended the tool of a call, or a
    /// tool that this tool called.
    pub(crate) fn last_suspension_of_tool(&self, call: u32) -> Option<u64> {
        let mut path = self.scope.clone();
        path.push(call);
        let before = self.interrupts.values().filter(|it| it.raised.scope.starts_with(&path));
        let before = before.map(|it| it.raised_seq).max();
        before.max(self.journal.tool_journal(call).last_interrupt_seq())
    }

    /// Returns true if an MCP server has elicited in the task.
    pub(crate) fn has_elicited(&self) -> bool {
        let mut questions = self.interrupts.values();
        questions.any(|it| it.raised.elicited.is_some()) || self.journal.has_elicited()
    }

    /// Returns the path of a call; see [`call_path`].
    pub(crate) fn call_path(&self, call: u32) -> String {
        call_path(&self.scope, call)
    }

    pub(crate) fn reserve_call_numbers(
        &self,
        count: u32,
        grants: &Grants,
        caller: &Caller,
    ) -> Result<u32, Unwind> {
        self.heartbeat.on_call();
        self.journal.reserve_call_numbers(count, grants, caller)
    }

    /// Unwinds the guest before a new call if the log of the thread is full.
    pub(crate) async fn check_log_size(&self) -> Result<(), Unwind> {
        self.log.check_size().await.map_err(log_lost)?.map_err(Unwind::Limit)
    }

    /// Appends a message for the operator. A re-execution appends the message again.
    pub(crate) fn log(&self, level: &str, message: String, fields: Value) {
        self.log.push(EventKind::Log(Log {
            task: self.task.clone(),
            node: self.node.clone(),
            level: level.to_owned(),
            message,
            fields,
        }));
    }
}

pub(crate) fn log_lost(error: StoreError) -> Unwind {
    Unwind::LogLost(error.into())
}
