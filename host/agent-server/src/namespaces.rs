//! Namespaces of subgraphs in requests.
//!
//! Clients build the namespace of a subgraph from the name and the id of its task, as in
//! `node:task`. If a call of the task started the subgraph, the namespace also contains the path of
//! the call, as in `node:task.1`. Clients may omit the path of the call.

use wattle_graph::id::{Namespace, TaskId};
use wattle_project::agent_server::id::namespace_of;
use wattle_run::engine::Engine;
use wattle_run::limit::GRAPH_DEPTH;
use wattle_run::ports::store::ThreadRecord;
use wattle_run::time_travel::HistoryQuery;

use crate::error::ApiError;

/// Maximum number of states of a parent graph that are searched for a task. The limit equals the
/// maximum number of states in a page of the history.
const MAX_SEARCHED_STATES: usize = 1_000;

/// Number of states in one read. All states of a read are in memory.
const READ_BATCH: usize = 16;

/// Returns the namespace that a request names. A level without the path of a call selects a
/// subgraph of the task of this level. If the task started several subgraphs, the level selects the
/// interrupted subgraph, or else the newest subgraph. A namespace that is not found is returned
/// unchanged.
///
/// # Errors
///
/// The errors of the store.
pub(crate) async fn find(
    engine: &Engine,
    record: &ThreadRecord,
    text: &str,
) -> Result<Namespace, ApiError> {
    let named = namespace_of(text);
    // The engine rejects a deeper namespace. This function does not traverse its levels, because a
    // request can name any number of levels.
    if record.is_unbound() || named.depth() > GRAPH_DEPTH {
        return Ok(named);
    }
    let may_lack_call = named.ancestors().any(|level| task_without_call(&level).is_some());
    if !may_lack_call || exists(engine, record, &named).await? {
        return Ok(named);
    }
    let mut found = Namespace::root();
    for level in named.path() {
        let wanted = level.rebased(&found, None);
        found = match task_without_call(&level) {
            Some(task) if !exists(engine, record, &wanted).await? => {
                match subgraph_of(engine, record, &found, &task).await? {
                    Some(started) => started,
                    None => return Ok(named),
                }
            }
            _ => wanted,
        };
    }
    Ok(found)
}

/// Returns the task of the innermost level, if the level has no path of a call.
fn task_without_call(namespace: &Namespace) -> Option<TaskId> {
    namespace.task().filter(|_| namespace.call_path().is_none())
}

/// Returns whether a subgraph has made a checkpoint.
async fn exists(
    engine: &Engine,
    record: &ThreadRecord,
    namespace: &Namespace,
) -> Result<bool, ApiError> {
    Ok(engine.ports().store.checkpoint(&record.id, namespace, None).await?.is_some())
}

/// Searches the newest states of the parent graph for a task. Returns the namespace of the subgraph
/// of the task.
async fn subgraph_of(
    engine: &Engine,
    record: &ThreadRecord,
    parent: &Namespace,
    task: &TaskId,
) -> Result<Option<Namespace>, ApiError> {
    let namespace = parent.clone();
    let mut query = HistoryQuery { namespace, limit: Some(READ_BATCH), ..HistoryQuery::default() };
    let mut searched = 0;
    while searched < MAX_SEARCHED_STATES {
        let page = engine.history(&record.id, query.clone()).await?;
        let mut tasks = page.items.iter().flat_map(|view| &view.tasks);
        if let Some(found) = tasks.find(|found| found.id == *task) {
            return Ok(found.namespace.clone());
        }
        searched += page.items.len();
        match page.items.last() {
            Some(oldest) if !page.is_last => query.before = Some(oldest.checkpoint),
            _ => break,
        }
    }
    Ok(None)
}
