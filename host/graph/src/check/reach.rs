//! Finds nodes that nothing leads to.

use std::collections::{BTreeSet, VecDeque};

use crate::check::build::Site;
use crate::check::policies;
use crate::check::problem::Problems;
use crate::graph::is_end;
use crate::id::NodeName;

/// Reports nodes that no way from the entry leads to. A barrier counts as reached if one of its
/// sources is: the others are then problems of their own.
pub(super) fn check(site: &Site<'_>, problems: &mut Problems<'_>) {
    // Without an entry or with parts that could not be read, everything would look unreachable.
    let entry_known = site.def.entry.iter().any(|name| site.def.nodes.contains_key(name));
    if !entry_known || site.draft.ways_unread || !site.draft.unread.is_empty() {
        return;
    }
    let reached = reached(site);
    for name in site.def.nodes.keys().filter(|name| !reached.contains(name) && !is_end(name)) {
        problems.add_with_hint(
            format!("{}.nodes.{name}", site.path),
            format!("no way from the entry leads to node `{name}`"),
            "add an edge to it, or name it in `goto` of the node that runs it",
        );
    }
}

fn reached<'d>(site: &Site<'d>) -> BTreeSet<&'d NodeName> {
    let mut reached = BTreeSet::new();
    let mut open: VecDeque<&NodeName> = site.def.entry.iter().collect();
    while let Some(name) = open.pop_front() {
        if reached.insert(name) {
            open.extend(targets(site, name));
        }
    }
    reached
}

/// Everything that may run right after a node or in its place.
fn targets<'d>(site: &Site<'d>, node: &NodeName) -> Vec<&'d NodeName> {
    let edges = site.def.edges.iter().filter(|edge| edge.from.contains(node));
    let branches = site.def.branches.iter().filter(|branch| branch.from.contains(node));
    let cases = branches.flat_map(|branch| &branch.cases);
    let handler = policies::on_error(site.def, node);
    let goto = site.def.nodes.get(node).into_iter().flat_map(|def| &def.goto);
    let cases = cases.flat_map(|case| &case.to);
    edges.flat_map(|edge| &edge.to).chain(cases).chain(goto).chain(handler).collect()
}
