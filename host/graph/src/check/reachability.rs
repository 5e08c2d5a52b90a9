//! Finds unreachable nodes, and cycles that no run leaves.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::check::context::{Age, CheckContext};
use crate::check::policies;
use crate::check::problem::Problems;
use crate::graph::is_end;
use crate::id::NodeName;

/// Maximum number of nodes that the problem about a cycle names.
const NAMED_NODES: usize = 10;

/// Reports nodes that cannot be reached from the entry. The targets of a barrier count as reached
/// once one of its source nodes is reached: an unreachable source node is reported separately.
pub(super) fn check(ctx: &CheckContext<'_>, problems: &mut Problems<'_>) {
    // An invalid entry, edge or node is missing from the definition. This check would then report
    // the nodes that are reachable only through the missing part.
    let entry_known = ctx.def.entry.iter().any(|name| ctx.def.nodes.contains_key(name));
    if !entry_known || ctx.parsed.edges_are_incomplete || ctx.parsed.has_invalid_names() {
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

/// Reports cycles of unconditional edges, whose nodes run again and again until the recursion limit
/// fails the run.
///
/// A node that declares `goto` or has an error handler may leave the cycle. A run also stops at a
/// breakpoint, and at a node that may pause the run. A subgraph may end by an outcome for its
/// parent.
pub(super) fn check_cycles(ctx: &CheckContext<'_>, problems: &mut Problems<'_>) {
    if ctx.age == Age::Archived || ctx.is_subgraph {
        return;
    }
    let ways = unconditional_ways(ctx);
    let onward = |node: &NodeName| ways.get(node).map(Vec::as_slice).unwrap_or_default().iter();
    let mut seen: BTreeSet<&NodeName> = BTreeSet::new();
    for start in ways.keys().copied() {
        if !seen.insert(start) {
            continue;
        }
        // A path of nodes, each with the edges that were not followed yet.
        let mut path = vec![(start, onward(start))];
        while let Some((_, left)) = path.last_mut() {
            let Some((edge, target)) = left.next() else {
                path.pop();
                continue;
            };
            if seen.insert(*target) {
                path.push((*target, onward(target)));
            } else if let Some(begin) = path.iter().position(|(node, _)| node == target) {
                let cycle: Vec<&NodeName> = path[begin..].iter().map(|(node, _)| *node).collect();
                report_cycle(&format!("{}.edges[{edge}]", ctx.path), &cycle, problems);
                if problems.is_full() {
                    return;
                }
            }
        }
    }
}

/// Returns the targets of the unconditional edges of each node, with the indexes of the edges.
/// Leaves out barriers, which wait for other nodes, and nodes whose edges a run may not follow.
fn unconditional_ways<'d>(
    ctx: &CheckContext<'d>,
) -> BTreeMap<&'d NodeName, Vec<(usize, &'d NodeName)>> {
    let def = ctx.def;
    let may_stop = |name: &NodeName| {
        def.nodes.get(name).is_none_or(|node| !node.goto.is_empty())
            || ctx.declarations.get(name).is_none_or(|declared| declared.may_pause())
            || policies::on_error(def, name).is_some()
            || def.interrupt_before.contains(name)
            || def.interrupt_after.contains(name)
    };
    let mut ways: BTreeMap<&NodeName, Vec<(usize, &NodeName)>> = BTreeMap::new();
    for (index, edge) in def.edges.iter().enumerate() {
        let Some((from, others)) = edge.from.split_first() else { continue };
        if others.iter().all(|other| other == from) && !may_stop(from) {
            ways.entry(from).or_default().extend(edge.to.iter().map(|target| (index, target)));
        }
    }
    ways
}

fn report_cycle(path: &str, cycle: &[&NodeName], problems: &mut Problems<'_>) {
    let named = cycle.iter().take(NAMED_NODES).map(|node| format!("`{node}`"));
    let more = (cycle.len() > NAMED_NODES).then(|| "...".to_owned());
    let again = cycle.first().map(|node| format!("`{node}`"));
    let nodes: Vec<String> = named.chain(more).chain(again).collect();
    problems.add_with_hint(
        path,
        format!(
            "the cycle {} has unconditional edges only, so a run that enters it does not end",
            nodes.join(" -> ")
        ),
        "use a branch in place of one of the edges, or list in `goto` of a node where it may go \
         instead",
    );
}
