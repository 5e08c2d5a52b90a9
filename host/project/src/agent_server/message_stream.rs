//! Projection of a run into messages and their deltas, for the streams of both versions.
//!
//! The stream sends a completion as deltas while the completion arrives, under the message id that
//! the guest also receives. The message that a node writes afterwards is the same message: it has
//! the same id or, if the node omitted the id, the same content. The stream therefore sends the
//! message of the node only if it sent no delta of the completion. A message without an id gets an
//! id at the end of the superstep, and the stream sends the message then.

use std::collections::{BTreeMap, BTreeSet};

use crate::task_stream::{ChangeKind, CompletionStep, TaskChange, TaskStream};
use serde::Serialize;
use serde_json::Value;
use wattle_graph::checkpoint::{ChannelValue, Checkpoint, CheckpointSource, SharedList};
use wattle_graph::event::{Custom, Event, EventKind, RunStatus, TaskFinished, Tokens};
use wattle_graph::id::{ChannelName, CheckpointId, Namespace, TaskId};
use wattle_graph::message::{MessageView, messages};

pub use crate::task_stream::{CompletionDelta, TaskRef};

use crate::agent_server::message;
use crate::agent_server::thread_info::ThreadInfo;

/// Name of the custom event with which a node streams a delta of a message. Its data has `id` and
/// `text`.
pub const MESSAGE_DELTA: &str = "message.delta";

/// Name of the custom event with which a node completes a message that it streamed. Its data has
/// `id`.
pub const MESSAGE_END: &str = "message.end";

/// The role of a message that removes other messages.
const REMOVE_ROLE: &str = "remove";

/// Token counts of a completion in the form of the Agent Server API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Sum of input and output tokens.
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

/// How and by which model a completion ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    /// Token counts; `None` if they are unknown.
    pub usage: Option<Usage>,
    /// Why the model stopped, such as `stop`.
    pub reason: String,
    /// Name of the model.
    pub model: String,
    /// Provider of the model; `None` if the log does not name it.
    pub provider: Option<String>,
}

/// A change of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageChange {
    /// Task that the message belongs to.
    pub task: TaskRef,
    /// Id of the message.
    pub id: String,
    /// The change.
    pub kind: MessageChangeKind,
}

/// The content of a change.
#[derive(Clone, Debug, PartialEq)]
pub enum MessageChangeKind {
    /// A delta of the content.
    Delta(CompletionDelta),
    /// The message is complete. `None` for a message that a node streams with custom events.
    Done(Option<Finish>),
    /// The message is discarded; another message may replace it.
    Discarded,
    /// A message that a node wrote, in the form of the Agent Server API.
    Whole(Value),
}

/// A completion whose deltas were sent.
#[derive(Clone, Debug)]
struct SentCompletion {
    id: String,
    text: String,
    calls: usize,
}

/// The messages at the start of a channel whose ids the projection has recorded.
#[derive(Clone, Debug)]
struct LearnedMessages {
    /// Version of the channel at which the ids were recorded.
    version: Option<CheckpointId>,
    count: usize,
    /// Id of the last of these messages.
    last_id: Option<String>,
}

impl LearnedMessages {
    /// Returns the messages of `all`, the value of the channel at `version`, whose ids may not have
    /// been recorded: no message if `version` is the recorded version, the messages after the
    /// recorded messages if the last recorded message is still in its place, else all messages.
    fn rest<'m>(&self, all: &'m ChannelValue, version: Option<CheckpointId>) -> Vec<&'m Value> {
        if version.is_some() && version == self.version {
            return Vec::new();
        }
        let is_kept = self.last_id.as_deref() == last_of(all, self.count).and_then(id_of);
        let rest = all.list().filter(|_| is_kept).and_then(|list| list.tail(self.count));
        rest.unwrap_or_else(|| all.items().collect())
    }
}

/// The projection of a run into changes of messages.
#[derive(Clone, Debug, Default)]
pub struct MessageProjection {
    task_stream: TaskStream,
    /// Completions whose deltas were sent, by tasks that have not ended. A task that continues
    /// after a cancel writes the messages of these completions, which are not sent again.
    sent: BTreeMap<TaskId, Vec<SentCompletion>>,
    /// Messages that nodes stream with custom events and that are not complete.
    open: BTreeMap<String, TaskRef>,
    /// Ids of messages that were sent or are in the state.
    known_ids: BTreeSet<String>,
    /// Messages in the state whose ids were recorded, by graph and channel.
    learned: BTreeMap<(Namespace, ChannelName), LearnedMessages>,
    /// Messages that tasks wrote without an id since the last checkpoint of their graph.
    without_id: Vec<(TaskRef, Value)>,
}

impl MessageProjection {
    /// Returns true if the next checkpoint of a graph gives ids to messages that have not been
    /// sent.
    pub fn waits_for(&self, namespace: &Namespace) -> bool {
        self.without_id.iter().any(|(task, _)| task.namespace == *namespace)
    }

    /// Records the ids of the messages in a state, so that the stream does not send these messages.
    pub fn learn_ids(&mut self, thread_info: &ThreadInfo, checkpoint: &Checkpoint) {
        for message in self.unlearned(thread_info, checkpoint).into_iter().flatten() {
            self.known_ids.extend(id_of(message).map(str::to_owned));
        }
        let meta = &checkpoint.meta;
        for (name, all) in conversations(thread_info, checkpoint) {
            let count = all.list().map_or(0, SharedList::len);
            let learned = LearnedMessages {
                version: meta.versions.get(name).copied(),
                count,
                last_id: last_of(all, count).and_then(id_of).map(str::to_owned),
            };
            self.learned.insert((meta.namespace.clone(), name.clone()), learned);
        }
    }

    /// Returns the messages in a state whose ids may not have been recorded: the messages after the
    /// recorded messages of each channel, or all messages of a channel whose recorded messages were
    /// replaced. The work per superstep therefore does not grow with the conversation.
    fn unlearned<'c>(
        &self,
        thread_info: &ThreadInfo,
        checkpoint: &'c Checkpoint,
    ) -> Vec<Vec<&'c Value>> {
        let meta = &checkpoint.meta;
        let of_channel = |(name, all): (&ChannelName, &'c ChannelValue)| {
            let learned = self.learned.get(&(meta.namespace.clone(), name.clone()));
            let version = meta.versions.get(name).copied();
            learned.map_or_else(|| all.items().collect(), |learned| learned.rest(all, version))
        };
        conversations(thread_info, checkpoint).map(of_channel).collect()
    }

    /// Forgets which messages were recorded in the subgraphs that a checkpoint ends. An input, an
    /// edit or a fork may replace messages, so their checkpoints also forget the messages of the
    /// graph itself.
    fn keep_learned(&mut self, graph: &Namespace, source: CheckpointSource) {
        let is_superstep = source == CheckpointSource::Loop;
        self.learned.retain(|(learned, _), _| {
            !learned.is_nested_in(graph) && (is_superstep || learned != graph)
        });
    }

    /// Applies an event and returns the changes of messages that follow from it. `checkpoint` is
    /// the checkpoint that the event made, if the caller has it.
    pub fn apply(
        &mut self,
        event: &Event,
        checkpoint: Option<&Checkpoint>,
        thread_info: &ThreadInfo,
    ) -> Vec<MessageChange> {
        let mut spoken = Vec::new();
        match &event.kind {
            EventKind::Custom(custom) => self.apply_custom(event, custom, &mut spoken),
            EventKind::TaskFinished(finished) => {
                self.apply_writes(event, finished, thread_info, &mut spoken);
            }
            EventKind::Checkpointed(made) => {
                self.keep_learned(&event.namespace, made.source);
                self.send_named(&event.namespace, checkpoint, thread_info, &mut spoken);
            }
            _ => {}
        }
        for change in self.task_stream.apply(event) {
            self.apply_change(change, &mut spoken);
        }
        match &event.kind {
            EventKind::Checkpointed(_) => {
                if let Some(checkpoint) = checkpoint {
                    self.learn_ids(thread_info, checkpoint);
                }
            }
            EventKind::RunEnded(ended) if event.namespace.is_root() && !waits(ended.status) => {
                self.close(|_| true, &mut spoken);
            }
            // The task stream does not report the end of a task whose start event was not read.
            EventKind::TaskFinished(finished) => self.end_task(&finished.task, &mut spoken),
            EventKind::TaskFailed(failed) => self.end_task(&failed.task, &mut spoken),
            _ => {}
        }
        spoken
    }

    fn apply_change(&mut self, change: TaskChange, spoken: &mut Vec<MessageChange>) {
        let TaskChange { task, kind } = change;
        match kind {
            ChangeKind::TaskStarted { .. } => {}
            ChangeKind::TaskEnded => self.end_task(&task.task, spoken),
            ChangeKind::Completion { id, step, .. } => self.apply_step(task, id, step, spoken),
        }
    }

    fn apply_step(
        &mut self,
        task: TaskRef,
        id: String,
        step: CompletionStep,
        spoken: &mut Vec<MessageChange>,
    ) {
        match step {
            CompletionStep::Started => {}
            CompletionStep::Delta(piece) => {
                spoken.push(MessageChange { task, id, kind: MessageChangeKind::Delta(piece) });
            }
            CompletionStep::Restarted(told) | CompletionStep::Failed(told) => {
                if told.is_some() {
                    spoken.push(MessageChange { task, id, kind: MessageChangeKind::Discarded });
                }
            }
            CompletionStep::Done { completion, told, tokens } => {
                for piece in told.rest(&completion) {
                    let (task, id) = (task.clone(), id.clone());
                    spoken.push(MessageChange { task, id, kind: MessageChangeKind::Delta(piece) });
                }
                let (text, calls) = (completion.text(), completion.tool_calls().count());
                let told = SentCompletion { id: id.clone(), text, calls };
                self.sent.entry(task.task.clone()).or_default().push(told);
                let finish = Finish {
                    usage: tokens.map(Usage::from),
                    reason: completion.finish_reason.name().to_owned(),
                    provider: completion.attempts.last().map(|last| last.provider.clone()),
                    model: completion.model,
                };
                spoken.push(MessageChange {
                    task,
                    id,
                    kind: MessageChangeKind::Done(Some(finish)),
                });
            }
        }
    }

    /// Applies a custom event. Only [`MESSAGE_DELTA`] and [`MESSAGE_END`] change messages.
    fn apply_custom(&mut self, event: &Event, custom: &Custom, spoken: &mut Vec<MessageChange>) {
        let Some(id) = custom.data.get("id").and_then(Value::as_str) else { return };
        let task = self.task_stream.task_ref(event, &custom.task, &custom.node);
        let kind = match custom.name.as_str() {
            MESSAGE_DELTA => {
                self.known_ids.insert(id.to_owned());
                self.open.insert(id.to_owned(), task.clone());
                let text = custom.data.get("text").and_then(Value::as_str).unwrap_or_default();
                MessageChangeKind::Delta(CompletionDelta::Text(text.to_owned()))
            }
            MESSAGE_END => {
                if self.open.remove(id).is_none() {
                    return;
                }
                MessageChangeKind::Done(None)
            }
            _ => return,
        };
        spoken.push(MessageChange { task, id: id.to_owned(), kind });
    }

    fn apply_writes(
        &mut self,
        event: &Event,
        finished: &TaskFinished,
        thread_info: &ThreadInfo,
        spoken: &mut Vec<MessageChange>,
    ) {
        let writes = || {
            let writes = finished.writes.iter();
            writes.filter(move |write| thread_info.channels.contains(write.channel.as_str()))
        };
        // An overwrite or a removal can put other messages at the positions of recorded messages.
        for write in writes().filter(|write| write.overwrite || removes(&write.value)) {
            self.learned.retain(|(_, channel), _| *channel != write.channel);
        }
        let task = self.task_stream.task_ref(event, &finished.task, &finished.node);
        let reduced = writes().filter(|write| !write.overwrite);
        for message in reduced.flat_map(|write| messages(&write.value)) {
            self.apply_message(message, finished, &task, spoken);
        }
    }

    fn apply_message(
        &mut self,
        message: &Value,
        finished: &TaskFinished,
        task: &TaskRef,
        spoken: &mut Vec<MessageChange>,
    ) {
        let Some(view) = MessageView::of(message) else { return };
        let id = view.id();
        if view.role() == REMOVE_ROLE || id.is_some_and(|id| self.known_ids.contains(id)) {
            return;
        }
        self.known_ids.extend(id.map(str::to_owned));
        if view.role() == "assistant" && self.was_sent(&finished.task, view) {
            return;
        }
        if let Some(id) = id {
            let (task, id) = (task.clone(), id.to_owned());
            spoken.push(MessageChange {
                task,
                id,
                kind: MessageChangeKind::Whole(message::to_wire(message)),
            });
        } else if !finished.for_parent {
            self.without_id.push((task.clone(), message.clone()));
        }
    }

    /// Returns true if a message of a task is a completion that was sent as deltas.
    fn was_sent(&mut self, task: &TaskId, message: MessageView<'_>) -> bool {
        let Some(told) = self.sent.get_mut(task) else { return false };
        let (text, calls) = (message.text(), message.tool_calls().len());
        let by_id = told.iter().position(|told| message.id() == Some(&told.id));
        let says_the_same = |told: &SentCompletion| told.text == text && told.calls == calls;
        let found = by_id.or_else(|| told.iter().position(says_the_same));
        found.map(|index| told.remove(index)).is_some()
    }

    /// Sends the messages that received an id in a checkpoint.
    fn send_named(
        &mut self,
        namespace: &Namespace,
        checkpoint: Option<&Checkpoint>,
        thread_info: &ThreadInfo,
        spoken: &mut Vec<MessageChange>,
    ) {
        let here = |(task, _): &mut (TaskRef, Value)| task.namespace == *namespace;
        let waiting: Vec<_> = self.without_id.extract_if(.., here).collect();
        let Some(checkpoint) = checkpoint.filter(|_| !waiting.is_empty()) else { return };
        let state = self.unlearned(thread_info, checkpoint);
        for (task, message) in waiting {
            let state = state.iter().flatten().copied();
            let named = state.filter(|named| has_same_content(named, &message)).find_map(|named| {
                let id = MessageView::of(named)?.id().filter(|id| !self.known_ids.contains(*id))?;
                Some((id.to_owned(), message::to_wire(named)))
            });
            let Some((id, message)) = named else { continue };
            self.known_ids.insert(id.clone());
            spoken.push(MessageChange { task, id, kind: MessageChangeKind::Whole(message) });
        }
    }

    /// Ends a task. After this, the messages of a further attempt of the task are sent again.
    fn end_task(&mut self, task: &TaskId, spoken: &mut Vec<MessageChange>) {
        self.sent.remove(task);
        self.close(|of| of == task, spoken);
    }

    /// Completes the messages that tasks streamed with custom events and did not complete.
    /// `is_over` selects the tasks.
    fn close(&mut self, is_over: impl Fn(&TaskId) -> bool, spoken: &mut Vec<MessageChange>) {
        for (id, task) in self.open.extract_if(.., |_, task| is_over(&task.task)) {
            spoken.push(MessageChange { task, id, kind: MessageChangeKind::Done(None) });
        }
    }
}

/// Returns true if a custom event streams a message. Streams do not show such an event as a custom
/// event.
pub fn is_message_event(custom: &Custom) -> bool {
    matches!(custom.name.as_str(), MESSAGE_DELTA | MESSAGE_END)
}

/// Returns true if the next run continues the open messages of a run with this status.
fn waits(status: RunStatus) -> bool {
    matches!(status, RunStatus::Interrupted | RunStatus::Pending | RunStatus::Running)
}

fn has_same_content(named: &Value, nameless: &Value) -> bool {
    let (named, nameless) = (MessageView::of(named), MessageView::of(nameless));
    named.zip(nameless).is_some_and(|(named, nameless)| named.says_the_same(nameless))
}

/// Returns true if a write removes messages.
fn removes(write: &Value) -> bool {
    let mut views = messages(write).iter().filter_map(MessageView::of);
    views.any(|view| view.role() == REMOVE_ROLE)
}

fn id_of(message: &Value) -> Option<&str> {
    MessageView::of(message).and_then(MessageView::id)
}

/// Returns the last of the first `count` items of a list.
fn last_of(value: &ChannelValue, count: usize) -> Option<&Value> {
    value.list()?.get(count.checked_sub(1)?)
}

/// Returns the channels of a state that contain messages.
fn conversations<'c>(
    thread_info: &ThreadInfo,
    checkpoint: &'c Checkpoint,
) -> impl Iterator<Item = (&'c ChannelName, &'c ChannelValue)> {
    let values = checkpoint.values.iter();
    values.filter(|(name, _)| thread_info.channels.contains(name.as_str()))
}

#[cfg(test)]
mod tests;
