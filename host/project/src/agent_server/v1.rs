//! Projection of a run as a stream of server-sent events in the modes that a client selected.
//!
//! The stream is a function of the log: the same log events, from the first event of the run, yield
//! the same server-sent events with the same ids.

mod frame;
mod named;
mod partial_message;
mod speech;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use wattle_graph::checkpoint::{Checkpoint, CheckpointSource};
use wattle_graph::event::{
    Checkpointed, Custom, Event, EventKind, Progress, Reopened, RunEnded, RunStatus,
};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CheckpointId, InterruptId, Namespace, RunId, TaskId};

pub use self::frame::{Frame, HEARTBEAT};

use self::partial_message::PartialMessage;
use crate::agent_server::document::{INTERRUPT, Interrupt};
use crate::agent_server::failure::error_of;
use crate::agent_server::id::EventId;
use crate::agent_server::message_stream::{MessageProjection, TaskRef, is_message_event};
use crate::agent_server::mode::Mode;
use crate::agent_server::thread_info::ThreadInfo;
use crate::projection::{EventState, NeededState, Projection, goes_on};

/// The run that a stream shows, with the names that its server-sent events contain.
#[derive(Clone, Debug)]
pub struct Context {
    /// Settings of the thread.
    pub thread_info: ThreadInfo,
    /// Id of the run.
    pub run: RunId,
    /// Name of the graph in the Agent Server API.
    pub graph_id: String,
    /// Id of the assistant.
    pub assistant_id: String,
    /// Metadata of the run, which the server-sent events of messages and tasks contain.
    pub metadata: Map<String, Value>,
}

/// An interrupt that was raised.
#[derive(Clone, Debug)]
struct RaisedInterrupt {
    id: InterruptId,
    interrupt: Interrupt,
    /// The task that raised the interrupt and the tasks of the parent graphs, the innermost first.
    tasks: Vec<TaskId>,
    /// The run in which the interrupt was raised.
    run: RunId,
    is_answered: bool,
}

/// The projection of one run to a run stream of the Agent Server API, in the first version of the
/// streaming protocol.
#[derive(Clone, Debug)]
pub struct V1 {
    modes: BTreeSet<Mode>,
    subgraphs: bool,
    context: Context,
    messages: MessageProjection,
    /// Content so far of incomplete messages.
    partial: BTreeMap<String, PartialMessage>,
    /// Newest checkpoint of each graph.
    checkpoints: BTreeMap<Namespace, Checkpoint>,
    /// Newest checkpoints of the graphs at the start of the run, from which subgraphs may continue.
    start_checkpoints: BTreeMap<Namespace, CheckpointId>,
    /// Tasks that have started.
    tasks: BTreeMap<TaskId, TaskRef>,
    /// Run ids of the model calls and tool calls for which the stream has sent a start event of
    /// mode `events` and no end event.
    calls: BTreeSet<String>,
    /// Interrupts in the order in which they were raised.
    interrupts: Vec<RaisedInterrupt>,
    has_started: bool,
    is_over: bool,
    out: Vec<Frame>,
}

impl V1 {
    /// Creates a stream before its first log event. `subgraphs` selects whether it has server-sent
    /// events of subgraphs.
    pub fn new(modes: BTreeSet<Mode>, subgraphs: bool, context: Context) -> Self {
        Self {
            modes,
            subgraphs,
            context,
            messages: MessageProjection::default(),
            partial: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
            start_checkpoints: BTreeMap::new(),
            tasks: BTreeMap::new(),
            calls: BTreeSet::new(),
            interrupts: Vec::new(),
            has_started: false,
            is_over: false,
            out: Vec::new(),
        }
    }

    /// Returns true if [`Projection::needs`] may request a state for some event of the run.
    pub fn needs_states(&self) -> bool {
        self.shows_state() || self.speaks()
    }

    /// Reads the events since the checkpoint of [`NeededState::Start`], so that interrupts which
    /// the run does not answer stay pending, and messages of earlier runs are not sent again.
    /// `started` is the event that needs the checkpoint; events after it are ignored.
    fn recall(&mut self, events: &[Event], started: &Event) {
        let goes_on = match &started.kind {
            EventKind::RunStarted(started) => goes_on(started.reason),
            _ => false,
        };
        let speaks = goes_on && self.speaks();
        for event in events.iter().filter(|event| event.seq < started.seq) {
            if speaks && self.sees(&event.namespace) {
                drop(self.messages.apply(event, None, &self.context.thread_info));
            }
            match &event.kind {
                EventKind::Checkpointed(made) => {
                    self.start_checkpoints
                        .retain(|nested, _| !nested.is_nested_in(&event.namespace));
                    self.start_checkpoints.insert(event.namespace.clone(), made.checkpoint);
                }
                EventKind::InterruptRaised(raised) => drop(self.note(event, raised)),
                EventKind::Answered(answered) => self.answer(&answered.interrupt, true),
                EventKind::Reopened(reopened) => self.reopen(&event.run, reopened),
                _ => {}
            }
        }
    }

    /// Adds the server-sent events of a log event of a graph that the stream shows.
    fn show(&mut self, event: &Event, state: &EventState) {
        let checkpoint = state.checkpoint.as_ref();
        if let (EventKind::TaskStarted(_), Some(stood)) = (&event.kind, checkpoint) {
            self.messages.learn_ids(&self.context.thread_info, stood);
            self.checkpoints.insert(event.namespace.clone(), stood.clone());
        }
        if self.speaks() {
            let spoken = self.messages.apply(event, checkpoint, &self.context.thread_info);
            for spoken in spoken {
                self.say(event, spoken);
            }
        }
        if self.has(Mode::Events) {
            self.name_event(event);
        }
        match &event.kind {
            EventKind::RunStarted(_) => self.start(event, checkpoint),
            EventKind::Checkpointed(made) => self.stand(event, made, state),
            EventKind::TaskStarted(started) => self.task_started(event, started),
            EventKind::TaskFinished(finished) => self.task_finished(event, finished),
            EventKind::TaskFailed(failed) => self.task_failed(event, failed),
            EventKind::Custom(custom) => self.custom(event, custom),
            EventKind::Progress(progress) => self.progress(event, progress),
            EventKind::RunEnded(ended) if event.namespace.is_root() => self.end(event, ended),
            _ => {}
        }
    }

    fn has(&self, mode: Mode) -> bool {
        self.modes.contains(&mode)
    }

    fn sees(&self, namespace: &Namespace) -> bool {
        self.subgraphs || namespace.is_root()
    }

    fn speaks(&self) -> bool {
        self.has(Mode::Messages) || self.has(Mode::MessagesTuple) || self.has(Mode::Events)
    }

    /// Returns true if the stream has server-sent events for each checkpoint.
    fn shows_state(&self) -> bool {
        [Mode::Values, Mode::Tasks, Mode::Checkpoints, Mode::Debug, Mode::Events]
            .iter()
            .any(|it| self.has(*it))
    }

    /// Sends the metadata of the run as the first server-sent event.
    fn begin(&mut self, event: &Event) {
        if !std::mem::replace(&mut self.has_started, true) {
            let data = json!({ "run_id": self.context.run, "attempt": 1 });
            self.out.push(Frame::new("metadata".to_owned(), data, event));
        }
    }

    fn start(&mut self, event: &Event, checkpoint: Option<&Checkpoint>) {
        let Some(checkpoint) = checkpoint.filter(|_| event.namespace.is_root()) else { return };
        self.messages.learn_ids(&self.context.thread_info, checkpoint);
        let EventKind::RunStarted(started) = &event.kind else { return };
        if !goes_on(started.reason) || self.checkpoints.contains_key(&event.namespace) {
            return;
        }
        self.checkpoints.insert(event.namespace.clone(), checkpoint.clone());
        self.values(event, checkpoint);
    }

    fn stand(&mut self, event: &Event, made: &Checkpointed, state: &EventState) {
        // The subgraphs of the previous superstep have ended.
        self.checkpoints.retain(|nested, _| !nested.is_nested_in(&event.namespace));
        self.start_checkpoints.remove(&event.namespace);
        let checkpoint = state.checkpoint.as_ref();
        let Some(checkpoint) = checkpoint.filter(|it| it.meta.id == made.checkpoint) else {
            // Later server-sent events must not contain the state before this checkpoint. In the
            // other modes, no server-sent event contains a state.
            if self.shows_state() {
                self.checkpoints.remove(&event.namespace);
            }
            return;
        };
        self.checkpoints.insert(event.namespace.clone(), checkpoint.clone());
        if !state.is_parent_unknown {
            self.checkpoint_before_input(event, checkpoint, state.parent.as_ref());
        }
        self.values(event, checkpoint);
        self.checkpoint(event, checkpoint);
    }

    fn values(&mut self, event: &Event, checkpoint: &Checkpoint) {
        if self.has(Mode::Values) {
            let values = self.context.thread_info.values(&checkpoint.state());
            self.push(Mode::Values, event, values);
        }
    }

    fn custom(&mut self, event: &Event, custom: &Custom) {
        if self.has(Mode::Custom) && !is_message_event(custom) {
            let data = match &custom.data {
                Value::Object(_) => custom.data.clone(),
                data => json!({ "name": custom.name, "data": data }),
            };
            self.push(Mode::Custom, event, data);
        }
    }

    fn progress(&mut self, event: &Event, progress: &Progress) {
        if self.has(Mode::Custom) {
            let Progress { node, message, fraction, .. } = progress;
            let data = json!({
                "name": "progress", "node": node, "message": message, "fraction": fraction,
            });
            self.push(Mode::Custom, event, data);
        }
    }

    fn end(&mut self, event: &Event, ended: &RunEnded) {
        self.is_over = true;
        match ended.status {
            RunStatus::Failed => {
                let unknown = || Failure::new(code::INTERNAL, "the run failed");
                let failure = ended.failure.clone().unwrap_or_else(unknown);
                self.out.push(Frame::new("error".to_owned(), error_of(&failure), event));
            }
            RunStatus::Interrupted if !ended.drained => self.wait(event),
            _ => {}
        }
    }

    /// Ends the stream of an interrupted run. A run without pending interrupts stopped at a
    /// breakpoint, and the stream has already sent its state.
    fn wait(&mut self, event: &Event) {
        let open: Vec<Interrupt> = self.open().map(|question| question.interrupt.clone()).collect();
        if open.is_empty() {
            if self.has(Mode::Updates) {
                self.push(Mode::Updates, event, json!({ INTERRUPT: [] }));
            }
        } else if self.has(Mode::Values) {
            let state = self.checkpoints.get(&event.namespace);
            let values = state.map(|state| self.context.thread_info.values(&state.state()));
            let mut values = values.unwrap_or_else(|| json!({}));
            if let Value::Object(values) = &mut values {
                values.insert(INTERRUPT.to_owned(), json!(open));
            }
            self.push(Mode::Values, event, values);
        }
        self.add_waiting_tasks(event);
    }

    /// Returns the pending interrupts.
    fn open(&self) -> impl Iterator<Item = &RaisedInterrupt> {
        self.interrupts.iter().filter(|question| !question.is_answered)
    }

    fn answer(&mut self, id: &InterruptId, is_answered: bool) {
        for question in self.interrupts.iter_mut().filter(|question| question.id == *id) {
            question.is_answered = is_answered;
        }
    }

    /// Marks the reopened interrupts as pending, and removes the other interrupts that this run
    /// raised in the same tasks.
    fn reopen(&mut self, run: &RunId, reopened: &Reopened) {
        let is_again = |question: &RaisedInterrupt| reopened.interrupts.contains(&question.id);
        let again = self.interrupts.iter().filter(|question| is_again(question));
        let again: BTreeSet<TaskId> = again.flat_map(|question| question.tasks.clone()).collect();
        self.interrupts.retain(|question| {
            is_again(question)
                || question.run != *run
                || !question.tasks.iter().any(|task| again.contains(task))
        });
        reopened.interrupts.iter().for_each(|id| self.answer(id, false));
    }

    /// Adds a server-sent event of the graph that a log event belongs to.
    fn push(&mut self, mode: Mode, event: &Event, data: Value) {
        self.push_in(mode, &event.namespace, event, data);
    }

    /// Adds a server-sent event with the given name. [`Projection::apply`] sets its id.
    fn push_named(&mut self, name: &str, data: Value) {
        let id = EventId { number: 0, at_ms: 0 };
        self.out.push(Frame { event: name.to_owned(), data, id });
    }

    fn push_in(&mut self, mode: Mode, namespace: &Namespace, event: &Event, data: Value) {
        let name = frame::name(mode, namespace);
        self.out.push(Frame::new(name, data, event));
    }
}

impl Projection for V1 {
    type Output = Vec<Frame>;

    fn needs(&self, event: &Event) -> Option<NeededState> {
        if self.is_over || event.run != self.context.run || !self.sees(&event.namespace) {
            return None;
        }
        match &event.kind {
            EventKind::RunStarted(started) => {
                let is_first = !self.has_started && event.namespace.is_root();
                let goes_on = goes_on(started.reason);
                let shows = self.shows_state() || self.has(Mode::Updates);
                // The state at the start contains the messages that are not new.
                (is_first && (self.speaks() || (goes_on && shows))).then_some(NeededState::Start)
            }
            EventKind::Checkpointed(made) => {
                let names = self.speaks() && self.messages.waits_for(&event.namespace);
                let is_first = self.speaks() && !self.checkpoints.contains_key(&event.namespace);
                let is_input = made.source == CheckpointSource::Input && self.shows_checkpoints();
                (self.shows_state() || names || is_first).then(|| {
                    let namespace = event.namespace.clone();
                    if is_input {
                        NeededState::Input(namespace, made.checkpoint)
                    } else {
                        NeededState::Checkpoint(namespace, made.checkpoint)
                    }
                })
            }
            EventKind::TaskStarted(_) if self.shows_tasks() || self.speaks() => {
                let stood = self.start_checkpoints.get(&event.namespace)?;
                let is_known = self.checkpoints.contains_key(&event.namespace);
                (!is_known).then(|| NeededState::Checkpoint(event.namespace.clone(), *stood))
            }
            _ => None,
        }
    }

    fn apply(&mut self, event: &Event, state: &EventState) -> Vec<Frame> {
        if self.is_over || event.run != self.context.run {
            return Vec::new();
        }
        self.recall(&state.before, event);
        self.begin(event);
        match &event.kind {
            // Clients see an interrupt of a subgraph as an interrupt of the run.
            EventKind::InterruptRaised(raised) if raised.answered => drop(self.note(event, raised)),
            EventKind::InterruptRaised(raised) => self.ask(event, raised),
            EventKind::Answered(answered) => self.answer(&answered.interrupt, true),
            _ if self.sees(&event.namespace) => self.show(event, state),
            _ => {}
        }
        let mut frames = std::mem::take(&mut self.out);
        for (index, frame) in frames.iter_mut().enumerate() {
            frame.id = EventId::new(event, index);
        }
        frames
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

#[cfg(test)]
mod tests;
