//! The server-sent events about tasks and checkpoints: `updates`, `tasks`, `checkpoints`, `debug`.

use serde_json::{Map, Value, json};
use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta, CheckpointSource};
use wattle_graph::event::{Event, InterruptRaised, TaskFailed, TaskFinished, TaskStarted};
use wattle_graph::id::{Namespace, TaskId};
use wattle_graph::plan::tasks_of;

use super::{RaisedInterrupt, V1};
use crate::agent_server::document::{Checkpoint as Address, INTERRUPT, Interrupt, START};
use crate::agent_server::failure::task_error;
use crate::agent_server::id::{namespace_text, task_uuid};
use crate::agent_server::message_stream::TaskRef;
use crate::agent_server::mode::Mode;
use crate::agent_server::time::format_time_with_micros;
use crate::agent_server::work::{begun, ended, input};

/// What a server-sent event shows of a checkpoint, or of the state before an input.
struct ShownCheckpoint<'a> {
    address: Address,
    parent: Option<Address>,
    values: Value,
    /// Number of the superstep that runs next; -1 before the first input of a graph.
    step: i64,
    /// Tasks that start from the state: id and name of each.
    tasks: Vec<(String, &'a str)>,
}

impl V1 {
    /// Adds the start of a task. Further attempts of the task add nothing.
    pub(super) fn task_started(&mut self, event: &Event, started: &TaskStarted) {
        let place = TaskRef {
            namespace: event.namespace.clone(),
            task: started.task.clone(),
            node: started.node.clone(),
            step: started.step,
        };
        if self.tasks.insert(started.task.clone(), place).is_some() || !self.shows_tasks() {
            return;
        }
        let mut data = begun(started, &self.input(&event.namespace, &started.task));
        data["metadata"] = json!(self.context.metadata);
        self.push_task(&event.namespace, event, "task", started.step + 1, data);
    }

    pub(super) fn task_finished(&mut self, event: &Event, finished: &TaskFinished) {
        let thread_info = &self.context.thread_info;
        if self.has(Mode::Updates) {
            let update =
                Map::from_iter([(finished.node.to_string(), thread_info.writes(&finished.writes))]);
            self.push(Mode::Updates, event, update.into());
        }
        if self.shows_tasks() {
            let result = self.context.thread_info.result(&finished.writes);
            let name = finished.node.as_str();
            let data = ended(&finished.task, name, None, &result, &[]);
            let step = self.step_of(&finished.task);
            self.push_task(&event.namespace, event, "task_result", step, data);
        }
    }

    /// Adds the end of a failed task. Adds nothing if the engine retries the task.
    pub(super) fn task_failed(&mut self, event: &Event, failed: &TaskFailed) {
        if failed.retry_in_ms.is_some() || !self.shows_tasks() {
            return;
        }
        let (name, error) = (failed.node.as_str(), Some(task_error(&failed.failure)));
        let data = ended(&failed.task, name, error, &json!({}), &[]);
        let step = self.step_of(&failed.task);
        self.push_task(&event.namespace, event, "task_result", step, data);
    }

    /// Adds an interrupt to the updates of its graph and of all parent graphs.
    pub(super) fn ask(&mut self, event: &Event, raised: &InterruptRaised) {
        let Some(shown) = self.note(event, raised).filter(|_| self.has(Mode::Updates)) else {
            return;
        };
        let levels = event.namespace.ancestors();
        let levels: Vec<Namespace> = levels.filter(|level| self.sees(level)).collect();
        for level in &levels {
            let data = json!({ INTERRUPT: [shown] });
            self.push_in(Mode::Updates, level, event, data);
        }
    }

    /// Records an interrupt. Returns `None` if the interrupt was recorded before.
    pub(super) fn note(&mut self, event: &Event, raised: &InterruptRaised) -> Option<Interrupt> {
        if self.interrupts.iter().any(|question| question.id == raised.interrupt) {
            return None;
        }
        let shown = Interrupt::from(raised);
        let mut tasks = vec![raised.task.clone()];
        tasks.extend(self.tasks_around(&event.namespace));
        self.interrupts.push(RaisedInterrupt {
            id: raised.interrupt.clone(),
            interrupt: shown.clone(),
            tasks,
            run: event.run.clone(),
            is_answered: false,
        });
        Some(shown)
    }

    /// Adds the tasks that wait for answers, each with its interrupts.
    pub(super) fn add_waiting_tasks(&mut self, event: &Event) {
        if !self.shows_tasks() {
            return;
        }
        let mut waiting: Vec<(TaskId, Vec<Interrupt>)> = Vec::new();
        for RaisedInterrupt { interrupt: shown, tasks, .. } in self.open() {
            for task in tasks {
                match waiting.iter_mut().find(|(known, _)| known == task) {
                    Some((_, open)) => open.push(shown.clone()),
                    None => waiting.push((task.clone(), vec![shown.clone()])),
                }
            }
        }
        for (task, open) in waiting {
            let Some(place) = self.tasks.get(&task).cloned() else { continue };
            let name = place.node.as_str();
            let data = ended(&task, name, None, &json!({}), &open);
            self.push_task(&place.namespace, event, "task_result", place.step + 1, data);
        }
    }

    /// Adds the state before the input that made a checkpoint. `parent` is the checkpoint before
    /// the input. Adds nothing if no input made the checkpoint.
    pub(super) fn checkpoint_before_input(
        &mut self,
        event: &Event,
        made: &Checkpoint,
        parent: Option<&Checkpoint>,
    ) {
        let (thread_info, meta) = (&self.context.thread_info, &made.meta);
        if meta.source != CheckpointSource::Input || !self.shows_checkpoints() {
            return;
        }
        let address = thread_info.input(&meta.namespace, meta.id);
        let task = address.checkpoint_id.clone().unwrap_or_default();
        let shown = ShownCheckpoint {
            address,
            parent: meta.parent.map(|id| thread_info.checkpoint(&meta.namespace, id)),
            values: parent.map_or_else(|| json!({}), |it| thread_info.values(&it.state())),
            step: i64::from(meta.step) - 1,
            tasks: vec![(task, START)],
        };
        self.push_checkpoint(event, meta, &shown);
    }

    /// Adds a checkpoint with the tasks that start from it.
    pub(super) fn checkpoint(&mut self, event: &Event, checkpoint: &Checkpoint) {
        if !self.shows_checkpoints() {
            return;
        }
        let (thread_info, meta) = (&self.context.thread_info, &checkpoint.meta);
        let tasks = tasks_of(&thread_info.origin, meta).into_iter();
        let shown = ShownCheckpoint {
            address: thread_info.checkpoint(&meta.namespace, meta.id),
            parent: thread_info.parent(&meta.namespace, meta.id, meta.source, meta.parent),
            values: thread_info.values(&checkpoint.state()),
            step: i64::from(meta.step),
            tasks: tasks.map(|(id, trigger)| (task_uuid(&id), trigger.node.as_str())).collect(),
        };
        self.push_checkpoint(event, meta, &shown);
    }

    fn push_checkpoint(
        &mut self,
        event: &Event,
        meta: &CheckpointMeta,
        shown: &ShownCheckpoint<'_>,
    ) {
        let data = self.checkpoint_json(meta, shown);
        if self.has(Mode::Checkpoints) {
            self.push(Mode::Checkpoints, event, data.clone());
        }
        if self.has(Mode::Debug) {
            let mut payload = data;
            payload["checkpoint"] = json!(shown.address);
            payload["parent_checkpoint"] = json!(shown.parent);
            let data = debug(event, shown.step, "checkpoint", payload);
            self.push(Mode::Debug, event, data);
        }
    }

    /// Returns the JSON of a checkpoint with its tasks.
    fn checkpoint_json(&self, meta: &CheckpointMeta, shown: &ShownCheckpoint<'_>) -> Value {
        let thread_info = &self.context.thread_info;
        let parents = meta.parent_graphs.iter().map(|(space, id)| {
            (namespace_text(space), Value::String(thread_info.checkpoint_id(*id)))
        });
        let parents = Value::Object(parents.collect());
        let tasks = shown.tasks.iter().map(|(id, name)| {
            json!({
                "id": id, "name": name, "interrupts": [], "state": null,
            })
        });
        let tasks: Vec<Value> = tasks.collect();
        let next: Vec<&str> = shown.tasks.iter().map(|(_, name)| *name).collect();
        json!({
            "config": self.config(&shown.address),
            "parent_config": shown.parent.as_ref().map(|parent| self.config(parent)),
            "values": shown.values,
            "metadata": { "source": meta.source, "step": shown.step, "parents": parents },
            "next": next,
            "tasks": tasks,
        })
    }

    fn config(&self, address: &Address) -> Value {
        let context = &self.context;
        json!({ "configurable": {
            "checkpoint_ns": address.checkpoint_ns,
            "run_id": context.run,
            "thread_id": context.thread_info.thread,
            "graph_id": context.graph_id,
            "assistant_id": context.assistant_id,
            "checkpoint_id": address.checkpoint_id,
        } })
    }

    pub(super) fn shows_checkpoints(&self) -> bool {
        self.has(Mode::Checkpoints) || self.has(Mode::Debug)
    }

    pub(super) fn shows_tasks(&self) -> bool {
        self.has(Mode::Tasks) || self.has(Mode::Debug)
    }

    fn push_task(
        &mut self,
        namespace: &Namespace,
        event: &Event,
        kind: &str,
        step: u32,
        data: Value,
    ) {
        if !self.sees(namespace) {
            return;
        }
        if self.has(Mode::Tasks) {
            self.push_in(Mode::Tasks, namespace, event, data.clone());
        }
        if self.has(Mode::Debug) {
            let data = debug(event, i64::from(step), kind, data);
            self.push_in(Mode::Debug, namespace, event, data);
        }
    }

    /// Returns the input of a task: the input of the send that started it, or the state.
    pub(super) fn input(&self, namespace: &Namespace, task: &TaskId) -> Value {
        input(&self.context.thread_info, &self.checkpoints, namespace, task)
    }

    fn step_of(&self, task: &TaskId) -> u32 {
        self.tasks.get(task).map_or(0, |place| place.step + 1)
    }

    /// Returns the task that runs a graph and the tasks that run its parent graphs, the innermost
    /// first.
    pub(super) fn tasks_around(&self, namespace: &Namespace) -> Vec<TaskId> {
        let levels = namespace.ancestors();
        levels.filter_map(|level| level.task().or_else(|| self.task_of_node(&level))).collect()
    }

    /// Returns the task that runs a subgraph which keeps its state between runs. The namespace of
    /// such a subgraph contains the name of the node and no task id.
    fn task_of_node(&self, namespace: &Namespace) -> Option<TaskId> {
        let around = namespace.parent()?;
        let here =
            |place: &&TaskRef| place.namespace == around && place.node.as_str() == namespace.node();
        self.tasks.values().filter(here).max_by_key(|place| place.step).map(|it| it.task.clone())
    }
}

fn debug(event: &Event, step: i64, kind: &str, payload: Value) -> Value {
    let timestamp = format_time_with_micros(event.at_ms);
    json!({ "step": step, "timestamp": timestamp, "type": kind, "payload": payload })
}
