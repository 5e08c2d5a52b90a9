//! The tool calls of a run: under which id each is shown, and which wait for an answer.
//!
//! A model may give the same id twice or none, so the ids that are shown are the run's own where
//! needed. The node that keeps the conversation may give a call another id too; the order in which
//! its message lists the calls tells which is which.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wattle_graph::id::{RunId, TaskId};
use wattle_graph::llm::ToolCall;
use wattle_graph::message::MessageView;

/// All tool calls of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    /// Ids that are shown.
    shown: BTreeSet<String>,
    /// The shown id, by the ids that others know it under.
    known_as: BTreeMap<String, String>,
    /// Made, and not answered.
    open: BTreeSet<String>,
    /// Those of them that the turn waits for.
    waiting: BTreeSet<String>,
    /// Calls of the last answer in each task, in order.
    last_of: BTreeMap<TaskId, Vec<String>>,
    /// Arguments of calls from an earlier run.
    remembered: BTreeMap<String, Value>,
}

/// A call that an earlier run made.
pub(super) struct Carried {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Value,
}

impl Calls {
    /// The id under which a new call is shown; `wanted` is the model's.
    pub(super) fn begin(&mut self, run: &RunId, wanted: Option<&str>) -> String {
        let wanted = wanted.filter(|id| !id.is_empty());
        let free = wanted.filter(|id| !self.shown.contains(*id)).map(str::to_owned);
        let id = free.unwrap_or_else(|| self.own_id(run));
        self.shown.insert(id.clone());
        id
    }

    /// A number more than there are ids is free sooner or later, since runs have ids of their own.
    fn own_id(&self, run: &RunId) -> String {
        let mut number = self.shown.len() + 1;
        while self.shown.contains(&format!("{run}-{number}")) {
            number += 1;
        }
        format!("{run}-{number}")
    }

    /// A call is complete, and waits for its answer.
    pub(super) fn make(&mut self, id: &str, known_as: &str) {
        self.known_as.insert(id.to_owned(), id.to_owned());
        if !known_as.is_empty() {
            self.known_as.insert(known_as.to_owned(), id.to_owned());
        }
        self.open.insert(id.to_owned());
        self.waiting.insert(id.to_owned());
    }

    /// These are the calls that an answer in a task asks for.
    pub(super) fn made_by(&mut self, task: &TaskId, calls: Vec<String>) {
        self.last_of.insert(task.clone(), calls);
    }

    /// Learns the ids that the message of a task has for its calls.
    pub(super) fn rename(&mut self, task: &TaskId, listed: &[ToolCall]) {
        let same = |calls: &&Vec<String>| !calls.is_empty() && calls.len() == listed.len();
        let Some(calls) = self.last_of.get(task).filter(same) else { return };
        for (call, listed) in calls.iter().zip(listed).filter(|(_, listed)| !listed.id.is_empty()) {
            self.known_as.insert(listed.id.clone(), call.clone());
        }
    }

    /// The call that is answered, unless it was answered before.
    pub(super) fn take(&mut self, known_as: &str) -> Option<String> {
        let id = self.known_as.get(known_as)?;
        self.waiting.remove(id);
        self.open.take(id)
    }

    /// All calls that nobody answers any more.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = String> + use<> {
        self.waiting.clear();
        std::mem::take(&mut self.open).into_iter()
    }

    /// What a call of an earlier run was made with.
    pub(super) fn remember(&mut self, id: &str, arguments: Option<&Value>) {
        if let Some(arguments) = arguments {
            self.remembered.insert(id.to_owned(), arguments.clone());
        }
    }

    /// A call of an earlier run that a message answers; `None` if it is one of this run.
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

    /// Whether the turn waits for an answer.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The turn is over; answers may still come.
    pub(super) fn stop_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Whether a call was not answered.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }
}
