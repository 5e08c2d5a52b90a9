//! Projection of one run as messages and tool calls in order.
//!
//! The projection turns the changes of [`crate::task_stream`] into a well-formed sequence of
//! transcript events, for the streams of [`crate::ai_sdk`] and [`crate::ag_ui`]. Every start has
//! exactly one end, every delta has a start, and every tool result has a call. This also holds
//! after a crash in the middle of a stream.
//!
//! A turn is one model call of a node, or several concurrent model calls. Model calls of tools and
//! calls for structured output are not part of the transcript.

mod calls;
mod event;
mod result;
mod turn;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use wattle_graph::event::{Called, Event, EventKind, RunReason, RunStatus, TaskFinished, Write};
use wattle_graph::failure::Failure;
use wattle_graph::id::{Namespace, NodeName, RunId, TaskId};
use wattle_graph::message::{MessageView, messages};

pub use self::event::{CompletionEnd, ContentKind, TranscriptEvent};
pub use self::result::ToolCallResult;

use self::calls::ToolCalls;
use self::turn::Turn;
use crate::task_stream::{ChangeKind, CompletionStep, TaskChange, TaskRef, TaskStream};

/// Error of a tool call that has no result when the run fails or is cancelled.
const RUN_ENDED_FIRST: &str = "the run ended before the tool returned a result";

/// Error of a tool call whose arguments were incomplete when the model call failed.
const CALL_INCOMPLETE: &str = "the completion ended before the tool call was complete";

/// A model call: its task, and its number among the host calls of the task.
type Key = (TaskId, u32);

/// The projection of one run. It takes the events of the run in order, from the first.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// Nodes whose model calls are in the transcript, together with the model calls of their
    /// subgraphs. Empty selects all nodes.
    nodes: BTreeSet<NodeName>,
    run: Option<RunId>,
    is_finished: bool,
    /// Whether the run continues another run. Such a run may have results of tool calls of the
    /// other run.
    continues_run: bool,
    task_stream: TaskStream,
    /// Model calls in progress.
    turns: BTreeMap<Key, Turn>,
    has_open_turn: bool,
    calls: ToolCalls,
    /// Number of texts so far, which gives the next text its id.
    texts: u32,
    reason: Option<CompletionEnd>,
    output: Vec<TranscriptEvent>,
}

impl Transcript {
    /// Creates the transcript of a run before its first event. The transcript contains only model
    /// calls of `nodes`, or of all nodes if `nodes` is empty.
    pub fn new(nodes: impl IntoIterator<Item = NodeName>) -> Self {
        Self { nodes: nodes.into_iter().collect(), ..Self::default() }
    }

    /// Returns true after the end of the run.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Applies an event and returns the transcript events that follow from it.
    pub fn apply(&mut self, event: &Event) -> Vec<TranscriptEvent> {
        let run = self.run.get_or_insert_with(|| {
            self.output.push(TranscriptEvent::RunStarted(event.run.clone()));
            event.run.clone()
        });
        if !self.is_finished && *run == event.run {
            self.apply_event(event);
        }
        std::mem::take(&mut self.output)
    }

    fn apply_event(&mut self, event: &Event) {
        if let EventKind::TaskFinished(finished) = &event.kind {
            self.apply_writes(finished);
        }
        for change in self.task_stream.apply(event) {
            self.apply_change(change);
        }
        match &event.kind {
            EventKind::RunStarted(started) => {
                let goes_on = matches!(
                    started.reason,
                    RunReason::Resume | RunReason::Retry | RunReason::Fork
                );
                self.continues_run |= goes_on;
            }
            EventKind::Called(called) => self.finish_tool_call(called),
            // A fork repeats an answered interrupt together with its answer.
            EventKind::InterruptRaised(raised) if !raised.answered => {
                self.output.push(TranscriptEvent::Interrupted(Box::new(raised.clone())));
            }
            EventKind::Custom(custom) => {
                let (name, data) = (custom.name.clone(), custom.data.clone());
                self.output.push(TranscriptEvent::Custom { name, data });
            }
            EventKind::Progress(progress) => self.output.push(TranscriptEvent::Progress {
                node: progress.node.clone(),
                message: progress.message.clone(),
                fraction: progress.fraction,
            }),
            EventKind::RunEnded(ended) if event.namespace == Namespace::root() => {
                self.end(ended.status, ended.failure.clone());
            }
            _ => {}
        }
    }

    fn apply_change(&mut self, change: TaskChange) {
        let TaskChange { task, kind } = change;
        match kind {
            ChangeKind::TaskStarted { again } => {
                if again {
                    self.output.push(TranscriptEvent::TaskFinished(task.task.clone()));
                }
                self.output.push(TranscriptEvent::TaskStarted(task.task, task.node));
            }
            ChangeKind::TaskEnded => {
                self.output.push(TranscriptEvent::TaskFinished(task.task));
                self.maybe_end_turn();
            }
            ChangeKind::Completion { call, step: CompletionStep::Started, .. } => {
                self.begin_turn(&task, call);
            }
            ChangeKind::Completion { call, step, .. } => self.apply_step((task.task, call), step),
        }
    }

    /// Reads the messages that a task wrote: the ids that the task gave to tool calls, and the
    /// results of tools.
    fn apply_writes(&mut self, finished: &TaskFinished) {
        // An overwrite may repeat old messages. The messages of a subgraph were read from the
        // events of its tasks.
        let is_news = |write: &&Write| !write.overwrite && finished.child.is_none();
        let writes = finished.writes.iter().filter(is_news);
        let all = writes.flat_map(|write| messages(&write.value)).filter_map(MessageView::of);
        for message in all {
            match message.role() {
                "assistant" => self.calls.learn_aliases(&finished.task, &message.tool_calls()),
                "tool" => self.apply_tool_message(message),
                _ => {}
            }
        }
    }

    /// Returns true if the transcript contains the model calls of a task: `nodes` is empty,
    /// contains the node of the task, or contains a node that runs the graph of the task or one of
    /// its parent graphs.
    fn is_shown(&self, place: &TaskRef) -> bool {
        let mut levels = place.namespace.ancestors();
        self.nodes.is_empty()
            || self.nodes.contains(&place.node)
            || levels.any(|level| self.nodes.contains(level.node()))
    }

    fn begin_turn(&mut self, place: &TaskRef, call: u32) {
        if !self.is_shown(place) {
            return;
        }
        if self.turns.is_empty() {
            self.end_turn();
        }
        if !self.has_open_turn {
            self.has_open_turn = true;
            self.output.push(TranscriptEvent::TurnStarted);
        }
        self.turns.insert((place.task.clone(), call), Turn::default());
    }

    fn apply_step(&mut self, key: Key, step: CompletionStep) {
        let (Some(turn), Some(run)) = (self.turns.get_mut(&key), &self.run) else { return };
        let mut speaker = turn::TurnOutput {
            run,
            texts: &mut self.texts,
            calls: &mut self.calls,
            said: &mut self.output,
        };
        match step {
            CompletionStep::Started => {}
            CompletionStep::Delta(piece) => turn.apply_delta(piece, &mut speaker),
            CompletionStep::Restarted(_) => turn.restart(&mut self.output),
            CompletionStep::Done { completion, told, .. } => {
                self.reason = Some(CompletionEnd::from(&completion.finish_reason));
                let made = turn.finish(&completion, &told, &mut speaker);
                self.calls.set_task_calls(&key.0, made);
                self.leave(&key);
            }
            CompletionStep::Failed(_) => {
                turn.abort(CALL_INCOMPLETE, &mut self.output);
                self.leave(&key);
            }
        }
    }

    fn leave(&mut self, key: &Key) {
        self.turns.remove(key);
        self.maybe_end_turn();
    }

    fn finish_tool_call(&mut self, called: &Called) {
        let Some(id) = called.tool_call_id().filter(|_| called.scope.is_empty()) else { return };
        if let Some(call) = self.calls.resolve_pending(&id) {
            self.output.push(TranscriptEvent::ToolResult(call, ToolCallResult::of_call(called)));
            self.maybe_end_turn();
        } else if self.continues_run {
            self.calls.keep_arguments(&id, called.request.get("arguments"));
        }
    }

    /// Reads a tool message. For a call that was rejected before it reached its tool, this message
    /// is the only result.
    fn apply_tool_message(&mut self, message: MessageView<'_>) {
        let Some(id) = message.tool_call_id() else { return };
        let call = match self.calls.resolve_pending(id) {
            Some(call) => call,
            None if self.continues_run => {
                let Some(carried) = self.calls.inherit(id, message) else { return };
                let (id, name) = (carried.id.clone(), carried.name.clone());
                self.output.push(TranscriptEvent::ToolCallStart { id, name, is_inherited: true });
                let (id, name, arguments) = (carried.id.clone(), carried.name, carried.arguments);
                self.output.push(TranscriptEvent::ToolCallReady { id, name, arguments });
                carried.id
            }
            None => return,
        };
        self.output.push(TranscriptEvent::ToolResult(call, ToolCallResult::of_message(message)));
        self.maybe_end_turn();
    }

    fn maybe_end_turn(&mut self) {
        if self.turns.is_empty() && !self.calls.is_waiting() {
            self.end_turn();
        }
    }

    fn end_turn(&mut self) {
        if std::mem::take(&mut self.has_open_turn) {
            self.calls.stop_waiting();
            self.output.push(TranscriptEvent::TurnFinished);
        }
    }

    fn end(&mut self, status: RunStatus, failure: Option<Failure>) {
        for mut turn in std::mem::take(&mut self.turns).into_values() {
            turn.abort(CALL_INCOMPLETE, &mut self.output);
        }
        let is_open = self.calls.has_pending();
        if matches!(status, RunStatus::Failed | RunStatus::Cancelled) {
            let cut = |id| {
                TranscriptEvent::ToolResult(id, ToolCallResult::Error(RUN_ENDED_FIRST.to_owned()))
            };
            self.output.extend(self.calls.drain_pending().map(cut));
        }
        self.end_turn();
        let tasks = self.task_stream.tasks().map(|place| place.task.clone());
        self.output.extend(tasks.map(TranscriptEvent::TaskFinished));
        let reason = match status {
            RunStatus::Interrupted if is_open => CompletionEnd::ToolCalls,
            RunStatus::Interrupted => CompletionEnd::Other,
            _ => self.reason.unwrap_or(CompletionEnd::Stop),
        };
        self.is_finished = true;
        self.output.push(TranscriptEvent::RunEnded { status, failure, reason });
    }
}
