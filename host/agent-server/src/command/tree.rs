//! The root graph and subgraphs of a run as a tree.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_graph::id::RunId;
use wattle_project::agent_server::v2::{StreamEvent, Subscription, V2};
use wattle_project::projection::{EventState, Projection as _};

use super::{Target, refused};
use crate::feed::{Ready, ThreadLog};
use crate::graphs;
use crate::run::StoredRun;
use crate::view;
use crate::wire::command::{Code, GetTree, Refusal};
use crate::wire::request::Invalid;

/// A graph of a run, with its status from the last lifecycle event.
struct Graph {
    name: Value,
    status: Value,
}

/// The graphs of a run by their namespaces, the root graph first.
type Graphs = BTreeMap<Vec<String>, Graph>;

/// Returns the tree of the graphs that have run so far in a run. The default is the newest run of
/// the thread.
pub(super) async fn get(target: &Target<'_>, params: GetTree) -> Result<Value, Refusal> {
    let record = target.has_run().await?;
    let no_run = |why: String| Refusal::new(Code::NoSuchRun, why);
    let run = match (&params.run_id, &record.run) {
        (Some(id), _) => {
            let known = StoredRun::find(target.server, &record, id).await;
            known.map_err(|error| no_run(error.detail().to_owned()))?.requested.run
        }
        (None, Some(run)) => run.clone(),
        (None, None) => {
            let why = format!("thread `{}` has no run: all of its runs were deleted", record.id);
            return Err(no_run(why));
        }
    };
    let thread_info = view::thread_info(target.server, &record);
    let name = graphs::graph_id(target.server.engine().catalog(), &record.app, &record.graph);
    let wanted = Subscription::new(&["lifecycle".to_owned()], Vec::new(), None);
    let wanted = wanted.map_err(|error| refused(&Invalid::from(error).into()))?;
    let graphs = read(target, &run, V2::new(wanted, thread_info, name)).await?;
    match branch(&graphs, &[]) {
        Some(tree) => Ok(json!({ "tree": tree })),
        None => Err(no_run(format!("run `{run}` has not started yet"))),
    }
}

/// Applies the events of the thread up to its current last one.
async fn read(target: &Target<'_>, run: &RunId, mut fold: V2) -> Result<Graphs, Refusal> {
    let store = &target.server.ports().store;
    let head = store.thread(target.thread).await.map_err(|error| refused(&error.into()))?;
    let last_seq = head.map_or(0, |head| head.last_seq);
    let tenant = target.caller.tenant.clone();
    let mut log = ThreadLog::new(target.server, tenant, target.thread, 0);
    let mut graphs = Graphs::new();
    let mut seq = 0;
    while seq < last_seq && log.ready().await == Ready::Event {
        let Some(event) = log.pop() else { break };
        seq = event.seq;
        let sent = fold.apply(&event, &EventState::default());
        for sent in sent.iter().filter(|_| event.run == *run) {
            note(&mut graphs, sent);
        }
    }
    Ok(graphs)
}

fn note(graphs: &mut Graphs, sent: &StreamEvent) {
    let (place, data) = (&sent.data["params"]["namespace"], &sent.data["params"]["data"]);
    let levels = place.as_array().into_iter().flatten();
    let place = levels.filter_map(|level| level.as_str().map(str::to_owned)).collect();
    let graph = Graph { name: data["graph_name"].clone(), status: data["event"].clone() };
    graphs.insert(place, graph);
}

fn branch(graphs: &Graphs, place: &[String]) -> Option<Value> {
    let Graph { name, status } = graphs.get(place)?;
    let is_child = |other: &Vec<String>| other.len() > place.len() && other.starts_with(place);
    // A namespace without a graph is not in the tree, so the children of a graph can be several
    // levels below it.
    let is_direct = |other: &Vec<String>| {
        let between = place.len() + 1..other.len();
        !between.into_iter().any(|depth| graphs.contains_key(&other[..depth]))
    };
    let children = graphs.keys().filter(|other| is_child(other) && is_direct(other));
    let children: Vec<Value> = children.filter_map(|child| branch(graphs, child)).collect();
    Some(json!({
        "namespace": place, "status": status, "graph_name": name, "children": children,
    }))
}
