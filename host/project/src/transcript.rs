//! Projection of one run as messages and tool calls in order.
//!
//! Folds the changes of [`crate::conversation`] into a well-formed sequence of transcript events,
//! for the streams of [`crate::ai_sdk`] and [`crate::ag_ui`]. Every start has exactly one end,
//! every delta has a start, and every tool result has a call, also after a crash in the middle of a
//! stream.
//!
//! A turn is one model call of a node. Model calls of tools and calls for structured output are not
//! part of the transcript.

mod answer;
mod calls;
mod said;
mod turn;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use wattle_graph::event::{Called, Event, EventKind, RunReason, RunStatus, TaskFinished, Write};
use wattle_graph::failure::Failure;
use wattle_graph::id::{Namespace, NodeName, RunId, TaskId};
use wattle_graph::message::{MessageView, messages};

pub use self::answer::Answer;
pub use self::said::{Reason, Said, Voice};

use self::calls::Calls;
use self::turn::Turn;
use crate::conversation::{Change, Conversation, Place, Step, What};

/// Error of a tool call without a result when the run fails or is cancelled.
const CUT_OFF: &str = "the run ended before the tool returned a result";

/// Error of a tool call whose arguments were incomplete when the model call failed.
const BROKEN_OFF: &str = "the completion ended before the tool call was complete";

/// Task and number of a model call.
type Key = (TaskId, u32);

/// The projection of one run. It takes the events of the run in order, from the first.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// Nodes whose model calls, and those of their subgraphs, are in the transcript; all nodes if
    /// empty.
    nodes: BTreeSet<NodeName>,
    run: Option<RunId>,
    is_over: bool,
    /// Whether the run continues another run. It may then have results of tool calls of that run.
    is_carried: bool,
    conversation: Conversation,
    /// Model calls in progress.
    turns: BTreeMap<Key, Turn>,
    in_turn: bool,
    calls: Calls,
    /// Number of texts so far, from which the ids of texts are made.
    texts: u32,
    reason: Option<Reason>,
    said: Vec<Said>,
}

impl Transcript {
    /// Creates the transcript of a run before its first event. The transcript contains only model
    /// calls of `nodes`, or of all nodes if `nodes` is empty.
    pub fn new(nodes: impl IntoIterator<Item = NodeName>) -> Self {
        Self { nodes: nodes.into_iter().collect(), ..Self::default() }
    }

    /// Returns true after the end of the run.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Applies an event and returns the transcript events that follow from it.
    pub fn apply(&mut self, event: &Event) -> Vec<Said> {
        let run = self.run.get_or_insert_with(|| {
            self.said.push(Said::Began(event.run.clone()));
            event.run.clone()
        });
        if !self.is_over && *run == event.run {
            self.take(event);
        }
        std::mem::take(&mut self.said)
    }

    fn take(&mut self, event: &Event) {
        if let EventKind::TaskFinished(finished) = &event.kind {
            self.read_writes(finished);
        }
        for change in self.conversation.take(event) {
            self.change(change);
        }
        match &event.kind {
            EventKind::RunStarted(started) => {
                let goes_on = matches!(
                    started.reason,
                    RunReason::Resume | RunReason::Retry | RunReason::Fork
                );
                self.is_carried |= goes_on;
            }
            EventKind::Called(called) => self.finish_tool_call(called),
            EventKind::Asked(asked) => self.said.push(Said::Asked(Box::new(asked.clone()))),
            EventKind::Custom(custom) => {
                let (name, data) = (custom.name.clone(), custom.data.clone());
                self.said.push(Said::Emitted { name, data });
            }
            EventKind::Progress(progress) => self.said.push(Said::Progress {
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

    fn change(&mut self, change: Change) {
        let Change { place, what } = change;
        match what {
            What::TaskBegan { again } => {
                if again {
                    self.said.push(Said::TaskEnded(place.task.clone()));
                }
                self.said.push(Said::TaskBegan(place.task, place.node));
            }
            What::TaskEnded => {
                self.said.push(Said::TaskEnded(place.task));
                self.maybe_end_turn();
            }
            What::Answer { call, step: Step::Began, .. } => self.begin_turn(&place, call),
            What::Answer { call, step, .. } => self.go_on((place.task, call), step),
        }
    }

    /// Reads the messages that a task wrote: the ids that the task gave to tool calls, and the
    /// results of tools.
    fn read_writes(&mut self, finished: &TaskFinished) {
        // An overwrite repeats old messages. The messages of a subgraph were read from its own
        // events.
        let is_news = |write: &&Write| !write.overwrite && finished.child.is_none();
        let writes = finished.writes.iter().filter(is_news);
        let all = writes.flat_map(|write| messages(&write.value)).filter_map(MessageView::of);
        for message in all {
            match message.role() {
                "assistant" => self.calls.rename(&finished.task, &message.tool_calls()),
                "tool" => self.hear(message),
                _ => {}
            }
        }
    }

    /// Returns true if the model calls of a task are in the transcript: `nodes` contains the node
    /// of the task, or a node that runs one of the graphs around the task.
    fn is_conversation(&self, place: &Place) -> bool {
        let mut levels = place.namespace.ancestors();
        self.nodes.is_empty()
            || self.nodes.contains(&place.node)
            || levels.any(|level| self.nodes.contains(level.node()))
    }

    fn begin_turn(&mut self, place: &Place, call: u32) {
        if !self.is_conversation(place) {
            return;
        }
        if self.turns.is_empty() {
            self.end_turn();
        }
        if !self.in_turn {
            self.in_turn = true;
            self.said.push(Said::TurnBegan);
        }
        self.turns.insert((place.task.clone(), call), Turn::default());
    }

    fn go_on(&mut self, key: Key, step: Step) {
        let (Some(turn), Some(run)) = (self.turns.get_mut(&key), &self.run) else { return };
        let mut speaker = turn::Speaker {
            run,
            texts: &mut self.texts,
            calls: &mut self.calls,
            said: &mut self.said,
        };
        match step {
            Step::Began => {}
            Step::Piece(piece) => turn.hear(piece, &mut speaker),
            Step::Void(_) => turn.restart(&mut self.said),
            Step::Done { completion, told, .. } => {
                self.reason = Some(Reason::from(&completion.finish_reason));
                let made = turn.finish(&completion, &told, &mut speaker);
                self.calls.made_by(&key.0, made);
                self.leave(&key);
            }
            Step::Failed(_) => {
                turn.break_off(BROKEN_OFF, &mut self.said);
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
        if let Some(call) = self.calls.take(&id) {
            self.said.push(Said::Answered(call, Answer::of_call(called)));
            self.maybe_end_turn();
        } else if self.is_carried {
            self.calls.remember(&id, called.request.get("arguments"));
        }
    }

    /// Reads a tool message. For a call that never reached its tool, this message is the only
    /// result.
    fn hear(&mut self, message: MessageView<'_>) {
        let Some(id) = message.tool_call_id() else { return };
        let call = match self.calls.take(id) {
            Some(call) => call,
            None if self.is_carried => {
                let Some(carried) = self.calls.carry(id, message) else { return };
                let (id, name) = (carried.id.clone(), carried.name.clone());
                self.said.push(Said::CallBegan { id, name });
                let (id, name, arguments) = (carried.id.clone(), carried.name, carried.arguments);
                self.said.push(Said::CallMade { id, name, arguments });
                carried.id
            }
            None => return,
        };
        self.said.push(Said::Answered(call, Answer::of_message(message)));
        self.maybe_end_turn();
    }

    fn maybe_end_turn(&mut self) {
        if self.turns.is_empty() && !self.calls.is_waiting() {
            self.end_turn();
        }
    }

    fn end_turn(&mut self) {
        if std::mem::take(&mut self.in_turn) {
            self.calls.stop_waiting();
            self.said.push(Said::TurnEnded);
        }
    }

    fn end(&mut self, status: RunStatus, failure: Option<Failure>) {
        for mut turn in std::mem::take(&mut self.turns).into_values() {
            turn.break_off(BROKEN_OFF, &mut self.said);
        }
        let is_open = self.calls.is_open();
        if matches!(status, RunStatus::Failed | RunStatus::Cancelled) {
            let cut = |id| Said::Answered(id, Answer::Error(CUT_OFF.to_owned()));
            self.said.extend(self.calls.take_all().map(cut));
        }
        self.end_turn();
        let tasks = self.conversation.tasks().map(|place| place.task.clone());
        self.said.extend(tasks.map(Said::TaskEnded));
        let reason = match status {
            RunStatus::Interrupted if is_open => Reason::ToolCalls,
            RunStatus::Interrupted => Reason::Other,
            _ => self.reason.unwrap_or(Reason::Stop),
        };
        self.is_over = true;
        self.said.push(Said::Ended { status, failure, reason });
    }
}
