//! Checks subgraphs: graphs that run as nodes of other graphs of the document.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::check::context::CheckContext;
use crate::check::declaration::Declaration;
use crate::check::parse::{ParsedDocument, ParsedGraph};
use crate::check::plugin_catalog::NodeSchema;
use crate::check::problem::Problems;
use crate::check::schemas;
use crate::definition::{BuiltInReducer, ChannelDef, GraphDef, NodeDef, ReducerDef};
use crate::id::{ChannelName, Digest, GraphName};

/// The parts of a checked graph that the checks of its parent graphs need.
pub(super) struct CheckedGraph<'d> {
    pub(super) parsed: &'d ParsedGraph,
    /// Channels that the nodes of the graph declare as written.
    pub(super) writes: BTreeSet<ChannelName>,
    /// See [`CheckContext::bad_schemas`].
    pub(super) bad_schemas: BTreeSet<ChannelName>,
    pub(super) digest: Digest,
}

/// The graphs that are already checked, by name.
pub(super) type CheckedGraphs<'d> = BTreeMap<&'d GraphName, CheckedGraph<'d>>;

/// What the subgraphs of one graph declare. All nodes that run a subgraph share its declaration.
pub(super) type SubgraphDeclarations = BTreeMap<GraphName, Arc<Declaration>>;

/// Returns the subgraphs of a graph.
fn subgraphs_of(def: &GraphDef) -> impl Iterator<Item = &GraphName> {
    def.nodes.values().filter_map(|node| node.graph.as_ref())
}

/// Returns all graphs in topological order, so that each graph comes after its subgraphs. The
/// graphs of a subgraph cycle and the graphs that contain these come last. Reports the cycles.
pub(super) fn topological_order<'d>(
    document: &'d ParsedDocument,
    problems: &mut Problems<'_>,
) -> Vec<(&'d GraphName, &'d ParsedGraph)> {
    let mut left: BTreeMap<&GraphName, &ParsedGraph> = document.graphs.iter().collect();
    let mut order = Vec::with_capacity(left.len());
    loop {
        let is_ready =
            |parsed: &ParsedGraph| !subgraphs_of(&parsed.def).any(|graph| left.contains_key(graph));
        let ready = left.iter().filter(|(_, parsed)| is_ready(parsed));
        let ready: Vec<_> = ready.map(|(name, parsed)| (*name, *parsed)).collect();
        if ready.is_empty() {
            break;
        }
        for (name, _) in &ready {
            left.remove(name);
        }
        order.extend(ready);
    }
    report_cycles(left.clone(), problems);
    order.extend(left);
    order
}

/// Reports the nodes that close a subgraph cycle. `left` contains the graphs without a topological
/// order. Graphs that contain a graph of a cycle without being part of a cycle are not reported.
fn report_cycles(mut left: BTreeMap<&GraphName, &ParsedGraph>, problems: &mut Problems<'_>) {
    loop {
        let inside: BTreeSet<&GraphName> =
            left.values().flat_map(|parsed| subgraphs_of(&parsed.def)).collect();
        let before = left.len();
        left.retain(|name, _| inside.contains(name));
        if left.len() == before {
            break;
        }
    }
    for (name, parsed) in &left {
        for (node, def) in &parsed.def.nodes {
            let Some(graph) = def.graph.as_ref().filter(|graph| left.contains_key(graph)) else {
                continue;
            };
            problems.add_with_hint(
                format!("graphs.{name}.nodes.{node}.graph"),
                format!("subgraph cycle: graph `{name}` contains itself through graph `{graph}`"),
                "to repeat nodes, add an edge back to them",
            );
        }
    }
}

/// Checks a node that runs a subgraph. Returns a declaration that names the channels that the
/// subgraph reads and writes, taken from `known` if `known` contains it. Returns `None` if the
/// subgraph could not be checked, for example in a cycle.
pub(super) fn check_subgraph_node(
    ctx: &CheckContext<'_>,
    path: &str,
    def: &NodeDef,
    graph: &GraphName,
    checked: &CheckedGraphs<'_>,
    known: &mut SubgraphDeclarations,
    problems: &mut Problems<'_>,
) -> Option<Arc<Declaration>> {
    let fields = [
        ("plugin", def.plugin.is_some()),
        ("node", def.node.is_some()),
        ("with", def.with.is_some()),
    ];
    for (field, _) in fields.into_iter().filter(|(_, given)| *given) {
        let message = format!("a subgraph node cannot have `{field}`");
        problems.add(format!("{path}.{field}"), message);
    }
    let subgraph = checked.get(graph)?;
    let child = &subgraph.parsed.def;
    let shared: BTreeMap<&ChannelName, (&ChannelDef, &ChannelDef)> = ctx
        .def
        .channels
        .iter()
        .filter_map(|(name, own)| Some((name, (own, child.channels.get(name)?))))
        .collect();
    if shared.is_empty() && !ctx.parsed.has_invalid_names() && !subgraph.parsed.has_invalid_names()
    {
        problems.add_with_hint(
            format!("{path}.graph"),
            format!("graph `{graph}` has no channel in common with this graph"),
            "the input and output of a subgraph are the channels that both graphs have",
        );
    }
    for (name, &(own, other)) in &shared {
        let is_bad = [&ctx.bad_schemas, &subgraph.bad_schemas].iter().any(|it| it.contains(*name));
        check_channel(path, graph, name, (own, other), is_bad, problems);
    }
    if let Some(declared) = known.get(graph) {
        return Some(declared.clone());
    }
    let names = |names: &mut dyn Iterator<Item = &ChannelName>| -> Value {
        names.map(|name| (name.to_string(), json!({}))).collect::<Map<_, _>>().into()
    };
    let written = &mut subgraph.writes.iter().filter(|name| shared.contains_key(name));
    let declared = Arc::new(Declaration::new(NodeSchema {
        doc: child.doc.clone(),
        input_schema: json!({ "properties": names(&mut shared.keys().copied()) }),
        output_schema: json!({ "properties": names(written) }),
        config_schema: None,
        node_reads: None,
        // Nodes of the subgraph can pause the run, too.
        may_pause: true,
    }));
    known.insert(graph.clone(), declared.clone());
    Some(declared)
}

/// Reports a channel that both graphs have with different reducers or incompatible types. The types
/// are not compared if one of the schemas `is_bad`.
fn check_channel(
    path: &str,
    graph: &GraphName,
    name: &ChannelName,
    (own, other): (&ChannelDef, &ChannelDef),
    is_bad: bool,
    problems: &mut Problems<'_>,
) {
    let path = format!("{path}.graph");
    if reducer_kind(&own.reducer) != reducer_kind(&other.reducer) {
        problems.add_with_hint(
            &path,
            format!("channel `{name}` has another reducer in graph `{graph}`"),
            "use the same reducer in both graphs, or rename one of the channels",
        );
    }
    if is_bad {
        return;
    }
    if let Some((here, there)) = schemas::incompatible_types(&own.schema, &other.schema) {
        problems
            .add(&path, format!("channel `{name}` holds {here}, but {there} in graph `{graph}`"));
    }
}

/// Returns `last` for `any` and `ephemeral`, which replace the value like `last` and are therefore
/// compatible with it. Returns any other reducer unchanged.
fn reducer_kind(reducer: &ReducerDef) -> &ReducerDef {
    const LAST: &ReducerDef = &ReducerDef::BuiltIn(BuiltInReducer::Last);
    match reducer {
        ReducerDef::BuiltIn(
            BuiltInReducer::Last | BuiltInReducer::Any | BuiltInReducer::Ephemeral,
        ) => LAST,
        other => other,
    }
}
