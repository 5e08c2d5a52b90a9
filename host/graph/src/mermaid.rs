//! A graph as a picture, in the language of Mermaid.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use crate::graph::{Body, Branch, Graph, Node};
use crate::id::{GraphName, NodeName};

/// Nested graphs that one picture opens: each may hold several others, so that their number grows
/// with the power of the depth.
const OPENED_LIMIT: usize = 64;

/// Finds the graphs of an app by name.
pub type Graphs<'g> = &'g dyn Fn(&GraphName) -> Option<&'g Graph>;

/// Draws a graph as a Mermaid flowchart. Branches are diamonds with their name, nodes that wait for
/// the end (`defer`) hexagons, nodes that are graphs boxes with double sides; what a node may run
/// by itself is dotted, and so is the way to the node that handles its failure.
pub fn mermaid(graph: &Graph) -> String {
    xray(graph, &|_| None)
}

/// Draws a graph as [`mermaid`] does, with what is inside of the nodes that are graphs.
pub fn xray(graph: &Graph, graphs: Graphs<'_>) -> String {
    let mut picture = Picture { graphs, opened: 0, text: String::new() };
    // Writing to a string cannot fail.
    let _ = picture.whole(graph);
    picture.text
}

struct Picture<'g> {
    graphs: Graphs<'g>,
    /// How many nested graphs were opened.
    opened: usize,
    text: String,
}

/// One of the graphs of a picture, and what the ids of its parts begin with.
#[derive(Clone, Copy)]
struct Part<'p> {
    graph: &'p Graph,
    prefix: &'p str,
    indent: usize,
}

impl Picture<'_> {
    fn whole(&mut self, graph: &Graph) -> fmt::Result {
        writeln!(self.text, "flowchart TD")?;
        self.part(Part { graph, prefix: "", indent: 4 })
    }

    fn line(&mut self, part: Part<'_>, line: fmt::Arguments<'_>) -> fmt::Result {
        writeln!(self.text, "{:width$}{line}", "", width = part.indent)
    }

    fn part(&mut self, part: Part<'_>) -> fmt::Result {
        let Part { graph, prefix, .. } = part;
        self.line(part, format_args!("{prefix}start([start])"))?;
        for (name, node) in graph.nodes() {
            self.node(part, name, node)?;
        }
        self.line(part, format_args!("{prefix}finish([end])"))?;
        for name in graph.entry() {
            self.line(part, format_args!("{prefix}start --> {}", part.id(name)))?;
        }
        for edge in graph.edges() {
            let from: Vec<String> = edge.from.iter().map(|name| part.id(name)).collect();
            let to: Vec<String> = edge.to.iter().map(|name| part.id(name)).collect();
            self.line(part, format_args!("{} --> {}", from.join(" & "), to.join(" & ")))?;
        }
        for (number, branch) in graph.branches().iter().enumerate() {
            self.branch(part, number, branch)?;
        }
        self.own_ways(part)?;
        for name in graph.nodes().keys().filter(|name| is_last(graph, name)) {
            self.line(part, format_args!("{} --> {prefix}finish", part.id(name)))?;
        }
        Ok(())
    }

    fn node(&mut self, part: Part<'_>, name: &NodeName, node: &Node) -> fmt::Result {
        let id = part.id(name);
        let Body::Graph { graph, .. } = &node.body else {
            let (open, close) = if node.defer { ("{{", "}}") } else { ("[", "]") };
            return self.line(part, format_args!("{id}{open}\"{name}\"{close}"));
        };
        let inside = (self.graphs)(graph).filter(|_| self.opened < OPENED_LIMIT);
        let Some(inside) = inside else {
            return self.line(part, format_args!("{id}[[\"{name}\"]]"));
        };
        self.opened += 1;
        self.line(part, format_args!("subgraph {id} [\"{name}\"]"))?;
        let prefix = format!("{id}_");
        self.part(Part { graph: inside, prefix: &prefix, indent: part.indent + 4 })?;
        self.line(part, format_args!("end"))
    }

    fn branch(&mut self, part: Part<'_>, number: usize, branch: &Branch) -> fmt::Result {
        let diamond = format!("{}branch{number}", part.prefix);
        self.line(part, format_args!("{diamond}{{\"{}\"}}", quoted(&branch.name)))?;
        for from in &branch.from {
            self.line(part, format_args!("{} --> {diamond}", part.id(from)))?;
        }
        for case in &branch.cases {
            let when = case.when.as_ref().map(|when| quoted(when.text()));
            let label = when.unwrap_or_else(|| "otherwise".to_owned());
            for to in &case.to {
                self.line(part, format_args!("{diamond} -->|\"{label}\"| {}", part.id(to)))?;
            }
        }
        Ok(())
    }

    /// Ways that a node takes by itself, and those from its failures.
    fn own_ways(&mut self, part: Part<'_>) -> fmt::Result {
        for (name, def) in &part.graph.definition().nodes {
            for target in &def.goto {
                self.line(part, format_args!("{} -.-> {}", part.id(name), part.id(target)))?;
            }
        }
        for (name, node) in part.graph.nodes() {
            if let Some(handler) = &node.on_error {
                let (from, to) = (part.id(name), part.id(handler));
                self.line(part, format_args!("{from} -.->|\"on error\"| {to}"))?;
            }
        }
        Ok(())
    }
}

impl Part<'_> {
    /// An id that no word of the language collides with: the number of the node.
    fn id(&self, node: &NodeName) -> String {
        match self.graph.nodes().keys().position(|name| name == node) {
            Some(number) => format!("{}n{number}", self.prefix),
            None => format!("{}finish", self.prefix),
        }
    }
}

/// Whether no way leads on from a node, so that its path ends with it.
fn is_last(graph: &Graph, node: &NodeName) -> bool {
    let goes_on = |from: &BTreeSet<NodeName>| from.contains(node);
    !graph.edges().iter().any(|edge| goes_on(&edge.from))
        && !graph.branches().iter().any(|branch| goes_on(&branch.from))
        && graph.definition().nodes.get(node).is_none_or(|def| def.goto.is_empty())
}

/// Text that may stand between quotes.
fn quoted(text: &str) -> String {
    text.replace('"', "#quot;").replace('\n', " ")
}
