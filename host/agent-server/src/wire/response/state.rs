//! The JSON body of a thread's state at a checkpoint.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use wattle_graph::id::Namespace;
use wattle_run::time_travel::{StateView, TaskView};

use wattle_project::agent_server::document::{Checkpoint, Interrupt, START};
use wattle_project::agent_server::failure::task_error;
use wattle_project::agent_server::id::{namespace_text, task_uuid};
use wattle_project::agent_server::thread_info::ThreadInfo;
use wattle_project::agent_server::time::format_time_with_micros;

use super::interrupt::interrupt;

/// First element of the `path` of a task that an edge started.
const PULL_PATH: &str = "__pregel_pull";

/// The state of a thread, or of one of its subgraphs, at a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ThreadState {
    /// Channel values.
    pub values: Value,
    /// Nodes that run next.
    pub next: Vec<String>,
    /// Tasks that run next, with their results so far.
    pub tasks: Vec<Task>,
    /// Metadata of the checkpoint and of its run.
    pub metadata: Map<String, Value>,
    /// Time at which the checkpoint was made.
    #[schema(format = DateTime)]
    pub created_at: Option<String>,
    /// Address of the checkpoint.
    pub checkpoint: Checkpoint,
    /// Address of the parent checkpoint.
    pub parent_checkpoint: Option<Checkpoint>,
    /// Interrupts that are pending, or that were pending when the thread last stopped at this
    /// checkpoint.
    pub interrupts: Vec<Interrupt>,
    /// Id of the checkpoint.
    pub checkpoint_id: Option<String>,
    /// Id of the parent checkpoint.
    pub parent_checkpoint_id: Option<String>,
}

/// A task that starts from a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Task {
    /// Id of the task.
    pub id: String,
    /// Name of the node.
    pub name: String,
    /// Cause and node of the task, as in LangGraph: `__pregel_pull` and the name of the node.
    pub path: Vec<Value>,
    /// Failure of the task: the text of the node's author.
    pub error: Option<String>,
    /// Interrupts of the task that are pending, or that were pending when the thread last stopped
    /// at this checkpoint.
    pub interrupts: Vec<Interrupt>,
    /// Address of the states of the subgraph that runs as this task.
    pub checkpoint: Option<Checkpoint>,
    /// State of the subgraph, if requested.
    #[schema(no_recursion)]
    pub state: Option<Box<ThreadState>>,
    /// Writes of the task, if it has finished.
    pub result: Option<Value>,
}

impl ThreadState {
    /// Describes the state at a checkpoint. Adds `graph_metadata` to the metadata of the
    /// checkpoint.
    pub fn new(
        thread_info: &ThreadInfo,
        view: &StateView,
        graph_metadata: &Map<String, Value>,
    ) -> Self {
        let mut checkpoint = thread_info.checkpoint(&view.namespace, view.checkpoint);
        if !view.namespace.is_root() {
            let above = view.parents.iter().map(|(space, id)| (space, *id));
            let map = above.chain([(&view.namespace, view.checkpoint)]);
            let map = map.map(|(space, id)| {
                (namespace_text(space), Value::String(thread_info.checkpoint_id(id)))
            });
            checkpoint.checkpoint_map = Some(Value::Object(map.collect()));
        }
        let parent = thread_info.parent(&view.namespace, view.checkpoint, view.source, view.parent);
        Self {
            values: thread_info.values(&view.values),
            next: view.next.iter().map(ToString::to_string).collect(),
            tasks: view.tasks.iter().map(|task| Task::new(thread_info, task)).collect(),
            metadata: metadata(thread_info, view, graph_metadata),
            created_at: Some(format_time_with_micros(view.at_ms)),
            checkpoint_id: checkpoint.checkpoint_id.clone(),
            parent_checkpoint_id: parent.as_ref().and_then(|parent| parent.checkpoint_id.clone()),
            checkpoint,
            parent_checkpoint: parent,
            interrupts: view.asked.iter().map(interrupt).collect(),
        }
    }

    /// Describes the state before the input that made a checkpoint. The input is pending in this
    /// state. `before` contains the values before the input. The store has no checkpoint for this
    /// state.
    pub fn before_input(
        thread_info: &ThreadInfo,
        made: &StateView,
        before: &Value,
        graph_metadata: &Map<String, Value>,
    ) -> Self {
        let checkpoint = thread_info.input(&made.namespace, made.checkpoint);
        let parent = made.parent.map(|id| thread_info.checkpoint(&made.namespace, id));
        let mut metadata = metadata(thread_info, made, graph_metadata);
        metadata.insert("step".to_owned(), (i64::from(made.step) - 1).into());
        let task = Task {
            id: checkpoint.checkpoint_id.clone().unwrap_or_default(),
            name: START.to_owned(),
            path: vec![PULL_PATH.into(), START.into()],
            error: None,
            interrupts: Vec::new(),
            checkpoint: None,
            state: None,
            result: None,
        };
        Self {
            values: thread_info.values(before),
            next: vec![START.to_owned()],
            tasks: vec![task],
            metadata,
            created_at: Some(format_time_with_micros(made.at_ms)),
            checkpoint_id: checkpoint.checkpoint_id.clone(),
            parent_checkpoint_id: parent.as_ref().and_then(|parent| parent.checkpoint_id.clone()),
            checkpoint,
            parent_checkpoint: parent,
            interrupts: Vec::new(),
        }
    }

    /// Describes the state of a thread that has not run yet.
    pub fn empty(thread_info: &ThreadInfo) -> Self {
        Self {
            values: json!({}),
            next: Vec::new(),
            tasks: Vec::new(),
            metadata: Map::new(),
            created_at: None,
            checkpoint: thread_info.place(&Namespace::root()),
            parent_checkpoint: None,
            interrupts: Vec::new(),
            checkpoint_id: None,
            parent_checkpoint_id: None,
        }
    }
}

impl Task {
    /// Describes a task, without the state of its subgraph.
    pub fn new(thread_info: &ThreadInfo, view: &TaskView) -> Self {
        Self {
            id: task_uuid(&view.id),
            name: view.node.to_string(),
            path: vec![PULL_PATH.into(), view.node.as_str().into()],
            error: view.failure.as_ref().map(task_error),
            interrupts: view.asked.iter().map(interrupt).collect(),
            checkpoint: view
                .namespace
                .as_ref()
                .map(|namespace| subgraph_address(thread_info, namespace, view)),
            state: None,
            result: view.writes.as_deref().map(|writes| thread_info.result(writes)),
        }
    }
}

/// Returns the address of the states of a task's subgraph. A subgraph that keeps its state has the
/// same namespace in all tasks, so its address also needs the id of the checkpoint.
fn subgraph_address(
    thread_info: &ThreadInfo,
    namespace: &Namespace,
    view: &TaskView,
) -> Checkpoint {
    match view.child.filter(|_| namespace.task().is_none()) {
        Some(child) => thread_info.checkpoint(namespace, child),
        None => thread_info.place(namespace),
    }
}

fn metadata(
    thread_info: &ThreadInfo,
    view: &StateView,
    graph_metadata: &Map<String, Value>,
) -> Map<String, Value> {
    let parents = view
        .parents
        .iter()
        .map(|(space, id)| (namespace_text(space), Value::String(thread_info.checkpoint_id(*id))));
    let mut metadata = graph_metadata.clone();
    metadata.extend(view.metadata.clone());
    metadata.extend([
        ("run_id".to_owned(), view.run.as_str().into()),
        ("thread_id".to_owned(), view.thread.as_str().into()),
        ("source".to_owned(), json!(view.source)),
        ("step".to_owned(), view.step.into()),
        ("parents".to_owned(), Value::Object(parents.collect())),
    ]);
    metadata
}
