//! The tool calls of a run: the id of each call in the transcript, and the calls that wait for a
//! result.
//!
//! A model may give two calls the same id, or no id, so the transcript generates ids where
//! necessary. The node that stores the conversation may also give a call another id. The order of
//! the calls in the message of the node determines which call has which of these ids.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wattle_graph::id::{RunId, TaskId};
use wattle_graph::llm::ToolCall;
use wattle_graph::message::MessageView;

/// All tool calls of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolCalls {
    /// Ids of all calls in the transcript.
    ids: BTreeSet<String>,
    /// Id of each call in the transcript. The keys are the ids that the model or the node gave the
    /// call, and the id itself.
    alias_to_id: BTreeMap<String, String>,
    /// Complete calls without a result.
    pending: BTreeSet<String>,
    /// Calls without a result that keep the current turn open.
    waiting: BTreeSet<String>,
    /// Calls of the newest completion of each task, in order.
    last_calls_by_task: BTreeMap<TaskId, Vec<String>>,
    /// Arguments of calls of earlier runs, from the journal entries of this run; the keys are the
    /// ids that the model gave.
    inherited_arguments: BTreeMap<String, Value>,
}

/// A tool call of an earlier run.
pub(super) struct InheritedCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Value,
}

impl ToolCalls {
    /// Returns the id of a new call in the transcript. `wanted` is the id that the model gave.
    pub(super) fn begin(&mut self, run: &RunId, wanted: Option<&str>) -> String {
        let wanted = wanted.filter(|id| !id.is_empty());
        let free = wanted.filter(|id| !self.ids.contains(*id)).map(str::to_owned);
        let id = free.unwrap_or_else(|| self.generated_id(run));
        self.ids.insert(id.clone());
        id
    }

    /// Returns an id that consists of the run id and the next free number.
    fn generated_id(&self, run: &RunId) -> String {
        let mut number = self.ids.len() + 1;
        while self.ids.contains(&format!("{run}-{number}")) {
            number += 1;
        }
        format!("{run}-{number}")
    }

    /// Records that the arguments of a call are complete and that the call waits for its result.
    /// `alias` is the id that the model gave.
    pub(super) fn complete(&mut self, id: &str, alias: &str) {
        self.alias_to_id.insert(id.to_owned(), id.to_owned());
        if !alias.is_empty() {
            self.alias_to_id.insert(alias.to_owned(), id.to_owned());
        }
        self.pending.insert(id.to_owned());
        self.waiting.insert(id.to_owned());
    }

    /// Records the calls of the newest completion of a task.
    pub(super) fn set_task_calls(&mut self, task: &TaskId, calls: Vec<String>) {
        self.last_calls_by_task.insert(task.clone(), calls);
    }

    /// Records the ids that a message of a task gives to the calls of the task's newest completion.
    /// Does nothing if the message has another number of calls.
    pub(super) fn learn_aliases(&mut self, task: &TaskId, listed: &[ToolCall]) {
        let same = |calls: &&Vec<String>| !calls.is_empty() && calls.len() == listed.len();
        let Some(calls) = self.last_calls_by_task.get(task).filter(same) else { return };
        for (call, listed) in calls.iter().zip(listed).filter(|(_, listed)| !listed.id.is_empty()) {
            self.alias_to_id.insert(listed.id.clone(), call.clone());
        }
    }

    /// Removes a call from the calls without a result. Returns the id of the call in the
    /// transcript; `None` if the call is unknown or already has a result.
    pub(super) fn resolve_pending(&mut self, alias: &str) -> Option<String> {
        let id = self.alias_to_id.get(alias)?;
        self.waiting.remove(id);
        self.pending.take(id)
    }

    /// Removes and returns all calls without a result.
    pub(super) fn drain_pending(&mut self) -> impl Iterator<Item = String> + use<> {
        self.waiting.clear();
        std::mem::take(&mut self.pending).into_iter()
    }

    /// Records the arguments of a call that an earlier run made.
    pub(super) fn keep_arguments(&mut self, id: &str, arguments: Option<&Value>) {
        if let Some(arguments) = arguments {
            self.inherited_arguments.insert(id.to_owned(), arguments.clone());
        }
    }

    /// Returns the call of an earlier run whose result the message contains. Returns `None` if this
    /// run made the call, or if the call already has a result.
    pub(super) fn inherit(&mut self, id: &str, message: MessageView<'_>) -> Option<InheritedCall> {
        if self.alias_to_id.contains_key(id) || !self.ids.insert(id.to_owned()) {
            return None;
        }
        self.alias_to_id.insert(id.to_owned(), id.to_owned());
        let name = message.name().unwrap_or("tool").to_owned();
        let changed = message.arguments().cloned();
        let arguments = changed.or_else(|| self.inherited_arguments.remove(id)).unwrap_or_default();
        Some(InheritedCall { id: id.to_owned(), name, arguments })
    }

    /// Returns true if the turn waits for the result of a call.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Ends the turn. Calls without a result may still get one.
    pub(super) fn stop_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Returns true if a call has no result.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }
}
