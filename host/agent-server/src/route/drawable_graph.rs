//! A graph as clients draw it: nodes and edges.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wattle_graph::graph::{Graph, NodeKind};
use wattle_graph::id::{END, NodeName};
use wattle_run::app::App;

/// The node at which every drawing starts.
const START_NODE: &str = "__start__";
/// The node at which every drawing ends.
const END_NODE: &str = "__end__";

/// Draws a graph. The drawings of subgraphs replace the nodes that run them, down to `levels`
/// levels.
pub(super) fn draw(app: &App, graph: &Graph, levels: usize) -> Value {
    let DrawableGraph { nodes, edges } = DrawableGraph::new(app, graph, levels);
    let nodes: Vec<Value> = nodes.iter().map(Node::document).collect();
    let edges: Vec<Value> = edges.iter().map(Edge::document).collect();
    json!({ "nodes": nodes, "edges": edges })
}

struct Node {
    /// Name of the node, prefixed with the names of the nodes that contain it.
    id: String,
    name: String,
}

struct Edge {
    source: String,
    target: String,
    is_conditional: bool,
}

struct DrawableGraph {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

impl Node {
    fn new(name: &str) -> Self {
        Self { id: name.to_owned(), name: name.to_owned() }
    }

    fn document(&self) -> Value {
        let Self { id, name } = self;
        if [START_NODE, END_NODE].contains(&name.as_str()) {
            return json!({ "id": id, "type": "schema", "data": id });
        }
        json!({ "id": id, "type": "runnable", "data": { "id": [name], "name": name } })
    }
}

impl Edge {
    fn new(from: &str, to: &NodeName, is_conditional: bool) -> Self {
        let to = if to.as_str() == END { END_NODE } else { to.as_str() };
        Self { source: from.to_owned(), target: to.to_owned(), is_conditional }
    }

    fn document(&self) -> Value {
        let mut edge = json!({ "source": self.source, "target": self.target });
        if self.is_conditional {
            edge["conditional"] = true.into();
        }
        edge
    }
}

impl DrawableGraph {
    fn new(app: &App, graph: &Graph, levels: usize) -> Self {
        let mut nodes = vec![Node::new(START_NODE)];
        nodes.extend(graph.nodes().keys().map(|name| Node::new(name.as_str())));
        nodes.push(Node::new(END_NODE));
        let mut drawing = Self { nodes, edges: edges(graph) };
        if levels == 0 {
            return drawing;
        }
        for (name, node) in graph.nodes() {
            if let NodeKind::Graph { graph, .. } = &node.body
                && let Some(graph_version) = app.graphs.get(graph)
            {
                drawing.inline_subgraph(
                    name.as_str(),
                    Self::new(app, &graph_version.graph, levels - 1),
                );
            }
        }
        drawing
    }

    /// Replaces a node by the drawing of its subgraph.
    fn inline_subgraph(&mut self, name: &str, mut subgraph: Self) {
        let prefixed = |id: &str| format!("{name}:{id}");
        let (entry, exit) = (prefixed(&subgraph.take_entry()), prefixed(&subgraph.take_exit()));
        for edge in &mut self.edges {
            if edge.target == name {
                edge.target.clone_from(&entry);
            }
            if edge.source == name {
                edge.source.clone_from(&exit);
            }
        }
        let edges = subgraph.edges.into_iter().map(|edge| Edge {
            source: prefixed(&edge.source),
            target: prefixed(&edge.target),
            is_conditional: edge.is_conditional,
        });
        self.edges.extend(edges);
        let nodes = subgraph.nodes.into_iter();
        let nodes = nodes.map(|node| Node { id: prefixed(&node.id), name: node.name });
        let position = self.nodes.iter().position(|node| node.id == name);
        if let Some(position) = position {
            self.nodes.splice(position..=position, nodes);
        }
    }

    /// Returns the node at which the drawing starts. Removes the start node if its only edge is
    /// unconditional and its target is another node.
    fn take_entry(&mut self) -> String {
        let edges: Vec<&Edge> = self.edges.iter().filter(|it| it.source == START_NODE).collect();
        match edges.as_slice() {
            [only] if !only.is_conditional && only.target != END_NODE => {
                let first = only.target.clone();
                self.remove(START_NODE);
                first
            }
            _ => START_NODE.to_owned(),
        }
    }

    /// Returns the node at which the drawing ends. Removes the end node if its only edge is
    /// unconditional and comes from another node.
    fn take_exit(&mut self) -> String {
        let edges: Vec<&Edge> = self.edges.iter().filter(|it| it.target == END_NODE).collect();
        match edges.as_slice() {
            [only] if !only.is_conditional && only.source != START_NODE => {
                let last = only.source.clone();
                self.remove(END_NODE);
                last
            }
            _ => END_NODE.to_owned(),
        }
    }

    fn remove(&mut self, node: &str) {
        self.nodes.retain(|it| it.id != node);
        self.edges.retain(|edge| edge.source != node && edge.target != node);
    }
}

fn edges(graph: &Graph) -> Vec<Edge> {
    let definition = graph.definition();
    let mut edges: Vec<Edge> =
        graph.entry().iter().map(|to| Edge::new(START_NODE, to, false)).collect();
    // Nodes with outgoing edges, branches or `goto`. Every other node has an edge to the end.
    let mut sources: BTreeSet<&NodeName> = BTreeSet::new();
    let mut add = |from: &'_ [NodeName], to: &[NodeName], is_conditional: bool| {
        for from in from {
            edges.extend(to.iter().map(|to| Edge::new(from.as_str(), to, is_conditional)));
        }
    };
    for edge in &definition.edges {
        add(&edge.from, &edge.to, false);
        sources.extend(&edge.from);
    }
    for branch in &definition.branches {
        for case in &branch.cases {
            add(&branch.from, &case.to, true);
        }
        sources.extend(&branch.from);
    }
    for (name, node) in &definition.nodes {
        add(std::slice::from_ref(name), &node.goto, true);
        if !node.goto.is_empty() {
            sources.insert(name);
        }
    }
    let final_nodes = graph.nodes().keys().filter(|name| !sources.contains(name));
    edges.extend(final_nodes.map(|name| Edge {
        source: name.to_string(),
        target: END_NODE.to_owned(),
        is_conditional: false,
    }));
    edges
}
