//! The side of a gate that belongs to a task: journal, log, questions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use wattle_graph::event::{EventKind, Log};
use wattle_graph::id::{InterruptId, NodeName, TaskId, call_path};
use wattle_graph::interrupt::Question;

use crate::gate::journal::Journal;
use crate::gate::started::StartedGraphs;
use crate::gate::unwind::Unwind;
use crate::limit::Limits;
use crate::log::ThreadLog;
use crate::ports::Clock;
use crate::ports::store::StoreError;
use crate::salvage::Salvage;
use crate::task::idle::Alive;

/// The side of a gate that belongs to a task.
pub struct TaskSide {
    /// The task.
    pub task: TaskId,
    /// Its node.
    pub node: NodeName,
    /// Which tool calls the guest is inside of; empty for the node itself.
    pub scope: Vec<u32>,
    /// The log of its thread.
    pub log: Arc<ThreadLog>,
    /// Its journal, shared by all attempts.
    pub journal: Arc<Journal>,
    /// Questions that it had asked when this run came to it, with answers as far as there are any.
    pub questions: Arc<BTreeMap<InterruptId, Question>>,
    /// How long a question may stay open.
    pub interrupt_ttl_ms: Option<u64>,
    /// For times in the journal.
    pub clock: Arc<dyn Clock>,
    /// Answers that cancelled runs paid for.
    pub(crate) salvage: Arc<Salvage>,
    /// Where it shows that it is alive.
    pub(crate) alive: Arc<Alive>,
    /// Graphs that it started.
    pub(crate) started: Arc<dyn StartedGraphs>,
}

impl TaskSide {
    /// The side of the tool that call `call` calls.
    pub(crate) fn nested(&self, call: u32) -> Arc<Self> {
        let mut scope = self.scope.clone();
        scope.push(call);
        Arc::new(Self {
            task: self.task.clone(),
            node: self.node.clone(),
            scope,
            log: self.log.clone(),
            journal: self.journal.inner(call),
            questions: self.questions.clone(),
            interrupt_ttl_ms: self.interrupt_ttl_ms,
            clock: self.clock.clone(),
            salvage: self.salvage.clone(),
            alive: self.alive.clone(),
            started: self.started.clone(),
        })
    }

    /// A question that the task has asked, before this run or in an attempt just now.
    pub(crate) fn question(&self, interrupt: &InterruptId) -> Option<Question> {
        self.questions.get(interrupt).cloned().or_else(|| self.journal.asked(interrupt))
    }

    /// Whether servers of tools have asked in the task.
    pub(crate) fn has_elicited(&self) -> bool {
        let mut questions = self.questions.values();
        questions.any(|it| it.asked.elicited.is_some()) || self.journal.has_elicited()
    }

    /// See [`call_path`].
    pub(crate) fn place_of(&self, call: u32) -> String {
        call_path(&self.scope, call)
    }

    pub(crate) fn take_numbers(&self, count: u32, limits: &Limits) -> Result<u32, Unwind> {
        self.alive.called();
        self.journal.take_numbers(count, limits.host_calls)
    }

    pub(crate) fn count_bytes(&self, bytes: u64, limits: &Limits) -> Result<(), Unwind> {
        self.journal.count_bytes(bytes, limits.host_call_bytes)
    }

    /// Ends the guest before a call that is new if the thread's log is full.
    pub(crate) async fn check_room(&self) -> Result<(), Unwind> {
        self.log.check_room().await.map_err(log_lost)?.map_err(Unwind::Limit)
    }

    /// Appends a message for the operator. Repeated by a re-execution, since it changes nothing.
    pub(crate) fn log(&self, level: &str, message: String, fields: Value) {
        self.alive.called();
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
    Unwind::Log(error.into())
}
