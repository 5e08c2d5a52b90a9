//! Renders a graph as a Mermaid diagram.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use crate::graph::{Branch, Graph, Node, NodeKind};
use crate::id::{GraphName, NodeName};

/// Maximum number of subgraphs that one diagram expands. A subgraph may contain several others, so
/// the number of subgraphs can grow exponentially with the depth.
const OPENED_LIMIT: usize = 64;

/// Finds the graphs of an app by name.
pub type Graphs<'g> = &'g dyn Fn(&GraphName) -> Option<&'g Graph>;

/// Renders a graph as a Mermaid flowchart. Branches are diamonds with their name, deferred nodes
/// are hexagons, and subgraphs are boxes with double sides. Dotted lines lead to the targets of
/// `goto` and to error handlers.
pub fn mermaid(graph: &Graph) -> String {
    xray(graph, &|_| None)
}

/// Renders a graph as [`mermaid`] does, with its subgraphs expanded.
pub fn xray(graph: &Graph, graphs: Graphs<'_>) -> String {
    let mut picture = Diagram { graphs, opened: 0, text: String::new() };
    // Writing to a string cannot fail.
    let _ = picture.draw(graph);
    picture.text
}

struct Diagram<'g> {
    graphs: Graphs<'g>,
    /// Number of expanded subgraphs.
    opened: usize,
    text: String,
}

/// One graph of a diagram, with the prefix of its ids.
#[derive(Clone, Copy)]
struct Subdiagram<'p> {
    graph: &'p Graph,
    prefix: &'p str,
    indent: usize,
}

impl Diagram<'_> {
    fn draw(&mut self, graph: &Graph) -> fmt::Result {
        writeln!(self.text, "flowchart TD")?;
        self.part(Subdiagram { graph, prefix: "", indent: 4 })
    }

    fn line(&mut self, part: Subdiagram<'_>, line: fmt::Arguments<'_>) -> fmt::Result {
        writeln!(self.text, "{:width$}{line}", "", width = part.indent)
    }

    fn part(&mut self, part: Subdiagram<'_>) -> fmt::Result {
        let Subdiagram { graph, prefix, .. } = part;
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
        self.dynamic_edges(part)?;
        for name in graph.nodes().keys().filter(|name| is_terminal(graph, name)) {
            self.line(part, format_args!("{} --> {prefix}finish", part.id(name)))?;
        }
        Ok(())
    }

    fn node(&mut self, part: Subdiagram<'_>, name: &NodeName, node: &Node) -> fmt::Result {
        let id = part.id(name);
        let NodeKind::Graph { graph, .. } = &node.body else {
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
        self.part(Subdiagram { graph: inside, prefix: &prefix, indent: part.indent + 4 })?;
        self.line(part, format_args!("end"))
    }

    fn branch(&mut self, part: Subdiagram<'_>, number: usize, branch: &Branch) -> fmt::Result {
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

    /// Writes the dotted lines to `goto` targets and error handlers.
    fn dynamic_edges(&mut self, part: Subdiagram<'_>) -> fmt::Result {
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

impl Subdiagram<'_> {
    /// Returns an id that contains the number of the node, so that it cannot be a keyword of
    /// Mermaid.
    fn id(&self, node: &NodeName) -> String {
        match self.graph.nodes().keys().position(|name| name == node) {
            Some(number) => format!("{}n{number}", self.prefix),
            None => format!("{}finish", self.prefix),
        }
    }
}

/// Returns true if no edge, branch or `goto` leaves a node, so that a path ends there.
fn is_terminal(graph: &Graph, node: &NodeName) -> bool {
    let goes_on = |from: &BTreeSet<NodeName>| from.contains(node);
    !graph.edges().iter().any(|edge| goes_on(&edge.from))
        && !graph.branches().iter().any(|branch| goes_on(&branch.from))
        && graph.definition().nodes.get(node).is_none_or(|def| def.goto.is_empty())
}

/// Escapes a string for use between quotes.
fn quoted(text: &str) -> String {
    text.replace('"', "#quot;").replace('\n', " ")
}
