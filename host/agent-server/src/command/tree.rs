//! The root graph and subgraphs of a run as a tree.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_graph::id::RunId;
use wattle_project::agent_server::v2::{StreamEvent, Subscription, V2};
use wattle_project::projection::{EventState, Projection as _};

use super::{CommandContext, to_command_error};
use crate::graphs;
use crate::run::StoredRun;
use crate::subscriptions::{ThreadTail, ThreadTailItem};
use crate::view;
use crate::wire::command::{CommandError, ErrorCode, GetTree};
use crate::wire::request::RequestError;

/// A graph of a run, with its status from the last lifecycle event.
struct Graph {
    name: Value,
    status: Value,
}

/// The graphs of a run by their namespaces, the root graph first.
type Graphs = BTreeMap<Vec<String>, Graph>;

/// Returns the tree of the graphs that have run so far in a run. The default is the newest run of
/// the thread.
pub(super) async fn get(
    context: &CommandContext<'_>,
    params: GetTree,
) -> Result<Value, CommandError> {
    let record = context.require_started_thread().await?;
    let no_run = |why: String| CommandError::new(ErrorCode::NoSuchRun, why);
    let run = match (&params.run_id, &record.run) {
        (Some(id), _) => {
            let known = StoredRun::find(context.engine(), &record, id).await;
            known.map_err(|error| no_run(error.detail().to_owned()))?.requested.run
        }
        (None, Some(run)) => run.clone(),
        (None, None) => {
            let why = format!("thread `{}` has no run: all of its runs were deleted", record.id);
            return Err(no_run(why));
        }
    };
    let thread_info = view::thread_info(context.engine(), &record);
    let name = graphs::graph_id(context.engine().catalog(), &record.app, &record.graph);
    let subscription = Subscription::new(&["lifecycle".to_owned()], Vec::new(), None);
    let subscription =
        subscription.map_err(|error| to_command_error(&RequestError::from(error).into()))?;
    let graphs = fold_graphs(context, &run, V2::new(subscription, thread_info, name)).await?;
    match subtree(&graphs, &[]) {
        Some(tree) => Ok(json!({ "tree": tree })),
        None => Err(no_run(format!("run `{run}` has not started yet"))),
    }
}

/// Applies all stored events of the thread in order. Returns the graphs of the run.
async fn fold_graphs(
    context: &CommandContext<'_>,
    run: &RunId,
    mut encoder: V2,
) -> Result<Graphs, CommandError> {
    let store = &context.engine().ports().store;
    let head =
        store.thread(context.thread).await.map_err(|error| to_command_error(&error.into()))?;
    let last_seq = head.map_or(0, |head| head.last_seq);
    let tenant = context.caller.tenant.clone();
    let mut tail =
        ThreadTail::new(context.engine(), context.creator.stopping(), tenant, context.thread, 0);
    let mut graphs = Graphs::new();
    let mut seq = 0;
    while seq < last_seq && tail.next().await == ThreadTailItem::Event {
        let Some(event) = tail.pop() else { break };
        seq = event.seq;
        let encoded = encoder.apply(&event, &EventState::default());
        if event.run == *run {
            for event in &encoded {
                record_graph(&mut graphs, event);
            }
        }
    }
    Ok(graphs)
}

fn record_graph(graphs: &mut Graphs, event: &StreamEvent) {
    let (namespace, data) = (&event.data["params"]["namespace"], &event.data["params"]["data"]);
    let levels = namespace.as_array().into_iter().flatten();
    let namespace = levels.filter_map(|level| level.as_str().map(str::to_owned)).collect();
    let graph = Graph { name: data["graph_name"].clone(), status: data["event"].clone() };
    graphs.insert(namespace, graph);
}

fn subtree(graphs: &Graphs, namespace: &[String]) -> Option<Value> {
    let Graph { name, status } = graphs.get(namespace)?;
    let is_child =
        |other: &Vec<String>| other.len() > namespace.len() && other.starts_with(namespace);
    // A namespace without a graph is not in the tree, so the namespace of a child can be several
    // levels below the namespace of its parent.
    let is_direct = |other: &Vec<String>| {
        let between = namespace.len() + 1..other.len();
        !between.into_iter().any(|depth| graphs.contains_key(&other[..depth]))
    };
    let children = graphs.keys().filter(|other| is_child(other) && is_direct(other));
    let children: Vec<Value> = children.filter_map(|child| subtree(graphs, child)).collect();
    Some(json!({
        "namespace": namespace, "status": status, "graph_name": name, "children": children,
    }))
}
