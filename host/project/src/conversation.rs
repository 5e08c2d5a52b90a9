//! The fold of a conversation: tasks at work, and the answers of models piece by piece.
//!
//! [`Conversation::take`] answers each event of a thread with the [`Change`]s that it makes. An
//! answer of a model begins with [`Step::Began`], grows with each [`Step::Piece`], and ends with
//! [`Step::Done`] or [`Step::Failed`]. A [`Step::Void`] takes back the pieces so far: the model
//! answers again, because it restarted or because a crash cut the call.
//!
//! Only calls of nodes are part of the conversation. Calls that tools make, and those that ask a
//! model for a document for programs, are not.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use wattle_graph::event::{CallStarted, Called, Event, EventKind, RunStatus, Streamed, Tokens};
use wattle_graph::id::{Namespace, NodeName, TaskId};
use wattle_graph::llm::{Completion, Delta};

/// A task, and where it runs.
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

impl Place {
    /// Whether a graph runs, at any depth, inside of this task.
    pub fn runs(&self, graph: &Namespace) -> bool {
        graph.is_run_by(&self.namespace, &self.task, &self.node)
    }
}

/// What an event changes in the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Where.
    pub place: Place,
    /// What.
    pub what: What,
}

/// See [`Change`].
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// The task began.
    TaskBegan {
        /// Whether it was at work before: a crash or a question cut it.
        again: bool,
    },
    /// The task ended, well or badly. Its answers that were under way have failed before.
    TaskEnded,
    /// An answer of a model made a step.
    Answer {
        /// The number of the call.
        call: u32,
        /// The id of the message that the answer becomes; of the void one for [`Step::Void`].
        id: String,
        /// The step.
        step: Step,
    },
}

/// A step of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The model is asked.
    Began,
    /// A piece arrived.
    Piece(Piece),
    /// The pieces so far are void: the model answers again.
    Void(Told),
    /// The answer is complete.
    Done {
        /// All of it.
        completion: Box<Completion>,
        /// What its pieces contained.
        told: Told,
        /// What it took, if that is known.
        tokens: Option<Tokens>,
    },
    /// There will be no answer: the call failed, its task ended, or it cannot be read.
    Failed(Told),
}

/// A piece of an answer: a [`Delta`] that is no restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text that goes on from the text before.
    Text(String),
    /// Reasoning that goes on from the reasoning before.
    Reasoning(String),
    /// A request for a tool.
    Call {
        /// Which of the answer's requests, from 0.
        index: u32,
        /// Its id; only with its first piece.
        id: Option<String>,
        /// The tool; only with its first piece.
        name: Option<String>,
        /// A piece of the arguments' JSON text.
        arguments: String,
    },
}

impl Piece {
    /// `None` for a restart.
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

/// Pieces that go on from one another as one piece.
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

/// What the pieces of an answer contained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Whether they contained text.
    pub text: bool,
    /// Whether they contained reasoning.
    pub reasoning: bool,
    /// The requests for tools that they began.
    pub calls: BTreeSet<u32>,
}

impl Told {
    /// Whether they contained anything.
    pub fn is_some(&self) -> bool {
        self.text || self.reasoning || !self.calls.is_empty()
    }

    /// The parts of the whole answer that no piece contained, as pieces.
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

/// An answer that is under way.
#[derive(Clone, Debug)]
struct Answer {
    started: CallStarted,
    /// How often the model restarted.
    restarts: u32,
    told: Told,
    /// Where it was heard last, if it was.
    place: Option<Place>,
}

impl Answer {
    fn new(started: CallStarted, place: Option<Place>) -> Self {
        Self { started, restarts: 0, told: Told::default(), place }
    }

    /// The id of the message, which the host gives to the answer in the journal too.
    fn id(&self) -> String {
        self.started.answer_id(self.restarts)
    }

    fn step(&self, step: Step) -> What {
        What::Answer { call: self.started.call, id: self.id(), step }
    }

    /// The call is made again.
    fn begin_again(&mut self, started: &CallStarted) -> What {
        let void = self.step(Step::Void(self.told.clone()));
        // Logs of older hosts do not count.
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

/// The fold.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    tasks: BTreeMap<TaskId, Place>,
    answers: BTreeMap<(TaskId, u32), Answer>,
}

impl Conversation {
    /// Takes the next event of the thread, or of one run from its first event.
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
            // A graph that comes to its next superstep has no task of the one before at work.
            EventKind::Checkpointed(_) => {
                let here = &event.namespace;
                let is_over = |at: &Namespace| at == here || at.is_below(here);
                self.end_tasks(|place| is_over(&place.namespace), &mut changes);
            }
            // A run that waits goes on with its answers.
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

    /// Tasks at work.
    pub fn tasks(&self) -> impl Iterator<Item = &Place> {
        self.tasks.values()
    }

    /// Whether nothing goes on.
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty() && self.answers.is_empty()
    }

    /// The place of a task that an event names. The superstep of a task whose beginning was not
    /// taken is not known.
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
            // A crash cut the first answer to this call.
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

    /// Ends a task, after those at work in the graphs that it runs.
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
