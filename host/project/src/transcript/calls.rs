//! The tool calls of a run: the id of each call in the transcript, and the calls that wait for a
//! result.
//!
//! A model may give two calls the same id, or no id, so the transcript generates ids where
//! necessary. The node that stores the conversation may also give a call another id. The order of
//! the calls in the message of the node shows which call an id belongs to.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wattle_graph::id::{RunId, TaskId};
use wattle_graph::llm::ToolCall;
use wattle_graph::message::MessageView;

/// All tool calls of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    /// Ids in the transcript.
    shown: BTreeSet<String>,
    /// Ids in the transcript. The keys are the ids that the model and the node gave.
    known_as: BTreeMap<String, String>,
    /// Complete calls without a result.
    open: BTreeSet<String>,
    /// Open calls whose results the turn waits for.
    waiting: BTreeSet<String>,
    /// Calls of the last completion of each task, in order.
    last_of: BTreeMap<TaskId, Vec<String>>,
    /// Arguments of calls that an earlier run made.
    remembered: BTreeMap<String, Value>,
}

/// A tool call of an earlier run.
pub(super) struct Carried {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Value,
}

impl Calls {
    /// Returns the id of a new call in the transcript. `wanted` is the id that the model gave.
    pub(super) fn begin(&mut self, run: &RunId, wanted: Option<&str>) -> String {
        let wanted = wanted.filter(|id| !id.is_empty());
        let free = wanted.filter(|id| !self.shown.contains(*id)).map(str::to_owned);
        let id = free.unwrap_or_else(|| self.own_id(run));
        self.shown.insert(id.clone());
        id
    }

    /// Returns the run id with the next free number.
    fn own_id(&self, run: &RunId) -> String {
        let mut number = self.shown.len() + 1;
        while self.shown.contains(&format!("{run}-{number}")) {
            number += 1;
        }
        format!("{run}-{number}")
    }

    /// Records that the arguments of a call are complete and that the call waits for its result.
    /// `known_as` is the id that the model gave.
    pub(super) fn make(&mut self, id: &str, known_as: &str) {
        self.known_as.insert(id.to_owned(), id.to_owned());
        if !known_as.is_empty() {
            self.known_as.insert(known_as.to_owned(), id.to_owned());
        }
        self.open.insert(id.to_owned());
        self.waiting.insert(id.to_owned());
    }

    /// Records the calls of the newest completion of a task.
    pub(super) fn made_by(&mut self, task: &TaskId, calls: Vec<String>) {
        self.last_of.insert(task.clone(), calls);
    }

    /// Records the ids that a message of a task gives to the calls of the task's newest completion.
    pub(super) fn rename(&mut self, task: &TaskId, listed: &[ToolCall]) {
        let same = |calls: &&Vec<String>| !calls.is_empty() && calls.len() == listed.len();
        let Some(calls) = self.last_of.get(task).filter(same) else { return };
        for (call, listed) in calls.iter().zip(listed).filter(|(_, listed)| !listed.id.is_empty()) {
            self.known_as.insert(listed.id.clone(), call.clone());
        }
    }

    /// Closes a call that has a result. Returns the id of the call in the transcript; `None` if the
    /// call is unknown or already closed.
    pub(super) fn take(&mut self, known_as: &str) -> Option<String> {
        let id = self.known_as.get(known_as)?;
        self.waiting.remove(id);
        self.open.take(id)
    }

    /// Closes and returns all calls without a result.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = String> + use<> {
        self.waiting.clear();
        std::mem::take(&mut self.open).into_iter()
    }

    /// Keeps the arguments of a call that an earlier run made.
    pub(super) fn remember(&mut self, id: &str, arguments: Option<&Value>) {
        if let Some(arguments) = arguments {
            self.remembered.insert(id.to_owned(), arguments.clone());
        }
    }

    /// Returns the call of an earlier run whose result the message contains. Returns `None` for a
    /// call of this run, and after the first result of a call.
    pub(super) fn carry(&mut self, id: &str, message: MessageView<'_>) -> Option<Carried> {
        if self.known_as.contains_key(id) || !self.shown.insert(id.to_owned()) {
            return None;
        }
        self.known_as.insert(id.to_owned(), id.to_owned());
        let name = message.name().unwrap_or("tool").to_owned();
        let changed = message.arguments().cloned();
        let arguments = changed.or_else(|| self.remembered.remove(id)).unwrap_or_default();
        Some(Carried { id: id.to_owned(), name, arguments })
    }

    /// Returns true if the turn waits for the result of a call.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Ends the turn. Open calls may still get results.
    pub(super) fn stop_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Returns true if a call has no result.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }
}
