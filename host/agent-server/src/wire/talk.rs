//! What models and nodes say while a run goes on, for the streams of messages.
//!
//! An answer is told piece by piece as it comes, under the id that the guest finds in it. What a node
//! writes afterwards is the same message once more, by its id or, if the node left that out, by what
//! it says; so it is told only if nothing of it was told before. A message gets its id at the
//! end of the superstep if its node gave it none; until then it waits.

mod answer;
mod turn;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{
    CallStarted, Called, Custom, Event, EventKind, RunStatus, Streamed, TaskFailed, TaskFinished,
};
use wattle_graph::id::{Namespace, NodeName, TaskId};

pub use self::answer::Usage;

use self::answer::{Answer, same};
use self::turn::Turn;
use crate::wire::lens::Lens;
use crate::wire::message;
use crate::wire::work::is_inside;

/// Name of an event with which a node tells a piece of a message: `id` and `text`.
pub const MESSAGE_DELTA: &str = "message.delta";

/// Name of the event with which a node says that a message is complete: `id`.
pub const MESSAGE_END: &str = "message.end";

/// Host calls that a model answers.
const MODEL_CALLS: &[&str] = &["llm.complete", "llm.stream"];

/// Where something is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The graph.
    pub namespace: Namespace,
    /// The task.
    pub task: TaskId,
    /// Its node.
    pub node: NodeName,
    /// Its superstep.
    pub step: u32,
}

/// Something that is said.
#[derive(Clone, Debug, PartialEq)]
pub struct Spoken {
    /// Where.
    pub place: Place,
    /// The message.
    pub id: String,
    /// What of it.
    pub said: Said,
}

/// A message, or a part of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// A piece of a message of the model.
    Piece(Piece),
    /// The message is complete.
    Done {
        /// What it took, if that is known.
        usage: Option<Usage>,
        /// Why the model stopped.
        reason: Option<String>,
    },
    /// The message is void: there will be another in its place.
    Void,
    /// A message that a node wrote, in the form that clients know.
    Whole(Value),
}

/// A piece of a message of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text.
    Text(String),
    /// Reasoning.
    Reasoning(String),
    /// A request for a tool.
    Call {
        /// Which of the message's requests, from 0.
        index: u32,
        /// Its id; only with its first piece.
        id: Option<String>,
        /// The tool; only with its first piece.
        name: Option<String>,
        /// A piece of the arguments' JSON text.
        arguments: String,
    },
}

/// A message that was told.
#[derive(Clone, Debug)]
struct Told {
    id: String,
    text: String,
    calls: usize,
}

/// Folds the events of a run into what is said.
#[derive(Clone, Debug, Default)]
pub struct Talk {
    /// Tasks of supersteps that go on, or may.
    places: BTreeMap<TaskId, Place>,
    /// Answers that are being given.
    turns: BTreeMap<(TaskId, u32), Turn>,
    /// Answers that were given, of tasks that have not ended: what was cancelled may go on, and they
    /// are not given anew then.
    told: BTreeMap<TaskId, Vec<Told>>,
    /// Messages that nodes tell themselves and that are not complete.
    open: BTreeMap<String, Place>,
    /// Ids of messages that are known already.
    known: BTreeSet<String>,
    /// Messages that were written without an id.
    nameless: Vec<(Place, Value)>,
}

impl Talk {
    /// Whether the checkpoint that a graph makes next is needed to say something.
    pub fn waits_for(&self, namespace: &Namespace) -> bool {
        self.nameless.iter().any(|(place, _)| place.namespace == *namespace)
    }

    /// Takes note of the messages of a state: they were said before.
    pub fn learn(&mut self, lens: &Lens, checkpoint: &Checkpoint) {
        for message in conversation(lens, checkpoint) {
            self.known.extend(id_of(message).map(str::to_owned));
        }
    }

    /// What is said with an event. `checkpoint` is the one that it says was made, if that is known.
    pub fn take(
        &mut self,
        event: &Event,
        checkpoint: Option<&Checkpoint>,
        lens: &Lens,
    ) -> Vec<Spoken> {
        let mut spoken = Vec::new();
        match &event.kind {
            EventKind::TaskStarted(started) => {
                let place = Place {
                    namespace: event.namespace.clone(),
                    task: started.task.clone(),
                    node: started.node.clone(),
                    step: started.step,
                };
                self.places.insert(started.task.clone(), place);
            }
            EventKind::CallStarted(started) => self.begin(started, &mut spoken),
            EventKind::Streamed(streamed) => self.stream(event, streamed, &mut spoken),
            EventKind::Called(called) => self.answered(event, called, &mut spoken),
            EventKind::Custom(custom) => self.emitted(event, custom, &mut spoken),
            EventKind::TaskFailed(failed) => self.fail(event, failed, &mut spoken),
            EventKind::TaskFinished(finished) => self.finish(event, finished, lens, &mut spoken),
            EventKind::Checkpointed(_) => {
                self.name(&event.namespace, checkpoint, lens, &mut spoken);
                self.forget(&event.namespace, &mut spoken);
                if let Some(checkpoint) = checkpoint {
                    self.learn(lens, checkpoint);
                }
            }
            EventKind::RunEnded(ended) if event.namespace.is_root() && !waits(ended.status) => {
                self.cut(|_| true, &mut spoken);
            }
            _ => {}
        }
        spoken
    }

    fn place(&self, event: &Event, task: &TaskId, node: &NodeName) -> Place {
        self.places.get(task).cloned().unwrap_or_else(|| Place {
            namespace: event.namespace.clone(),
            task: task.clone(),
            node: node.clone(),
            step: 0,
        })
    }

    fn begin(&mut self, started: &CallStarted, spoken: &mut Vec<Spoken>) {
        let is_model = MODEL_CALLS.contains(&started.function.as_str());
        if !is_model || started.document || !started.scope.is_empty() {
            return;
        }
        let key = (started.task.clone(), started.call);
        let Some(turn) = self.turns.get_mut(&key) else {
            self.turns.insert(key, Turn::new(started.clone()));
            return;
        };
        // A crash cut the first answer to this call.
        if let (Some(void), Some(place)) = (turn.begin(started), self.places.get(&started.task)) {
            spoken.push(Spoken { place: place.clone(), id: void, said: Said::Void });
        }
    }

    fn stream(&mut self, event: &Event, streamed: &Streamed, spoken: &mut Vec<Spoken>) {
        let place = self.place(event, &streamed.task, &streamed.node);
        let key = (streamed.task.clone(), streamed.call);
        let turn = self.turns.get_mut(&key).filter(|_| streamed.scope.is_empty());
        let Some(turn) = turn else { return };
        for (id, said) in turn.hear(&streamed.deltas) {
            spoken.push(Spoken { place: place.clone(), id, said });
        }
    }

    fn answered(&mut self, event: &Event, called: &Called, spoken: &mut Vec<Spoken>) {
        let key = (called.task.clone(), called.call);
        let is_model = MODEL_CALLS.contains(&called.function.as_str());
        if !is_model || !called.scope.is_empty() {
            return;
        }
        let Some(mut turn) = self.turns.remove(&key) else { return };
        let place = self.place(event, &called.task, &called.node);
        let mut say = |id: String, said| {
            spoken.push(Spoken { place: place.clone(), id, said });
        };
        let Ok(answer) = &called.result else {
            if let Some(void) = turn.restart() {
                say(void, Said::Void);
            }
            return;
        };
        let answer = Answer::read(answer);
        for piece in turn.rest(&answer) {
            say(turn.id(), Said::Piece(piece));
        }
        let usage = called.tokens.map(Usage::from);
        say(turn.id(), Said::Done { usage, reason: answer.reason.clone() });
        let (text, calls) = (answer.text(), answer.calls().count());
        let told = Told { id: turn.id(), text, calls };
        self.told.entry(called.task.clone()).or_default().push(told);
    }

    /// A node that has no model, or speaks for itself.
    fn emitted(&mut self, event: &Event, custom: &Custom, spoken: &mut Vec<Spoken>) {
        let Some(id) = custom.data.get("id").and_then(Value::as_str) else { return };
        let place = self.place(event, &custom.task, &custom.node);
        let said = match custom.name.as_str() {
            MESSAGE_DELTA => {
                self.known.insert(id.to_owned());
                self.open.insert(id.to_owned(), place.clone());
                let text = custom.data.get("text").and_then(Value::as_str).unwrap_or_default();
                Said::Piece(Piece::Text(text.to_owned()))
            }
            MESSAGE_END => {
                if self.open.remove(id).is_none() {
                    return;
                }
                Said::Done { usage: None, reason: None }
            }
            _ => return,
        };
        spoken.push(Spoken { place, id: id.to_owned(), said });
    }

    fn finish(
        &mut self,
        event: &Event,
        finished: &TaskFinished,
        lens: &Lens,
        spoken: &mut Vec<Spoken>,
    ) {
        let place = self.place(event, &finished.task, &finished.node);
        let writes = finished
            .writes
            .iter()
            .filter(|write| !write.overwrite && lens.channels.contains(write.channel.as_str()));
        for message in writes.flat_map(|write| messages(&write.value)) {
            self.written(message, finished, &place, spoken);
        }
        self.leave(&finished.task, spoken);
    }

    fn written(
        &mut self,
        message: &Value,
        finished: &TaskFinished,
        place: &Place,
        spoken: &mut Vec<Spoken>,
    ) {
        let Some(role) = message.get("role").and_then(Value::as_str) else { return };
        let id = id_of(message);
        if role == "remove" || id.is_some_and(|id| self.known.contains(id)) {
            return;
        }
        self.known.extend(id.map(str::to_owned));
        if role == "assistant" && self.was_told(&finished.task, message) {
            return;
        }
        if let Some(id) = id {
            let (place, id) = (place.clone(), id.to_owned());
            spoken.push(Spoken { place, id, said: Said::Whole(message::to_wire(message)) });
        } else if !finished.for_parent {
            self.nameless.push((place.clone(), message.clone()));
        }
    }

    /// Whether a message is an answer that was told as the model gave it.
    fn was_told(&mut self, task: &TaskId, message: &Value) -> bool {
        let Some(told) = self.told.get_mut(task) else { return false };
        let calls = message.get("tool_calls").and_then(Value::as_array).map_or(0, Vec::len);
        let text = answer::text_of(message.get("content"));
        let by_id = told.iter().position(|told| id_of(message) == Some(&told.id));
        let says_the_same = |told: &Told| told.text == text && told.calls == calls;
        let found = by_id.or_else(|| told.iter().position(says_the_same));
        found.map(|place| told.remove(place)).is_some()
    }

    /// Tells the messages that have an id now.
    fn name(
        &mut self,
        namespace: &Namespace,
        checkpoint: Option<&Checkpoint>,
        lens: &Lens,
        spoken: &mut Vec<Spoken>,
    ) {
        let here = |(place, _): &mut (Place, Value)| place.namespace == *namespace;
        let waiting: Vec<_> = self.nameless.extract_if(.., here).collect();
        for (place, message) in waiting {
            let state = checkpoint.into_iter().flat_map(|it| conversation(lens, it));
            let named = state.filter(|named| same(named, &message)).find_map(|named| {
                let id = id_of(named).filter(|id| !self.known.contains(*id))?;
                Some((id.to_owned(), message::to_wire(named)))
            });
            let Some((id, message)) = named else { continue };
            self.known.insert(id.clone());
            spoken.push(Spoken { place, id, said: Said::Whole(message) });
        }
    }

    /// Ends what a task left open. Its next attempt, if there is one, begins anew.
    fn leave(&mut self, task: &TaskId, spoken: &mut Vec<Spoken>) {
        self.cut(|it| it == task, spoken);
        self.told.remove(task);
    }

    /// A task gives up, with the graphs that it runs.
    fn fail(&mut self, event: &Event, failed: &TaskFailed, spoken: &mut Vec<Spoken>) {
        let TaskFailed { task, node, .. } = failed;
        let inside = |place: &Place| is_inside(&place.namespace, &event.namespace, task, node);
        self.leave_all(inside, spoken);
        self.leave(task, spoken);
    }

    /// A graph has come to its next superstep: the tasks of the one before are over, and the graphs
    /// that they ran.
    fn forget(&mut self, namespace: &Namespace, spoken: &mut Vec<Spoken>) {
        let is_here = |it: &Namespace| it == namespace || it.is_below(namespace);
        self.leave_all(|place| is_here(&place.namespace), spoken);
        self.places.retain(|_, place| !is_here(&place.namespace));
    }

    fn leave_all(&mut self, is_over: impl Fn(&Place) -> bool, spoken: &mut Vec<Spoken>) {
        let over = self.places.values().filter(|place| is_over(place));
        let over: Vec<TaskId> = over.map(|place| place.task.clone()).collect();
        for task in &over {
            self.leave(task, spoken);
        }
    }

    /// Ends the messages that tasks left open.
    fn cut(&mut self, is_cut: impl Fn(&TaskId) -> bool, spoken: &mut Vec<Spoken>) {
        for ((task, _), mut turn) in self.turns.extract_if(.., |(task, _), _| is_cut(task)) {
            if let (Some(id), Some(place)) = (turn.restart(), self.places.get(&task)) {
                spoken.push(Spoken { place: place.clone(), id, said: Said::Void });
            }
        }
        for (id, place) in self.open.extract_if(.., |_, place| is_cut(&place.task)) {
            spoken.push(Spoken { place, id, said: Said::Done { usage: None, reason: None } });
        }
    }
}

/// Whether an event of a node is part of a message and so nothing of its own.
pub fn is_speech(custom: &Custom) -> bool {
    matches!(custom.name.as_str(), MESSAGE_DELTA | MESSAGE_END)
}

/// Whether what a run left open goes on with the next one.
fn waits(status: RunStatus) -> bool {
    matches!(status, RunStatus::Interrupted | RunStatus::Running)
}

fn id_of(message: &Value) -> Option<&str> {
    message.get("id").and_then(Value::as_str).filter(|id| !id.is_empty())
}

fn messages(write: &Value) -> &[Value] {
    match write {
        Value::Array(messages) => messages,
        message => std::slice::from_ref(message),
    }
}

fn conversation<'c>(lens: &'c Lens, checkpoint: &'c Checkpoint) -> impl Iterator<Item = &'c Value> {
    let values = checkpoint.values.iter();
    let talks = values.filter(|(name, _)| lens.channels.contains(name.as_str()));
    talks.flat_map(|(_, value)| messages(value))
}

#[cfg(test)]
mod tests;
