//! Finds unreachable nodes.

use std::collections::{BTreeSet, VecDeque};

use crate::check::build::CheckContext;
use crate::check::policies;
use crate::check::problem::Problems;
use crate::graph::is_end;
use crate::id::NodeName;

/// Reports nodes that cannot be reached from the entry. A barrier counts as reached if one of its
/// sources is reached; the other sources are reported themselves.
pub(super) fn check(ctx: &CheckContext<'_>, problems: &mut Problems<'_>) {
    // An invalid entry, edge or node is missing from the definition. The check would report the
    // nodes that are reachable only through it.
    let entry_known = ctx.def.entry.iter().any(|name| ctx.def.nodes.contains_key(name));
    if !entry_known || ctx.parsed.edges_are_incomplete || !ctx.parsed.invalid_names.is_empty() {
        return;
    }
    let reached = reachable_nodes(ctx);
    for name in ctx.def.nodes.keys().filter(|name| !reached.contains(name) && !is_end(name)) {
        problems.add_with_hint(
            format!("{}.nodes.{name}", ctx.path),
            format!("node `{name}` cannot be reached from the entry"),
            "add an edge to it, or list it in `goto` of another node",
        );
    }
}

fn reachable_nodes<'d>(ctx: &CheckContext<'d>) -> BTreeSet<&'d NodeName> {
    let mut reached = BTreeSet::new();
    let mut open: VecDeque<&NodeName> = ctx.def.entry.iter().collect();
    while let Some(name) = open.pop_front() {
        if reached.insert(name) {
            open.extend(successors(ctx, name));
        }
    }
    reached
}

/// Returns the nodes that can run directly after a node (the targets of its edges, branches and
/// `goto`), and the error handler that runs in its place.
fn successors<'d>(ctx: &CheckContext<'d>, node: &NodeName) -> Vec<&'d NodeName> {
    let edges = ctx.def.edges.iter().filter(|edge| edge.from.contains(node));
    let branches = ctx.def.branches.iter().filter(|branch| branch.from.contains(node));
    let cases = branches.flat_map(|branch| &branch.cases);
    let handler = policies::on_error(ctx.def, node);
    let goto = ctx.def.nodes.get(node).into_iter().flat_map(|def| &def.goto);
    let cases = cases.flat_map(|case| &case.to);
    edges.flat_map(|edge| &edge.to).chain(cases).chain(goto).chain(handler).collect()
}
