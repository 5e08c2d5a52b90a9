//! One run as a conversation: what the model says, which tools it asks for, and what they answer.
//!
//! The log of a run is folded into things said, one after the other, for the streams of
//! [`crate::ai_sdk`] and [`crate::ag_ui`]. A client may read from any run, also one that was cut
//! by a crash and went on, so what is said always makes sense in order: nothing goes on that has
//! not begun, nothing is answered that was not asked for, and everything that begins ends.
//!
//! A model call of a node is a turn. Model calls of tools, and those that ask for a document, are
//! work behind the scenes and not part of the conversation.

mod answer;
mod calls;
mod time;
mod turn;

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub use self::answer::Answer;
pub use self::turn::{Reason, Voice};

use self::answer::Completion;
use self::calls::Calls;
pub(crate) use self::time::utc;
use self::turn::Turn;
use crate::event::{
    Asked, CallStarted, Called, Event, EventKind, RunReason, RunStatus, Streamed, TaskFinished,
    Write,
};
use crate::failure::Failure;
use crate::id::{Namespace, NodeName, RunId, TaskId};

/// Host calls whose answer a model gives.
const MODEL_CALLS: &[&str] = &["llm.complete", "llm.stream"];

/// The host call that calls a tool.
const TOOL_CALL: &str = "tools.call";

/// What a call that was cut off is answered with.
const CUT_OFF: &str = "the run ended before the tool answered";

/// What a request for a tool that was not completed is answered with.
const BROKEN_OFF: &str = "the model broke off before the call was complete";

/// Something that is said in a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// The run began; always first.
    Began(RunId),
    /// A task of a node began.
    TaskBegan(TaskId, NodeName),
    /// The task ended, in whatever way.
    TaskEnded(TaskId),
    /// The model is asked.
    TurnBegan,
    /// The tools that the model asked for have answered, or it has all that it wants.
    TurnEnded,
    /// The model begins to speak or to think; the id is unique in the run.
    TextBegan(Voice, String),
    /// More of it.
    Text(Voice, String, String),
    /// The text is complete.
    TextEnded(Voice, String),
    /// The model begins to ask for a tool.
    CallBegan {
        /// Unique in the run.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of the arguments' JSON text.
    CallArguments {
        /// The call.
        id: String,
        /// The piece.
        text: String,
    },
    /// What there is of the arguments is void: they are given anew under the same id.
    CallVoid(String),
    /// The arguments are complete.
    CallMade {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// The arguments.
        arguments: Value,
    },
    /// The call is none: its arguments cannot be read, or never came.
    CallBroken {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// What stands in place of arguments.
        arguments: Value,
        /// What is wrong.
        why: String,
    },
    /// A tool answers a call that was made.
    Answered(String, Answer),
    /// A guest's own event.
    Emitted {
        /// Its name for it.
        name: String,
        /// Its data.
        data: Value,
    },
    /// How far a node is.
    Progress {
        /// The node.
        node: NodeName,
        /// A sentence.
        message: String,
        /// Share done, from 0 to 1.
        fraction: Option<f64>,
    },
    /// A question to a person.
    Asked(Box<Asked>),
    /// The run ended or stands still; always last.
    Ended {
        /// How.
        status: RunStatus,
        /// Why, if it failed.
        failure: Option<Failure>,
        /// Why the model stopped.
        reason: Reason,
    },
}

/// Which model call of which task.
type Place = (TaskId, u32);

/// A task at work.
#[derive(Clone, Debug)]
struct AtWork {
    /// Whether its model calls are the conversation.
    speaks: bool,
    /// Where it runs.
    namespace: Namespace,
}

impl AtWork {
    /// Whether it runs inside of a graph that another task runs.
    fn is_inside(&self, task: &TaskId) -> bool {
        around(&self.namespace).any(|level| level.task().as_ref() == Some(task))
    }
}

/// A namespace and those around it.
fn around(namespace: &Namespace) -> impl Iterator<Item = Namespace> {
    std::iter::successors(Some(namespace.clone()), Namespace::parent)
}

/// Folds the events of one run, in order from its first, into what is said.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// Nodes whose model calls, and those of the graphs in them, are the conversation; all if
    /// empty.
    nodes: BTreeSet<NodeName>,
    run: Option<RunId>,
    is_over: bool,
    /// Whether the run goes on from another, so that it may answer calls that were made there.
    is_carried: bool,
    /// Tasks at work.
    tasks: BTreeMap<TaskId, AtWork>,
    /// Model calls that are being answered.
    turns: BTreeMap<Place, Turn>,
    in_turn: bool,
    calls: Calls,
    /// Texts that have begun, for their ids.
    texts: u32,
    reason: Option<Reason>,
    said: Vec<Said>,
}

impl Transcript {
    /// The transcript of a run of which nothing was read yet.
    pub fn new(nodes: impl IntoIterator<Item = NodeName>) -> Self {
        Self { nodes: nodes.into_iter().collect(), ..Self::default() }
    }

    /// Whether all was said.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// What is said with an event.
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
        match &event.kind {
            EventKind::RunStarted(started) => {
                let goes_on = matches!(
                    started.reason,
                    RunReason::Resume | RunReason::Retry | RunReason::Fork
                );
                self.is_carried |= goes_on;
            }
            EventKind::TaskStarted(started) => {
                self.begin_task(&started.task, &started.node, &event.namespace);
            }
            EventKind::TaskFinished(finished) => self.finish_task(finished),
            EventKind::TaskFailed(failed) => self.end_task(&failed.task),
            EventKind::CallStarted(started) => self.begin_call(started),
            EventKind::Streamed(streamed) => self.stream(streamed),
            EventKind::Called(called) => self.finish_call(called),
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
            EventKind::RunEnded(_)
            | EventKind::Answered(_)
            | EventKind::Checkpointed(_)
            | EventKind::Reopened(_)
            | EventKind::Forked(_)
            | EventKind::Settled(_)
            | EventKind::Migrated(_)
            | EventKind::Log(_) => {}
        }
    }

    /// After a crash, a task begins once more that was at work before.
    fn begin_task(&mut self, task: &TaskId, node: &NodeName, namespace: &Namespace) {
        let speaks = self.nodes.is_empty() || self.is_named(node, namespace);
        let work = AtWork { speaks, namespace: namespace.clone() };
        if self.tasks.insert(task.clone(), work).is_some() {
            self.said.push(Said::TaskEnded(task.clone()));
        }
        self.said.push(Said::TaskBegan(task.clone(), node.clone()));
    }

    fn finish_task(&mut self, finished: &TaskFinished) {
        self.end_turns_of(&finished.task);
        // What replaces a channel is the past, not news; and what comes out of a nested graph was
        // said in it.
        let is_news = |write: &&Write| !write.overwrite && finished.child.is_none();
        let writes = finished.writes.iter().filter(is_news);
        for message in writes.flat_map(|write| answer::messages(&write.value)) {
            match message.get("role").and_then(Value::as_str) {
                Some("assistant") => self.calls.rename(&finished.task, message),
                Some("tool") => self.hear(message),
                _ => {}
            }
        }
        self.end_task(&finished.task);
    }

    /// Ends a task, and what is still at work in its graph.
    fn end_task(&mut self, task: &TaskId) {
        let inside = self.tasks.iter().filter(|(_, work)| work.is_inside(task));
        let inside: Vec<TaskId> = inside.map(|(id, _)| id.clone()).collect();
        for task in inside {
            self.end_turns_of(&task);
            self.tasks.remove(&task);
            self.said.push(Said::TaskEnded(task));
        }
        self.end_turns_of(task);
        if self.tasks.remove(task).is_some() {
            self.said.push(Said::TaskEnded(task.clone()));
        }
        self.maybe_end_turn();
    }

    fn is_conversation(&self, task: &TaskId) -> bool {
        self.tasks.get(task).map_or(self.nodes.is_empty(), |work| work.speaks)
    }

    /// Whether a node is named, or one of those whose graphs it is nested in.
    fn is_named(&self, node: &NodeName, namespace: &Namespace) -> bool {
        self.nodes.contains(node)
            || around(namespace).any(|level| self.nodes.contains(level.node()))
    }

    fn begin_call(&mut self, started: &CallStarted) {
        let is_model = MODEL_CALLS.contains(&started.function.as_str());
        if !is_model || started.document || !started.scope.is_empty() {
            return;
        }
        let place = (started.task.clone(), started.call);
        if let Some(turn) = self.turns.get_mut(&place) {
            // A crash cut the first answer to this call.
            turn.restart(&mut self.said);
        } else if self.is_conversation(&started.task) {
            if self.turns.is_empty() {
                self.end_turn();
            }
            if !self.in_turn {
                self.in_turn = true;
                self.said.push(Said::TurnBegan);
            }
            self.turns.insert(place, Turn::default());
        }
    }

    fn stream(&mut self, streamed: &Streamed) {
        let place = (streamed.task.clone(), streamed.call);
        let turn = self.turns.get_mut(&place).filter(|_| streamed.scope.is_empty());
        if let (Some(turn), Some(run)) = (turn, &self.run) {
            let mut speaker = turn::Speaker {
                run,
                texts: &mut self.texts,
                calls: &mut self.calls,
                said: &mut self.said,
            };
            streamed.deltas.iter().for_each(|delta| turn.hear(delta, &mut speaker));
        }
    }

    fn finish_call(&mut self, called: &Called) {
        if !called.scope.is_empty() {
            return;
        }
        if called.function == TOOL_CALL {
            self.finish_tool_call(called);
            return;
        }
        let place = (called.task.clone(), called.call);
        let is_model = MODEL_CALLS.contains(&called.function.as_str());
        let turn = if is_model { self.turns.remove(&place) } else { None };
        let (Some(mut turn), Some(run)) = (turn, &self.run) else { return };
        let mut speaker = turn::Speaker {
            run,
            texts: &mut self.texts,
            calls: &mut self.calls,
            said: &mut self.said,
        };
        match &called.result {
            Ok(answer) => {
                let completion = Completion::read(answer);
                self.reason = Some(completion.reason);
                let made = turn.finish(&completion, &mut speaker);
                self.calls.made_by(&called.task, made);
            }
            Err(_) => turn.break_off(BROKEN_OFF, &mut self.said),
        }
        self.maybe_end_turn();
    }

    fn finish_tool_call(&mut self, called: &Called) {
        let Some(id) = answer::call_id(&called.request) else { return };
        if let Some(call) = self.calls.take(&id) {
            self.said.push(Said::Answered(call, Answer::of_call(&called.result)));
            self.maybe_end_turn();
        } else if self.is_carried {
            self.calls.remember(&id, called.request.get("arguments"));
        }
    }

    /// A tool's answer in the conversation: one that never reached its tool is told only here.
    fn hear(&mut self, message: &Value) {
        let Some(id) = message.get("tool_call_id").and_then(Value::as_str) else { return };
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

    /// Ends what a task left open.
    fn end_turns_of(&mut self, task: &TaskId) {
        let of_task = |place: &Place, _: &mut Turn| place.0 == *task;
        for (_, mut turn) in self.turns.extract_if(.., of_task) {
            turn.break_off(BROKEN_OFF, &mut self.said);
        }
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
        let tasks = std::mem::take(&mut self.tasks);
        self.said.extend(tasks.into_keys().map(Said::TaskEnded));
        let reason = match status {
            RunStatus::Interrupted if is_open => Reason::ToolCalls,
            RunStatus::Interrupted => Reason::Other,
            _ => self.reason.unwrap_or(Reason::Stop),
        };
        self.is_over = true;
        self.said.push(Said::Ended { status, failure, reason });
    }
}
