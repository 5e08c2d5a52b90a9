//! Projection of running tasks and completions, delta by delta.
//!
//! [`TaskStream::apply`] returns the [`TaskChange`]s of each event of a thread. A completion starts
//! with [`CompletionStep::Started`], grows with each [`CompletionStep::Delta`], and ends with
//! [`CompletionStep::Done`] or [`CompletionStep::Failed`]. [`CompletionStep::Restarted`] discards
//! the deltas so far: the model starts the completion again, because the model restarted its output
//! or because the host stopped during the call.
//!
//! The stream contains only model calls of nodes. It contains neither model calls of tools nor
//! calls for structured output.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use wattle_graph::event::{CallStarted, Called, Event, EventKind, RunStatus, Streamed, Tokens};
use wattle_graph::id::{Namespace, NodeName, TaskId};
use wattle_graph::llm::{Completion, Delta};

/// A task with its node, graph and superstep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRef {
    /// Namespace of the graph that the task belongs to.
    pub namespace: Namespace,
    /// Id of the task.
    pub task: TaskId,
    /// Node of the task.
    pub node: NodeName,
    /// Number of the superstep; 0 if the start event of the task was not read.
    pub step: u32,
}

impl TaskRef {
    /// Returns true if a graph is a subgraph of this task, at any depth.
    pub fn runs(&self, graph: &Namespace) -> bool {
        graph.is_run_by(&self.namespace, &self.task, &self.node)
    }
}

/// A change of a task or of its completions.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskChange {
    /// Task that the change belongs to.
    pub task: TaskRef,
    /// Content of the change.
    pub kind: ChangeKind,
}

/// The content of a [`TaskChange`].
#[derive(Clone, Debug, PartialEq)]
pub enum ChangeKind {
    /// The task started.
    TaskStarted {
        /// Whether the task had started before: a crash or an interrupt ended that execution.
        again: bool,
    },
    /// The task finished or failed. Its open completions failed before this change.
    TaskEnded,
    /// A completion changed.
    Completion {
        /// Number of the model call among the host calls of its task.
        call: u32,
        /// Id of the message that the completion becomes. For [`CompletionStep::Restarted`], the id
        /// of the discarded message.
        id: String,
        /// Change of the completion.
        step: CompletionStep,
    },
}

/// A change of a completion.
#[derive(Clone, Debug, PartialEq)]
pub enum CompletionStep {
    /// The model call started.
    Started,
    /// A delta arrived.
    Delta(CompletionDelta),
    /// The deltas so far are discarded, because the model starts the completion again. The value
    /// says which content the discarded deltas had.
    Restarted(SeenContent),
    /// The completion is complete.
    Done {
        /// The whole completion.
        completion: Box<Completion>,
        /// Which content the deltas of the completion had.
        told: SeenContent,
        /// Token counts; `None` if they are unknown.
        tokens: Option<Tokens>,
    },
    /// The completion failed: its call failed, its task or run ended, or its result is invalid. The
    /// value says which content the deltas had.
    Failed(SeenContent),
}

/// A delta of a completion: a [`Delta`] other than a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompletionDelta {
    /// Text to append to the text so far.
    Text(String),
    /// Reasoning to append to the reasoning so far.
    Reasoning(String),
    /// A delta of a tool call.
    ToolCall {
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

impl CompletionDelta {
    /// Converts a delta. Returns `None` for a restart.
    fn of(delta: Delta) -> Option<Self> {
        match delta {
            Delta::Text { text } => Some(Self::Text(text)),
            Delta::Reasoning { text } => Some(Self::Reasoning(text)),
            Delta::ToolCall { index, id, name, arguments } => {
                Some(Self::ToolCall { index, id, name, arguments })
            }
            _ => None,
        }
    }
}

/// Joins consecutive deltas of the same text, reasoning or tool call.
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
pub struct SeenContent {
    /// Whether there was text.
    pub text: bool,
    /// Whether there was reasoning.
    pub reasoning: bool,
    /// Positions of the tool calls that had a delta.
    pub calls: BTreeSet<u32>,
}

impl SeenContent {
    /// Returns true if there was any content.
    pub fn is_some(&self) -> bool {
        self.text || self.reasoning || !self.calls.is_empty()
    }

    /// Returns the parts of the whole completion that no delta contained, as deltas.
    pub fn rest(&self, whole: &Completion) -> impl Iterator<Item = CompletionDelta> {
        let is_new = |piece: &CompletionDelta| match piece {
            CompletionDelta::Text(text) => !self.text && !text.is_empty(),
            CompletionDelta::Reasoning(text) => !self.reasoning && !text.is_empty(),
            CompletionDelta::ToolCall { index, .. } => !self.calls.contains(index),
        };
        joined(whole.deltas()).into_iter().filter_map(CompletionDelta::of).filter(is_new)
    }

    fn add(&mut self, piece: &CompletionDelta) {
        match piece {
            CompletionDelta::Text(text) => self.text |= !text.is_empty(),
            CompletionDelta::Reasoning(text) => self.reasoning |= !text.is_empty(),
            CompletionDelta::ToolCall { index, .. } => drop(self.calls.insert(*index)),
        }
    }
}

/// A completion in progress.
#[derive(Clone, Debug)]
struct OpenCompletion {
    started: CallStarted,
    /// Number of times that the model restarted the completion since the start of the call.
    restarts: u32,
    seen: SeenContent,
    /// The task that made the call; `None` before the first delta if the start event of the task
    /// was not read.
    task: Option<TaskRef>,
}

impl OpenCompletion {
    fn new(started: CallStarted, task: Option<TaskRef>) -> Self {
        Self { started, restarts: 0, seen: SeenContent::default(), task }
    }

    /// Returns the id of the message, which the journal also contains.
    fn id(&self) -> String {
        self.started.message_id(self.restarts)
    }

    fn step(&self, step: CompletionStep) -> ChangeKind {
        ChangeKind::Completion { call: self.started.call, id: self.id(), step }
    }

    /// Discards the deltas, because the host makes the call again.
    fn restart(&mut self, started: &CallStarted) -> ChangeKind {
        let void = self.step(CompletionStep::Restarted(self.seen.clone()));
        // Logs of older hosts do not number the repeated starts of a call.
        let start_number = started.start_number.max(self.started.start_number + 1);
        *self = Self::new(CallStarted { start_number, ..started.clone() }, self.task.take());
        void
    }

    fn apply_delta(&mut self, delta: Delta) -> ChangeKind {
        let Some(piece) = CompletionDelta::of(delta) else {
            let told = std::mem::take(&mut self.seen);
            let void = self.step(CompletionStep::Restarted(told));
            self.restarts += 1;
            return void;
        };
        self.seen.add(&piece);
        self.step(CompletionStep::Delta(piece))
    }

    fn finish(self, called: &Called) -> ChangeKind {
        match called.completion() {
            Some(completion) => {
                let (completion, told) = (Box::new(completion), self.seen.clone());
                self.step(CompletionStep::Done { completion, told, tokens: called.tokens })
            }
            None => self.step(CompletionStep::Failed(self.seen.clone())),
        }
    }
}

/// The projection of a thread, or of one run, to changes of its tasks and completions.
#[derive(Clone, Debug, Default)]
pub struct TaskStream {
    tasks: BTreeMap<TaskId, TaskRef>,
    completions: BTreeMap<(TaskId, u32), OpenCompletion>,
}

impl TaskStream {
    /// Applies the next event of the thread, or of one run from its first event.
    pub fn apply(&mut self, event: &Event) -> Vec<TaskChange> {
        let mut changes = Vec::new();
        match &event.kind {
            EventKind::TaskStarted(started) => {
                let task = TaskRef {
                    namespace: event.namespace.clone(),
                    task: started.task.clone(),
                    node: started.node.clone(),
                    step: started.step,
                };
                let again = self.tasks.insert(started.task.clone(), task.clone()).is_some();
                changes.push(TaskChange { task, kind: ChangeKind::TaskStarted { again } });
            }
            EventKind::TaskFinished(finished) => {
                let task = self.task_ref(event, &finished.task, &finished.node);
                self.end_task(&task, &mut changes);
            }
            EventKind::TaskFailed(failed) => {
                let task = self.task_ref(event, &failed.task, &failed.node);
                self.end_task(&task, &mut changes);
            }
            EventKind::CallStarted(started) if started.is_speech() => {
                self.start_completion(started, &mut changes);
            }
            EventKind::Streamed(streamed) if streamed.scope.is_empty() => {
                self.apply_delta(event, streamed, &mut changes);
            }
            EventKind::Called(called) if called.scope.is_empty() => {
                let answer = self.completions.remove(&(called.task.clone(), called.call));
                let task_ref = || self.task_ref(event, &called.task, &called.node);
                changes.extend(
                    answer
                        .map(|answer| TaskChange { task: task_ref(), kind: answer.finish(called) }),
                );
            }
            // A checkpoint ends a superstep, so no task of that superstep is running.
            EventKind::Checkpointed(_) => {
                let here = &event.namespace;
                let is_over = |at: &Namespace| at == here || at.is_nested_in(here);
                self.end_tasks(|task| is_over(&task.namespace), &mut changes);
            }
            // The run after an interrupt continues the completions of this run.
            EventKind::RunEnded(ended) if event.namespace.is_root() => match ended.status {
                RunStatus::Interrupted | RunStatus::Pending | RunStatus::Running => {}
                RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => {
                    self.fail_completions(|_| true, &mut changes);
                }
            },
            _ => {}
        }
        changes
    }

    /// Returns the running tasks.
    pub fn tasks(&self) -> impl Iterator<Item = &TaskRef> {
        self.tasks.values()
    }

    /// Returns true if no task and no completion is in progress.
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty() && self.completions.is_empty()
    }

    /// Returns the reference to a task from an event about it. The superstep is 0 if the start
    /// event of the task was not read.
    pub fn task_ref(&self, event: &Event, task: &TaskId, node: &NodeName) -> TaskRef {
        self.tasks.get(task).cloned().unwrap_or_else(|| TaskRef {
            namespace: event.namespace.clone(),
            task: task.clone(),
            node: node.clone(),
            step: 0,
        })
    }

    fn start_completion(&mut self, started: &CallStarted, changes: &mut Vec<TaskChange>) {
        let key = (started.task.clone(), started.call);
        let mut task = self.tasks.get(&started.task).cloned();
        let kind = match self.completions.get_mut(&key) {
            // The call started before, and the host stopped before its result.
            Some(answer) => {
                task = task.or_else(|| answer.task.clone());
                answer.restart(started)
            }
            None => {
                let answer = OpenCompletion::new(started.clone(), task.clone());
                let began = answer.step(CompletionStep::Started);
                self.completions.insert(key, answer);
                began
            }
        };
        changes.extend(task.map(|task| TaskChange { task, kind }));
    }

    fn apply_delta(&mut self, event: &Event, streamed: &Streamed, changes: &mut Vec<TaskChange>) {
        let task = self.task_ref(event, &streamed.task, &streamed.node);
        let key = (streamed.task.clone(), streamed.call);
        let Some(answer) = self.completions.get_mut(&key) else { return };
        answer.task = Some(task.clone());
        for delta in joined(streamed.deltas.iter().cloned()) {
            changes.push(TaskChange { task: task.clone(), kind: answer.apply_delta(delta) });
        }
    }

    /// Ends a task after the running tasks of its subgraphs.
    fn end_task(&mut self, task: &TaskRef, changes: &mut Vec<TaskChange>) {
        self.end_tasks(|at| task.runs(&at.namespace), changes);
        self.end(task, changes);
    }

    fn end_tasks(&mut self, is_over: impl Fn(&TaskRef) -> bool, changes: &mut Vec<TaskChange>) {
        let over: Vec<TaskRef> = self.tasks.values().filter(|at| is_over(at)).cloned().collect();
        for task in &over {
            self.end(task, changes);
        }
    }

    fn end(&mut self, task: &TaskRef, changes: &mut Vec<TaskChange>) {
        self.fail_completions(|ended| *ended == task.task, changes);
        if self.tasks.remove(&task.task).is_some() {
            changes.push(TaskChange { task: task.clone(), kind: ChangeKind::TaskEnded });
        }
    }

    fn fail_completions(
        &mut self,
        is_cut: impl Fn(&TaskId) -> bool,
        changes: &mut Vec<TaskChange>,
    ) {
        for ((task, _), answer) in self.completions.extract_if(.., |(task, _), _| is_cut(task)) {
            let kind = answer.step(CompletionStep::Failed(answer.seen.clone()));
            let task = self.tasks.get(&task).cloned().or(answer.task);
            changes.extend(task.map(|task| TaskChange { task, kind }));
        }
    }
}
