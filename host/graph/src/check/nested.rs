//! Graphs that run as nodes of other graphs of the document.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::check::build::Site;
use crate::check::facts::NodeFacts;
use crate::check::problem::Problems;
use crate::check::schemas;
use crate::check::shape::{Draft, Drafts};
use crate::definition::{BuiltIn, ChannelDef, GraphDef, NodeDef, ReducerDef};
use crate::id::{ChannelName, Digest, GraphName};

/// What the graphs above one need to know of it.
pub(super) struct Outline<'d> {
    pub(super) draft: &'d Draft,
    /// Channels that its nodes say they write.
    pub(super) writes: BTreeSet<ChannelName>,
    pub(super) digest: Digest,
}

/// The graphs below the one under construction, by name.
pub(super) type Outlines<'d> = BTreeMap<&'d GraphName, Outline<'d>>;

/// The graphs that nodes of a graph are.
fn nested(def: &GraphDef) -> impl Iterator<Item = &GraphName> {
    def.nodes.values().filter_map(|node| node.graph.as_ref())
}

/// All graphs in an order in which each comes after those that run inside of it. Graphs that run
/// inside of each other come last and are reported.
pub(super) fn in_order<'d>(
    drafts: &'d Drafts,
    problems: &mut Problems<'_>,
) -> Vec<(&'d GraphName, &'d Draft)> {
    let mut left: BTreeMap<&GraphName, &Draft> = drafts.graphs.iter().collect();
    let mut order = Vec::with_capacity(left.len());
    loop {
        let is_ready = |draft: &Draft| !nested(&draft.def).any(|graph| left.contains_key(graph));
        let ready = left.iter().filter(|(_, draft)| is_ready(draft));
        let ready: Vec<_> = ready.map(|(name, draft)| (*name, *draft)).collect();
        if ready.is_empty() {
            break;
        }
        for (name, _) in &ready {
            left.remove(name);
        }
        order.extend(ready);
    }
    report_endless(left.clone(), problems);
    order.extend(left);
    order
}

/// Reports the nodes by which graphs run inside of each other. `left` may hold graphs that only
/// lead to such graphs, which are no problem themselves.
fn report_endless(mut left: BTreeMap<&GraphName, &Draft>, problems: &mut Problems<'_>) {
    loop {
        let inside: BTreeSet<&GraphName> =
            left.values().flat_map(|draft| nested(&draft.def)).collect();
        let before = left.len();
        left.retain(|name, _| inside.contains(name));
        if left.len() == before {
            break;
        }
    }
    for (name, draft) in &left {
        for (node, def) in &draft.def.nodes {
            let Some(graph) = def.graph.as_ref().filter(|graph| left.contains_key(graph)) else {
                continue;
            };
            problems.add_with_hint(
                format!("graphs.{name}.nodes.{node}.graph"),
                format!("graph `{name}` would run inside of itself, by way of graph `{graph}`"),
                "to run nodes again, lead an edge back to them",
            );
        }
    }
}

/// Checks a node that is a graph, and says what it reads and writes. `None` if there is no such
/// graph.
pub(super) fn node(
    site: &Site<'_>,
    path: &str,
    def: &NodeDef,
    graph: &GraphName,
    outlines: &Outlines<'_>,
    problems: &mut Problems<'_>,
) -> Option<NodeFacts> {
    let fields = [
        ("plugin", def.plugin.is_some()),
        ("node", def.node.is_some()),
        ("with", def.with.is_some()),
    ];
    for (field, _) in fields.into_iter().filter(|(_, given)| *given) {
        let message = format!("a node that is a graph has no `{field}`");
        problems.add(format!("{path}.{field}"), message);
    }
    let outline = outlines.get(graph)?;
    let child = &outline.draft.def;
    let shared: BTreeMap<&ChannelName, (&ChannelDef, &ChannelDef)> = site
        .def
        .channels
        .iter()
        .filter_map(|(name, own)| Some((name, (own, child.channels.get(name)?))))
        .collect();
    if shared.is_empty() && site.draft.unread.is_empty() && outline.draft.unread.is_empty() {
        problems.add_with_hint(
            format!("{path}.graph"),
            format!("graph `{graph}` has no channel in common with this one"),
            "what goes into it and what comes out are the channels that both graphs have",
        );
    }
    for (name, (own, other)) in &shared {
        check_channel(path, graph, name, own, other, problems);
    }
    let names = |names: &mut dyn Iterator<Item = &ChannelName>| -> Value {
        names.map(|name| (name.to_string(), json!({}))).collect::<Map<_, _>>().into()
    };
    let written = &mut outline.writes.iter().filter(|name| shared.contains_key(name));
    Some(NodeFacts {
        doc: child.doc.clone(),
        input_schema: json!({ "properties": names(&mut shared.keys().copied()) }),
        output_schema: json!({ "properties": names(written) }),
        config_schema: None,
    })
}

/// Both graphs must mean the same by a channel that they share.
fn check_channel(
    path: &str,
    graph: &GraphName,
    name: &ChannelName,
    own: &ChannelDef,
    other: &ChannelDef,
    problems: &mut Problems<'_>,
) {
    let path = format!("{path}.graph");
    if kind(&own.reducer) != kind(&other.reducer) {
        problems.add_with_hint(
            &path,
            format!("channel `{name}` of graph `{graph}` has another reducer than here"),
            "give both the same, or another name to one of them",
        );
    }
    if let Some((here, there)) = schemas::disjoint(&own.schema, &other.schema) {
        problems.add(
            &path,
            format!("channel `{name}` of graph `{graph}` holds {there}, but {here} here"),
        );
    }
}

/// Reducers that replace the value get on with each other.
fn kind(reducer: &ReducerDef) -> &ReducerDef {
    const LAST: &ReducerDef = &ReducerDef::BuiltIn(BuiltIn::Last);
    match reducer {
        ReducerDef::BuiltIn(BuiltIn::Last | BuiltIn::Any | BuiltIn::Ephemeral) => LAST,
        other => other,
    }
}
