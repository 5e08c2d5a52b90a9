//! Run options of `wattle run` and `wattle thread resume`.

use wattle_api::document::options::RunOptionsDocument;
use wattle_graph::definition::NodeSet;
use wattle_graph::id::NodeName;
use wattle_run::ports::store::Durability;

use crate::args::{DurabilityArg, RunOptionArgs};
use crate::error::Error;

/// Converts arguments to the run options of the API.
pub(super) fn to_document(args: RunOptionArgs) -> Result<RunOptionsDocument, Error> {
    let durability = args.durability.map(|durability| match durability {
        DurabilityArg::Commit => Durability::Commit,
        DurabilityArg::Sync => Durability::Sync,
        DurabilityArg::Async => Durability::Async,
        DurabilityArg::Exit => Durability::Exit,
    });
    Ok(RunOptionsDocument {
        recursion_limit: args.recursion_limit,
        max_concurrency: args.max_concurrency,
        interrupt_before: parse_nodes(&args.interrupt_before)?,
        interrupt_after: parse_nodes(&args.interrupt_after)?,
        durability,
    })
}

fn parse_nodes(names: &[String]) -> Result<Option<NodeSet>, Error> {
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
