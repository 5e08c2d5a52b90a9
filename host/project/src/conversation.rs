//! Projection of running tasks and completions, delta by delta.
//!
//! [`Conversation::take`] returns the [`Change`]s of each event of a thread. A completion starts
//! with [`Step::Began`], grows with each [`Step::Piece`], and ends with [`Step::Done`] or
//! [`Step::Failed`]. [`Step::Void`] discards the deltas so far: the model starts the completion
//! again, because it restarted or because the host stopped during the call.
//!
//! The conversation contains only model calls of nodes. It contains neither model calls of tools
//! nor calls for structured output.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use wattle_graph::event::{CallStarted, Called, Event, EventKind, RunStatus, Streamed, Tokens};
use wattle_graph::id::{Namespace, NodeName, TaskId};
use wattle_graph::llm::{Completion, Delta};

/// A task with its node, graph and superstep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Namespace of the graph that the task belongs to.
    pub namespace: Namespace,
    /// Id of the task.
    pub task: TaskId,
    /// Node of the task.
    pub node: NodeName,
    /// Number of the superstep; 0 if the start event of the task was not read.
    pub step: u32,
}

impl Place {
    /// Returns true if a graph is a subgraph of this task, at any depth.
    pub fn runs(&self, graph: &Namespace) -> bool {
        graph.is_run_by(&self.namespace, &self.task, &self.node)
    }
}

/// A change of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Task that the change belongs to.
    pub place: Place,
    /// Content of the change.
    pub what: What,
}

/// The content of a [`Change`].
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// The task started.
    TaskBegan {
        /// Whether the task had started before: a crash or an interrupt ended that execution.
        again: bool,
    },
    /// The task finished or failed. Its open completions failed before this change.
    TaskEnded,
    /// A completion changed.
    Answer {
        /// Number of the model call among the calls of its task.
        call: u32,
        /// Id of the message that the completion becomes. For [`Step::Void`], the id of the
        /// discarded message.
        id: String,
        /// Change of the completion.
        step: Step,
    },
}

/// A change of a completion.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The model call started.
    Began,
    /// A delta arrived.
    Piece(Piece),
    /// The deltas so far are discarded, because the model starts the completion again. Contains
    /// what the deltas had.
    Void(Told),
    /// The completion is complete.
    Done {
        /// The whole completion.
        completion: Box<Completion>,
        /// What the deltas of the completion had.
        told: Told,
        /// Token counts; `None` if they are unknown.
        tokens: Option<Tokens>,
    },
    /// The completion failed: its call failed, its task or run ended, or its result is invalid.
    /// Contains what its deltas had.
    Failed(Told),
}

/// A delta of a completion: a [`Delta`] other than a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text to append to the text so far.
    Text(String),
    /// Reasoning to append to the reasoning so far.
    Reasoning(String),
    /// A delta of a tool call.
    Call {
        /// Position among the tool calls of the completion, from 0.
        index: u32,
        /// Id of the tool call; only in its first delta.
        id: Option<String>,
        /// Name of the tool; only in the first delta of the call.
        name: Option<String>,
        /// The part of the JSON text of the arguments to append.
        arguments: String,
    },
}

impl Piece {
    /// Converts a delta. Returns `None` for a restart.
    fn of(delta: Delta) -> Option<Self> {
        match delta {
            Delta::Text { text } => Some(Self::Text(text)),
            Delta::Reasoning { text } => Some(Self::Reasoning(text)),
            Delta::ToolCall { index, id, name, arguments } => {
                Some(Self::Call { index, id, name, arguments })
            }
            _ => None,
        }
    }
}

/// Joins deltas that continue one another.
fn joined(deltas: impl IntoIterator<Item = Delta>) -> Vec<Delta> {
    let mut joined: Vec<Delta> = Vec::new();
    for delta in deltas {
        let rest = match joined.last_mut() {
            Some(last) => last.join(delta),
            None => Some(delta),
        };
        joined.extend(rest);
    }
    joined
}

/// Which content the deltas of a completion had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Whether there was text.
    pub text: bool,
    /// Whether there was reasoning.
    pub reasoning: bool,
    /// Positions of the tool calls that were started.
    pub calls: BTreeSet<u32>,
}

impl Told {
    /// Returns true if there was any content.
    pub fn is_some(&self) -> bool {
        self.text || self.reasoning || !self.calls.is_empty()
    }

    /// Returns the parts of the whole completion that no delta had, as deltas.
    pub fn rest(&self, whole: &Completion) -> impl Iterator<Item = Piece> {
        let is_new = |piece: &Piece| match piece {
            Piece::Text(text) => !self.text && !text.is_empty(),
            Piece::Reasoning(text) => !self.reasoning && !text.is_empty(),
            Piece::Call { index, .. } => !self.calls.contains(index),
        };
        joined(whole.deltas()).into_iter().filter_map(Piece::of).filter(is_new)
    }

    fn take(&mut self, piece: &Piece) {
        match piece {
            Piece::Text(text) => self.text |= !text.is_empty(),
            Piece::Reasoning(text) => self.reasoning |= !text.is_empty(),
            Piece::Call { index, .. } => drop(self.calls.insert(*index)),
        }
    }
}

/// A completion in progress.
#[derive(Clone, Debug)]
struct Answer {
    started: CallStarted,
    /// Number of times that the model restarted the completion since the start of the call.
    restarts: u32,
    told: Told,
    /// Task of the newest delta, or of the start of the call if its task was known.
    place: Option<Place>,
}

impl Answer {
    fn new(started: CallStarted, place: Option<Place>) -> Self {
        Self { started, restarts: 0, told: Told::default(), place }
    }

    /// Returns the id of the message. The journal contains the same id.
    fn id(&self) -> String {
        self.started.answer_id(self.restarts)
    }

    fn step(&self, step: Step) -> What {
        What::Answer { call: self.started.call, id: self.id(), step }
    }

    /// Discards the deltas, because the call starts again.
    fn begin_again(&mut self, started: &CallStarted) -> What {
        let void = self.step(Step::Void(self.told.clone()));
        // Logs of older hosts do not number the repeated starts of a call.
        let again = started.again.max(self.started.again + 1);
        *self = Self::new(CallStarted { again, ..started.clone() }, self.place.take());
        void
    }

    fn hear(&mut self, delta: Delta) -> What {
        let Some(piece) = Piece::of(delta) else {
            let told = std::mem::take(&mut self.told);
            let void = self.step(Step::Void(told));
            self.restarts += 1;
            return void;
        };
        self.told.take(&piece);
        self.step(Step::Piece(piece))
    }

    fn end(self, called: &Called) -> What {
        match called.completion() {
            Some(completion) => {
                let (completion, told) = (Box::new(completion), self.told.clone());
                self.step(Step::Done { completion, told, tokens: called.tokens })
            }
            None => self.step(Step::Failed(self.told.clone())),
        }
    }
}

/// The projection of a thread, or of one run.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    tasks: BTreeMap<TaskId, Place>,
    answers: BTreeMap<(TaskId, u32), Answer>,
}

impl Conversation {
    /// Applies the next event of the thread, or of one run from its first event.
    pub fn take(&mut self, event: &Event) -> Vec<Change> {
        let mut changes = Vec::new();
        match &event.kind {
            EventKind::TaskStarted(started) => {
                let place = Place {
                    namespace: event.namespace.clone(),
                    task: started.task.clone(),
                    node: started.node.clone(),
                    step: started.step,
                };
                let again = self.tasks.insert(started.task.clone(), place.clone()).is_some();
                changes.push(Change { place, what: What::TaskBegan { again } });
            }
            EventKind::TaskFinished(finished) => {
                let place = self.place(event, &finished.task, &finished.node);
                self.end_task(&place, &mut changes);
            }
            EventKind::TaskFailed(failed) => {
                let place = self.place(event, &failed.task, &failed.node);
                self.end_task(&place, &mut changes);
            }
            EventKind::CallStarted(started) if started.is_speech() => {
                self.ask(started, &mut changes);
            }
            EventKind::Streamed(streamed) if streamed.scope.is_empty() => {
                self.hear(event, streamed, &mut changes);
            }
            EventKind::Called(called) if called.scope.is_empty() => {
                let answer = self.answers.remove(&(called.task.clone(), called.call));
                let place = || self.place(event, &called.task, &called.node);
                changes.extend(
                    answer.map(|answer| Change { place: place(), what: answer.end(called) }),
                );
            }
            // A checkpoint ends a superstep, so no task of that superstep is running.
            EventKind::Checkpointed(_) => {
                let here = &event.namespace;
                let is_over = |at: &Namespace| at == here || at.is_below(here);
                self.end_tasks(|place| is_over(&place.namespace), &mut changes);
            }
            // The run after an interrupt continues the completions of this run.
            EventKind::RunEnded(ended) if event.namespace.is_root() => match ended.status {
                RunStatus::Interrupted | RunStatus::Pending | RunStatus::Running => {}
                RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => {
                    self.fail_answers(|_| true, &mut changes);
                }
            },
            _ => {}
        }
        changes
    }

    /// Returns the running tasks.
    pub fn tasks(&self) -> impl Iterator<Item = &Place> {
        self.tasks.values()
    }

    /// Returns true if no task and no completion is in progress.
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty() && self.answers.is_empty()
    }

    /// Returns the place of a task from an event about it. The superstep is 0 if the start event of
    /// the task was not read.
    pub fn place(&self, event: &Event, task: &TaskId, node: &NodeName) -> Place {
        self.tasks.get(task).cloned().unwrap_or_else(|| Place {
            namespace: event.namespace.clone(),
            task: task.clone(),
            node: node.clone(),
            step: 0,
        })
    }

    fn ask(&mut self, started: &CallStarted, changes: &mut Vec<Change>) {
        let key = (started.task.clone(), started.call);
        let mut place = self.tasks.get(&started.task).cloned();
        let what = match self.answers.get_mut(&key) {
            // The call had started before, and the host stopped before the result.
            Some(answer) => {
                place = place.or_else(|| answer.place.clone());
                answer.begin_again(started)
            }
            None => {
                let answer = Answer::new(started.clone(), place.clone());
                let began = answer.step(Step::Began);
                self.answers.insert(key, answer);
                began
            }
        };
        changes.extend(place.map(|place| Change { place, what }));
    }

    fn hear(&mut self, event: &Event, streamed: &Streamed, changes: &mut Vec<Change>) {
        let place = self.place(event, &streamed.task, &streamed.node);
        let key = (streamed.task.clone(), streamed.call);
        let Some(answer) = self.answers.get_mut(&key) else { return };
        answer.place = Some(place.clone());
        for delta in joined(streamed.deltas.iter().cloned()) {
            changes.push(Change { place: place.clone(), what: answer.hear(delta) });
        }
    }

    /// Ends a task after the running tasks of its subgraphs.
    fn end_task(&mut self, place: &Place, changes: &mut Vec<Change>) {
        self.end_tasks(|at| place.runs(&at.namespace), changes);
        self.end(place, changes);
    }

    fn end_tasks(&mut self, is_over: impl Fn(&Place) -> bool, changes: &mut Vec<Change>) {
        let over: Vec<Place> = self.tasks.values().filter(|at| is_over(at)).cloned().collect();
        for place in &over {
            self.end(place, changes);
        }
    }

    fn end(&mut self, place: &Place, changes: &mut Vec<Change>) {
        self.fail_answers(|task| *task == place.task, changes);
        if self.tasks.remove(&place.task).is_some() {
            changes.push(Change { place: place.clone(), what: What::TaskEnded });
        }
    }

    fn fail_answers(&mut self, is_cut: impl Fn(&TaskId) -> bool, changes: &mut Vec<Change>) {
        for ((task, _), answer) in self.answers.extract_if(.., |(task, _), _| is_cut(task)) {
            let what = answer.step(Step::Failed(answer.told.clone()));
            let place = self.tasks.get(&task).cloned().or(answer.place);
            changes.extend(place.map(|place| Change { place, what }));
        }
    }
}
