//! `wattle thread drain`, `wattle graph clear-cache`, and run options.

use wattle_api::document::options::RunOptionsDocument;
use wattle_api::document::run::RunDocument;
use wattle_api::document::thread::ThreadDocument;
use wattle_api::native::cache::ClearedCacheDocument;
use wattle_graph::definition::NodeSet;
use wattle_graph::id::NodeName;
use wattle_run::ports::store::Durability;

use crate::args::{DurabilityArg, RunOptionArgs};
use crate::client::{Client, segment};
use crate::command::words;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::Output;

/// Converts arguments to the run options of the API.
pub(super) fn options(args: RunOptionArgs) -> Result<RunOptionsDocument, Error> {
    let durability = args.durability.map(|durability| match durability {
        DurabilityArg::Commit => Durability::Commit,
        DurabilityArg::Sync => Durability::Sync,
        DurabilityArg::Async => Durability::Async,
        DurabilityArg::Exit => Durability::Exit,
    });
    Ok(RunOptionsDocument {
        recursion_limit: args.recursion_limit,
        max_concurrency: args.max_concurrency,
        interrupt_before: nodes(&args.interrupt_before)?,
        interrupt_after: nodes(&args.interrupt_after)?,
        durability,
    })
}

fn nodes(names: &[String]) -> Result<Option<NodeSet>, Error> {
    if names.is_empty() {
        return Ok(None);
    }
    if names.iter().any(|name| name == "*") {
        return Ok(Some(NodeSet::All));
    }
    let named = names.iter().map(|name| {
        NodeName::new(name).map_err(|error| Error::Usage {
            message: format!("`{name}` is not the name of a node: {error}"),
            hint: "name nodes of the graph, or `*` for all".into(),
        })
    });
    Ok(Some(NodeSet::Named(named.collect::<Result<_, _>>()?)))
}

/// Drains the run of a thread, and waits until it has stopped.
pub(super) async fn drain(client: &Client, thread: &str, output: Output) -> Result<Exit, Error> {
    let path = format!("/api/v1/threads/{}", segment(thread));
    let view: ThreadDocument = client.get(&path).await?;
    let Some(run) = view.summary.run else {
        return Err(Error::NotFound {
            message: format!("thread `{thread}` has no run"),
            hint: "list threads with `wattle thread list`".into(),
        });
    };
    let run = segment(&run);
    client.post_empty(&format!("{path}/runs/{run}/drain"), &serde_json::json!({})).await?;
    let ended: RunDocument = client.get(&format!("/api/v1/runs/{run}/wait")).await?;
    output.data(&ended, |ended| {
        let status = words::word(&ended.status);
        format!("run {} is {status}; continue with `wattle thread resume {thread}`", ended.run)
    });
    Ok(Exit::Ok)
}

/// Clears the node cache of `app`, `app/graph` or `app/graph/node`.
pub(super) async fn clear_cache(
    client: &Client,
    target: &str,
    output: Output,
) -> Result<Exit, Error> {
    let mut parts = target.splitn(3, '/');
    let app = segment(parts.next().unwrap_or_default());
    let query: Vec<String> = ["graph", "node"]
        .into_iter()
        .zip(parts)
        .map(|(key, part)| format!("{key}={}", segment(part)))
        .collect();
    let path = format!("/api/v1/apps/{app}/cache?{}", query.join("&"));
    let cleared: ClearedCacheDocument = client.delete_for(&path).await?;
    output.data(&cleared, |cleared| format!("cleared {} entries", cleared.cleared));
    Ok(Exit::Ok)
}
