//! A graph as a picture, in the language of Mermaid.

use std::fmt::{self, Write};

use crate::graph::{Branch, Graph};
use crate::id::NodeName;

/// Draws a graph as a Mermaid flowchart. Branches are diamonds with their name; what a node may
/// run by itself is dotted.
pub fn mermaid(graph: &Graph) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = draw(graph, &mut text);
    text
}

fn draw(graph: &Graph, out: &mut String) -> fmt::Result {
    let id = |node: &NodeName| id(graph, node);
    writeln!(out, "flowchart TD")?;
    writeln!(out, "    start([start])")?;
    for name in graph.nodes().keys() {
        writeln!(out, "    {}[\"{name}\"]", id(name))?;
    }
    writeln!(out, "    finish([end])")?;
    for name in graph.entry() {
        writeln!(out, "    start --> {}", id(name))?;
    }
    for edge in graph.edges() {
        let from: Vec<String> = edge.from.iter().map(id).collect();
        let to: Vec<String> = edge.to.iter().map(id).collect();
        writeln!(out, "    {} --> {}", from.join(" & "), to.join(" & "))?;
    }
    for (number, branch) in graph.branches().iter().enumerate() {
        draw_branch(graph, number, branch, out)?;
    }
    for (name, def) in &graph.definition().nodes {
        for target in &def.goto {
            writeln!(out, "    {} -.-> {}", id(name), id(target))?;
        }
    }
    for name in graph.nodes().keys().filter(|name| is_last(graph, name)) {
        writeln!(out, "    {} --> finish", id(name))?;
    }
    Ok(())
}

fn draw_branch(graph: &Graph, number: usize, branch: &Branch, out: &mut String) -> fmt::Result {
    let diamond = format!("branch{number}");
    writeln!(out, "    {diamond}{{\"{}\"}}", quoted(&branch.name))?;
    for from in &branch.from {
        writeln!(out, "    {} --> {diamond}", id(graph, from))?;
    }
    for case in &branch.cases {
        let label = case.when.as_ref().map_or("otherwise".to_owned(), |when| quoted(when.text()));
        for to in &case.to {
            writeln!(out, "    {diamond} -->|\"{label}\"| {}", id(graph, to))?;
        }
    }
    Ok(())
}

/// An id that no word of the language collides with: the number of the node.
fn id(graph: &Graph, node: &NodeName) -> String {
    match graph.nodes().keys().position(|name| name == node) {
        Some(number) => format!("n{number}"),
        None => "finish".to_owned(),
    }
}

/// Whether no way leads on from a node, so that its path ends with it.
fn is_last(graph: &Graph, node: &NodeName) -> bool {
    let goes_on = |from: &std::collections::BTreeSet<NodeName>| from.contains(node);
    !graph.edges().iter().any(|edge| goes_on(&edge.from))
        && !graph.branches().iter().any(|branch| goes_on(&branch.from))
        && graph.definition().nodes.get(node).is_none_or(|def| def.goto.is_empty())
}

/// Text that may stand between quotes.
fn quoted(text: &str) -> String {
    text.replace('"', "#quot;").replace('\n', " ")
}
