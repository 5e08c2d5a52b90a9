//! A graph as clients draw it: nodes and edges.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wattle_graph::graph::{Graph, NodeKind};
use wattle_graph::id::{END, NodeName};
use wattle_run::app::App;

/// The nodes that every drawing has.
const START_NODE: &str = "__start__";
const END_NODE: &str = "__end__";

/// Draws a graph. Up to `levels` levels, subgraphs replace the nodes that run them.
pub(super) fn of(app: &App, graph: &Graph, levels: usize) -> Value {
    let Drawing { nodes, ways } = Drawing::of(app, graph, levels);
    let nodes: Vec<Value> = nodes.iter().map(Node::document).collect();
    let ways: Vec<Value> = ways.iter().map(Way::document).collect();
    json!({ "nodes": nodes, "edges": ways })
}

struct Node {
    /// Name of the node, prefixed with the names of the nodes that contain it.
    id: String,
    name: String,
}

struct Way {
    source: String,
    target: String,
    is_conditional: bool,
}

struct Drawing {
    nodes: Vec<Node>,
    ways: Vec<Way>,
}

impl Node {
    fn of(name: &str) -> Self {
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

impl Way {
    fn of(from: &str, to: &NodeName, is_conditional: bool) -> Self {
        let to = if to.as_str() == END { END_NODE } else { to.as_str() };
        Self { source: from.to_owned(), target: to.to_owned(), is_conditional }
    }

    fn document(&self) -> Value {
        let mut way = json!({ "source": self.source, "target": self.target });
        if self.is_conditional {
            way["conditional"] = true.into();
        }
        way
    }
}

impl Drawing {
    fn of(app: &App, graph: &Graph, levels: usize) -> Self {
        let mut nodes = vec![Node::of(START_NODE)];
        nodes.extend(graph.nodes().keys().map(|name| Node::of(name.as_str())));
        nodes.push(Node::of(END_NODE));
        let mut drawing = Self { nodes, ways: ways(graph) };
        if levels == 0 {
            return drawing;
        }
        for (name, node) in graph.nodes() {
            if let NodeKind::Graph { graph, .. } = &node.body
                && let Some(graph_version) = app.graphs.get(graph)
            {
                drawing.open(name.as_str(), Self::of(app, &graph_version.graph, levels - 1));
            }
        }
        drawing
    }

    /// Replaces a node by the drawing of its subgraph.
    fn open(&mut self, name: &str, mut inside: Self) {
        let place = |id: &str| format!("{name}:{id}");
        let (first, last) = (place(&inside.first()), place(&inside.last()));
        for way in &mut self.ways {
            if way.target == name {
                way.target.clone_from(&first);
            }
            if way.source == name {
                way.source.clone_from(&last);
            }
        }
        let ways = inside.ways.into_iter().map(|way| Way {
            source: place(&way.source),
            target: place(&way.target),
            is_conditional: way.is_conditional,
        });
        self.ways.extend(ways);
        let nodes = inside.nodes.into_iter();
        let nodes = nodes.map(|node| Node { id: place(&node.id), name: node.name });
        let at = self.nodes.iter().position(|node| node.id == name);
        if let Some(at) = at {
            self.nodes.splice(at..=at, nodes);
        }
    }

    /// Returns the node at which the drawing starts. Removes the start node if its only edge is
    /// unconditional and leads to another node.
    fn first(&mut self) -> String {
        let leading: Vec<&Way> = self.ways.iter().filter(|it| it.source == START_NODE).collect();
        match leading.as_slice() {
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
    fn last(&mut self) -> String {
        let leading: Vec<&Way> = self.ways.iter().filter(|it| it.target == END_NODE).collect();
        match leading.as_slice() {
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
        self.ways.retain(|way| way.source != node && way.target != node);
    }
}

fn ways(graph: &Graph) -> Vec<Way> {
    let definition = graph.definition();
    let mut ways: Vec<Way> =
        graph.entry().iter().map(|to| Way::of(START_NODE, to, false)).collect();
    // Nodes with edges, branches or `goto`. All other nodes lead to the end.
    let mut leading: BTreeSet<&NodeName> = BTreeSet::new();
    let mut draw = |from: &'_ [NodeName], to: &[NodeName], is_conditional: bool| {
        for from in from {
            ways.extend(to.iter().map(|to| Way::of(from.as_str(), to, is_conditional)));
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
    ways.extend(last.map(|name| Way {
        source: name.to_string(),
        target: END_NODE.to_owned(),
        is_conditional: false,
    }));
    ways
}
