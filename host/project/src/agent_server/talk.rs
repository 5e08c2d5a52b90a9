//! What models and nodes say while a run goes on, for the streams of messages.
//!
//! An answer is sent piece by piece as it arrives, under the id that the guest finds in it. The message
//! that a node writes afterwards is the same one: it has the same id or, if the node left that out, the
//! same content. So it is sent only if nothing of it was sent before. A message without an id gets one
//! at the end of the superstep; until then it waits.

use std::collections::{BTreeMap, BTreeSet};

use crate::conversation::{Change, Conversation, Step, What};
use serde::Serialize;
use serde_json::Value;
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Custom, Event, EventKind, RunStatus, TaskFailed, TaskFinished, Tokens};
use wattle_graph::id::{Namespace, TaskId};
use wattle_graph::message::{MessageView, messages};

pub use crate::conversation::{Piece, Place};

use crate::agent_server::lens::Lens;
use crate::agent_server::message;

/// Name of an event with which a node tells a piece of a message: `id` and `text`.
pub const MESSAGE_DELTA: &str = "message.delta";

/// Name of the event with which a node says that a message is complete: `id`.
pub const MESSAGE_END: &str = "message.end";

/// Tokens of an answer, as clients know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Read by the model.
    pub input_tokens: u64,
    /// Written by the model.
    pub output_tokens: u64,
    /// Both.
    pub total_tokens: u64,
}

impl From<Tokens> for Usage {
    fn from(tokens: Tokens) -> Self {
        Self {
            input_tokens: tokens.input,
            output_tokens: tokens.output,
            total_tokens: tokens.input.saturating_add(tokens.output),
        }
    }
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

/// A message that was sent.
#[derive(Clone, Debug)]
struct Told {
    id: String,
    text: String,
    calls: usize,
}

/// Folds the events of a run into what is said.
#[derive(Clone, Debug, Default)]
pub struct Talk {
    conversation: Conversation,
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
            let id = MessageView::of(message).and_then(MessageView::id);
            self.known.extend(id.map(str::to_owned));
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
            EventKind::Custom(custom) => self.emitted(event, custom, &mut spoken),
            EventKind::TaskFinished(finished) => self.finish(event, finished, lens, &mut spoken),
            EventKind::Checkpointed(_) => {
                self.name(&event.namespace, checkpoint, lens, &mut spoken);
            }
            _ => {}
        }
        for change in self.conversation.take(event) {
            self.change(change, &mut spoken);
        }
        match &event.kind {
            EventKind::Checkpointed(_) => {
                if let Some(checkpoint) = checkpoint {
                    self.learn(lens, checkpoint);
                }
            }
            EventKind::RunEnded(ended) if event.namespace.is_root() && !waits(ended.status) => {
                self.close(|_| true, &mut spoken);
            }
            // Also of a task whose beginning was not taken.
            EventKind::TaskFinished(TaskFinished { task, .. })
            | EventKind::TaskFailed(TaskFailed { task, .. }) => self.leave(task, &mut spoken),
            _ => {}
        }
        spoken
    }

    fn change(&mut self, change: Change, spoken: &mut Vec<Spoken>) {
        let Change { place, what } = change;
        match what {
            What::TaskBegan { .. } => {}
            What::TaskEnded => self.leave(&place.task, spoken),
            What::Answer { id, step, .. } => self.answer(place, id, step, spoken),
        }
    }

    fn answer(&mut self, place: Place, id: String, step: Step, spoken: &mut Vec<Spoken>) {
        match step {
            Step::Began => {}
            Step::Piece(piece) => spoken.push(Spoken { place, id, said: Said::Piece(piece) }),
            Step::Void(told) | Step::Failed(told) => {
                if told.is_some() {
                    spoken.push(Spoken { place, id, said: Said::Void });
                }
            }
            Step::Done { completion, told, tokens } => {
                for piece in told.rest(&completion) {
                    let (place, id) = (place.clone(), id.clone());
                    spoken.push(Spoken { place, id, said: Said::Piece(piece) });
                }
                let usage = tokens.map(Usage::from);
                let reason = Some(completion.finish_reason.name().to_owned());
                let (text, calls) = (completion.text(), completion.tool_calls().count());
                let told = Told { id: id.clone(), text, calls };
                self.told.entry(place.task.clone()).or_default().push(told);
                spoken.push(Spoken { place, id, said: Said::Done { usage, reason } });
            }
        }
    }

    /// A node that has no model, or speaks for itself.
    fn emitted(&mut self, event: &Event, custom: &Custom, spoken: &mut Vec<Spoken>) {
        let Some(id) = custom.data.get("id").and_then(Value::as_str) else { return };
        let place = self.conversation.place(event, &custom.task, &custom.node);
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
        let place = self.conversation.place(event, &finished.task, &finished.node);
        let writes = finished
            .writes
            .iter()
            .filter(|write| !write.overwrite && lens.channels.contains(write.channel.as_str()));
        for message in writes.flat_map(|write| messages(&write.value)) {
            self.written(message, finished, &place, spoken);
        }
    }

    fn written(
        &mut self,
        message: &Value,
        finished: &TaskFinished,
        place: &Place,
        spoken: &mut Vec<Spoken>,
    ) {
        let Some(view) = MessageView::of(message) else { return };
        let id = view.id();
        if view.role() == "remove" || id.is_some_and(|id| self.known.contains(id)) {
            return;
        }
        self.known.extend(id.map(str::to_owned));
        if view.role() == "assistant" && self.was_told(&finished.task, view) {
            return;
        }
        if let Some(id) = id {
            let (place, id) = (place.clone(), id.to_owned());
            spoken.push(Spoken { place, id, said: Said::Whole(message::to_wire(message)) });
        } else if !finished.for_parent {
            self.nameless.push((place.clone(), message.clone()));
        }
    }

    /// Whether a message is an answer that was sent while the model gave it.
    fn was_told(&mut self, task: &TaskId, message: MessageView<'_>) -> bool {
        let Some(told) = self.told.get_mut(task) else { return false };
        let (text, calls) = (message.text(), message.tool_calls().len());
        let by_id = told.iter().position(|told| message.id() == Some(&told.id));
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
                let id = MessageView::of(named)?.id().filter(|id| !self.known.contains(*id))?;
                Some((id.to_owned(), message::to_wire(named)))
            });
            let Some((id, message)) = named else { continue };
            self.known.insert(id.clone());
            spoken.push(Spoken { place, id, said: Said::Whole(message) });
        }
    }

    /// A task is over. Its next attempt, if there is one, tells its messages from the start.
    fn leave(&mut self, task: &TaskId, spoken: &mut Vec<Spoken>) {
        self.told.remove(task);
        self.close(|of| of == task, spoken);
    }

    /// Ends the messages that tasks tell themselves and left open.
    fn close(&mut self, is_over: impl Fn(&TaskId) -> bool, spoken: &mut Vec<Spoken>) {
        for (id, place) in self.open.extract_if(.., |_, place| is_over(&place.task)) {
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
    matches!(status, RunStatus::Interrupted | RunStatus::Pending | RunStatus::Running)
}

fn same(named: &Value, nameless: &Value) -> bool {
    let (named, nameless) = (MessageView::of(named), MessageView::of(nameless));
    named.zip(nameless).is_some_and(|(named, nameless)| named.says_the_same(nameless))
}

fn conversation<'c>(lens: &'c Lens, checkpoint: &'c Checkpoint) -> impl Iterator<Item = &'c Value> {
    let values = checkpoint.values.iter();
    let talks = values.filter(|(name, _)| lens.channels.contains(name.as_str()));
    talks.flat_map(|(_, value)| messages(value))
}

#[cfg(test)]
mod tests;
