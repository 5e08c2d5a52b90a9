//! A graph as clients draw it: nodes, and the ways between them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wattle_graph::graph::Graph;
use wattle_graph::id::{END, NodeName};

/// The nodes that every drawing has.
const START_NODE: &str = "__start__";
const END_NODE: &str = "__end__";

/// Draws a graph.
pub(super) fn of(graph: &Graph) -> Value {
    let edge = |name: &str| json!({ "id": name, "type": "schema", "data": name });
    let node = |name: &NodeName| json!({ "id": name, "type": "runnable", "data": { "id": [name], "name": name } });
    let mut nodes = vec![edge(START_NODE)];
    nodes.extend(graph.nodes().keys().map(node));
    nodes.push(edge(END_NODE));
    json!({ "nodes": nodes, "edges": ways(graph) })
}

fn ways(graph: &Graph) -> Vec<Value> {
    let definition = graph.definition();
    let mut ways: Vec<Value> = graph.entry().iter().map(|to| way(START_NODE, to, false)).collect();
    // Nodes that lead somewhere; after the others comes the end.
    let mut leading: BTreeSet<&NodeName> = BTreeSet::new();
    let mut draw = |from: &'_ [NodeName], to: &[NodeName], is_conditional: bool| {
        for from in from {
            ways.extend(to.iter().map(|to| way(from.as_str(), to, is_conditional)));
        }
    };
    for edge in &definition.edges {
        draw(&edge.from, &edge.to, false);
        leading.extend(&edge.from);
    }
    for branch in &definition.branches {
        for case in &branch.cases {
            draw(&branch.from, &case.to, true);
        }
        leading.extend(&branch.from);
    }
    for (name, node) in &definition.nodes {
        draw(std::slice::from_ref(name), &node.goto, true);
        if !node.goto.is_empty() {
            leading.insert(name);
        }
    }
    let last = graph.nodes().keys().filter(|name| !leading.contains(name));
    ways.extend(last.map(|name| json!({ "source": name, "target": END_NODE })));
    ways
}

fn way(from: &str, to: &NodeName, is_conditional: bool) -> Value {
    let to = if to.as_str() == END { END_NODE } else { to.as_str() };
    let mut way = json!({ "source": from, "target": to });
    if is_conditional {
        way["conditional"] = true.into();
    }
    way
}
